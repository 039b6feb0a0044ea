"""`ui`: opens Dagster on a profile's workspace."""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError

if TYPE_CHECKING:
    from fairness_pipeline.project.project import Project

_ROUTINE = re.compile(rb" - dagster\S* - (DEBUG|INFO) - ")
_TIMEOUT = 10  # seconds for Dagster to end after each signal
_LOCATION = "fairness_pipeline"
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def add(command: Command) -> None:
    """Adds the command."""
    ui = command("ui", _ui, "Open Dagster on the profile's workspace.")
    ui.add_argument("--port", type=_port, default=3000, help="(default: %(default)s)")
    ui.add_argument("--host", default="127.0.0.1", help="the address that it listens at (default: %(default)s)")
    ui.add_argument("--read-only", action="store_true", help="let nobody start, change or delete anything in the UI")
    ui.add_argument(
        "--trusted-host", metavar="NAME", action="append", default=[], help="a further name of this server (of a proxy)"
    )
    ui.add_argument("--sync", action="store_true", help="only tell Dagster what the workspace holds, and stop")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, found '{text}'")
    return int(text)


def _ui(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.defs.instance import home
    from fairness_pipeline.project.project import PROFILE, Project

    project = Project(arguments.profile)
    if not arguments.sync:
        _check_free(arguments.host, arguments.port)
    _sync(project)
    if arguments.sync:
        return 0
    if arguments.host not in _LOCAL_HOSTS:
        print(
            f"warning: --host {arguments.host}: whoever reaches this machine can start and delete runs; add "
            "--read-only, or put a server that asks for a password in front of it",
            file=sys.stderr,
        )
    environment = {**os.environ, "DAGSTER_HOME": str(home(project)), PROFILE: arguments.profile}
    print(
        f"Dagster on profile '{arguments.profile}': http://{arguments.host}:{arguments.port} (Ctrl-C ends it)",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder, _services(arguments, environment, Path(folder) / "code") as services:
        try:
            while all(process.poll() is None for process in services):
                time.sleep(0.5)
        except KeyboardInterrupt:
            return 0
    raise FairnessError("a Dagster process ended unexpectedly; see its output above")


def _sync(project: "Project") -> None:
    from rich.console import Console

    from fairness_pipeline.defs.instance import open_instance
    from fairness_pipeline.defs.processes import mark_ended
    from fairness_pipeline.defs.pruning import prune
    from fairness_pipeline.defs.sync import sync
    from fairness_pipeline.foundation.plain_text import number_of
    from fairness_pipeline.lineage.lineage import Lineage

    status = Console(stderr=True).status("Telling Dagster what the workspace holds ...")
    with status, open_instance(project) as instance:
        ended = mark_ended(instance, project.workspace)
        prune(project, instance)
        synced = sync(Lineage(project), instance)
    if ended:
        print(f"{number_of(ended, 'run')} marked as failed, because the process is gone")
    if synced.made or synced.versions:
        made, changed = number_of(synced.made, "partition"), number_of(synced.versions, "partition")
        print(f"Dagster now knows of {made} that were made without it, and of changed settings of {changed}")
    else:
        print("Dagster knows of all that the workspace holds")


@contextmanager
def _services(
    arguments: argparse.Namespace, environment: dict[str, str], code: Path
) -> "Iterator[list[subprocess.Popen[bytes]]]":
    """Starts the server with the definitions, the web server and the daemon; ends them with the block."""
    from fairness_pipeline.defs.dagster_internals import DAEMON

    web = ["--host", arguments.host, "--port", str(arguments.port), "--location", _LOCATION, "--socket", str(code)]
    web += ["--read-only"] if arguments.read_only else []
    web += [word for name in arguments.trusted_host for word in ("--trusted-host", name)]
    definitions = ["-m", "fairness_pipeline.definitions", "--location-name", _LOCATION, "--socket", str(code)]
    # The daemon must know the server by the same name: the UI's switches are stored by this name.
    workspace = code.with_name("workspace.yaml")
    workspace.write_text(f'load_from: [{{grpc_server: {{socket: "{code}", location_name: {_LOCATION}}}}}]')
    quiet = ["--log-level", "warning"]
    calls = [
        ["dagster", "code-server", "start", *definitions, *quiet],
        ["fairness_pipeline.defs.webserver", *web],
        [DAEMON, "run", "--workspace", str(workspace), *quiet],
    ]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for call in calls:
            # Started in Dagster's own folder: it would import a `random.py` from the folder that it starts in.
            command = [sys.executable, "-W", "ignore", "-m", *call]
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=environment["DAGSTER_HOME"],
                start_new_session=True,
                stderr=subprocess.PIPE,
            )
            processes.append(process)
            threading.Thread(target=_pass_on, args=(process.stderr,), daemon=True).start()
            _wait_for(code, processes[0])
        yield processes
    finally:
        for process in reversed(processes):
            _end(process)


def _pass_on(stream: IO[bytes]) -> None:
    """Prints all but routine messages. Dagster prints each event of a run and each tick, whatever its level; the UI
    shows them."""
    for line in stream:
        if not _ROUTINE.search(line):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


def _wait_for(code: Path, server: "subprocess.Popen[bytes]") -> None:
    """Waits until the server with the definitions listens."""
    while not code.exists():
        if server.poll() is not None:
            raise FairnessError("Dagster could not load the definitions; see its output above")
        time.sleep(0.1)


def _check_free(host: str, port: int) -> None:
    """Raises FairnessError if no server can listen at the address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise FairnessError(
            f"--port {port}, --host {host}: nothing can be served there ({error.strerror or error}); choose another "
            "--port, or end what listens on it"
        ) from None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a server and its children, gently at first."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_TIMEOUT)
        except ProcessLookupError:  # no process is left
            return
        except subprocess.TimeoutExpired:
            continue
