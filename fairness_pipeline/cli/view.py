"""`view`: shows every pair behind every verdict in a browser."""

import argparse
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from fairness_pipeline.cli.arguments import count
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.reporting.viewer.address import HOST, PORT


def add(command: Command) -> None:
    """Adds the command."""
    view = command("view", _view, "Read the pairs behind each verdict in a browser, side by side.")
    view.add_argument("--output", metavar="FOLDER", help="write the pages there, to open or to host; no server")
    view.add_argument("--against", metavar="FOLDER", help="the pages of an earlier run, to read its pairs beside these")
    view.add_argument("--port", type=count, default=PORT, help="of this machine (default: %(default)s)")


def _view(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from fairness_pipeline.foundation.plain_text import number_of
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.viewer.bundle import LEASE, build
    from fairness_pipeline.workspace.lake import Lake

    project = Project(arguments.profile)
    folder = Path(arguments.output) if arguments.output else project.workspace / "view"
    occupied = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if arguments.output and occupied and not (folder / "data" / LEASE).is_dir():
        raise FairnessError(f"--output: {folder} holds something else; name a new folder, or one that 'view' wrote")
    against = Path(arguments.against) if arguments.against else None
    with Progress(console=Console(stderr=True), transient=True) as display:
        bar = display.add_task("pairs", total=None)
        built = build(
            Lineage(project), Lake(project.workspace), folder, against,
            lambda done, total, note: display.update(bar, completed=done, total=total, description=note or "pairs"),
        )  # fmt: skip
    print(f"{number_of(built.pairs, 'pair')} of {number_of(built.sets, 'audit')}: {built.page}")
    if built.stale:
        print(f"{number_of(built.stale, 'audit')} left out, being out of date: 'fairness-pipeline run' makes them anew")
    print("It holds texts of the corpora and models' words, which may offend.")
    if not arguments.output:
        _serve(folder, arguments.port)
    return 0


def _serve(folder: Path, port: int) -> None:
    """Serves the folder on this machine only, until it is interrupted."""
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Pages, directory=str(folder)))
    except OSError as error:
        raise FairnessError(f"--port: {port} cannot be used ({error.strerror}); name another one") from None
    print(f"http://{HOST}:{port} (Ctrl-C ends it)", flush=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


class _Pages(SimpleHTTPRequestHandler):
    """Serves the files of one folder, only under this machine's own names, and logs no requests."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Answers requests for this machine's own names; a foreign name that leads to this machine gets nothing."""
        if (self.headers.get("Host") or "").rsplit(":", 1)[0] not in (HOST, "localhost"):
            self.send_error(403)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        """Forbids caching, so that a rewritten viewer is read again."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""
