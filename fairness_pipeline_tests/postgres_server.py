"""Runs a Postgres server for tests, where Postgres is installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_DEBIAN = Path("/usr/lib/postgresql")
_PASSWORD = "not-for-print"


class Server:
    """A server that a test may stop and start.

    Args:
        programs: The folder of `initdb` and `pg_ctl`.
        folder: Its data.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._databases = 0
        # Postgres refuses to run as root.
        self._user = (
            next((name for name in ("postgres", "nobody") if _exists(name)), None) if os.getuid() == 0 else None
        )
        if self._user:
            shutil.chown(folder, self._user)
        password = folder / "password"
        password.write_text(_PASSWORD)
        password.chmod(0o644)
        self._call(
            "initdb", "-D", folder / "data", "-A", "scram-sha-256", "-U", "auditor", f"--pwfile={password}", "-N"
        )

    def start(self) -> None:
        """Starts it and waits until it answers."""
        options = f"-p {self._port} -k {self._folder} -c fsync=off -c listen_addresses=127.0.0.1"
        self._call("pg_ctl", "-D", self._folder / "data", "-o", options, "-l", self._folder / "log", "-w", "start")

    def stop(self) -> None:
        """Stops it as a power cut would."""
        self._call("pg_ctl", "-D", self._folder / "data", "-m", "immediate", "stop")

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg2

        self._databases += 1
        connection = psycopg2.connect(self.address("postgres"))
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"create database audit_{self._databases}")
        connection.close()
        return self.address(f"audit_{self._databases}")

    def address(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://auditor:{_PASSWORD}@127.0.0.1:{self._port}/{database}"

    def _call(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(
            [self._programs / program, *arguments], check=True, user=self._user, cwd=self._folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


@contextmanager
def started() -> Iterator[Server]:
    """Yields a running server; skips the test where Postgres is not installed."""
    initdb = shutil.which("initdb")
    folders = [Path(initdb).resolve().parent] if initdb else []
    folders += sorted(path.parent for path in _DEBIAN.glob("*/bin/initdb"))
    if not folders:
        pytest.skip("Postgres is not installed (initdb)")
    with tempfile.TemporaryDirectory() as folder:  # a short path: it holds the server's socket
        server = Server(folders[-1], Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _exists(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False
