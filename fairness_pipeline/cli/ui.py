"""`ui`: opens Dagster on a profile's workspace."""

import argparse
import os
import signal
import socket
import subprocess
import sys

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError

_PATIENCE = 10  # seconds that Dagster has to end after each signal


def add(command: Command) -> None:
    """Adds the command."""
    ui = command("ui", _ui, "Open Dagster on the profile's workspace.")
    ui.add_argument("--port", type=_port, default=3000)
    ui.add_argument("--host", default="127.0.0.1")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, found '{text}'")
    return int(text)


def _ui(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.defs.instance import home
    from fairness_pipeline.project.project import PROFILE, Project

    folder = home(Project(arguments.profile))
    _check_free(arguments.host, arguments.port)
    environment = {**os.environ, "DAGSTER_HOME": str(folder), PROFILE: arguments.profile}
    where = ["--host", arguments.host, "--port", str(arguments.port)]
    print(
        f"Dagster on profile '{arguments.profile}': http://{arguments.host}:{arguments.port} (Ctrl-C ends it)",
        flush=True,
    )
    # Dagster runs in its own folder: it looks for modules where it starts, and would import a `random.py` there.
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-m", "fairness_pipeline.definitions", *where]
    process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _end(process)


def _check_free(host: str, port: int) -> None:
    """Raises FairnessError if no server can listen there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        raise FairnessError(
            f"--port {port}, --host {host}: nothing can be served there ({error.strerror or error}); choose another "
            "--port, or end what listens on it"
        ) from None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends Dagster and the servers that it started, gently at first."""
    for what in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, what)
            process.wait(_PATIENCE)
        except ProcessLookupError:  # no process is left
            return
        except subprocess.TimeoutExpired:
            continue
