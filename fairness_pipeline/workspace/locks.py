"""Locks that let one process at a time make a partition, of all that share a lake.

Where Dagster's records are in Postgres, the lock is one of its advisory locks, which ends with the connection.
Otherwise it is a lease, a file in the lake.
"""

import contextlib
import os
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained, replacing
from fairness_pipeline.foundation.leases import leased
from fairness_pipeline.foundation.processes import describe_process, this_process
from fairness_pipeline.workspace.postgres import POSTGRES, connect, describe_error

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

_PAUSES = 0.05, 0.5  # seconds: at first, and later
_LONGEST_NAME = 63
"""Bytes of a connection's name that Postgres keeps."""
_HOLDER = """
select activity.application_name from pg_locks as held join pg_stat_activity as activity using (pid)
where held.locktype = 'advisory' and held.granted
  and held.classid = (%(key)s::bigint >> 32 & 4294967295)::oid and held.objid = (%(key)s::bigint & 4294967295)::oid
"""


class Held(Protocol):
    """A lock that is held."""

    def check(self) -> None:
        """Raises FairnessError if this process does not hold it any more."""


@contextmanager
def lock(folder: Path, name: str, waiting: Callable[[str], None]) -> Iterator[Held]:
    """Holds a lock. The lock ends with the process at the latest.

    Args:
        folder: The lake's folder of locks.
        name: The lock's name, a relative path.
        waiting: Called with the name of the holder, before waiting for the lock.

    Raises:
        FairnessError: the folder cannot be written, or Postgres cannot be reached.
    """
    if os.environ.get(POSTGRES):
        # One session may take a lock twice, so threads of this process wait for each other here.
        with _of_this_process[name], _advisory(identity(folder), name, waiting) as held:
            yield held
    else:
        with leased(folder / name, waiting) as lease:
            yield lease


class _Advisory:
    """A lock in Postgres, held by a connection."""

    def __init__(self, connection: "Connection", name: str) -> None:
        self._connection = connection
        self._name = name

    def check(self) -> None:
        """Raises FairnessError if the connection has ended, and the lock with it."""
        import psycopg2

        try:
            with self._connection.cursor() as cursor:
                cursor.execute("select 1")
        except psycopg2.Error as error:
            _connections.pop(os.getpid(), None)
            raise FairnessError(
                f"{self._name}: the connection to Postgres was lost, and with it the lock ({describe_error(error)}); "
                "nothing was written. Run again: it continues from here"
            ) from None


_of_this_process: dict[str, threading.Lock] = defaultdict(threading.Lock)
_connections: "dict[int, Connection]" = {}
"""By process number: a forked process must neither use nor close its parent's connection."""


@contextmanager
def _advisory(lake: str, name: str, waiting: Callable[[str], None]) -> Iterator[Held]:
    import psycopg2

    key = int.from_bytes(blake2b(f"{lake} {name}".encode(), digest_size=8).digest(), signed=True)
    try:
        connection = _connection()
        _wait_for(connection, key, waiting)
    except psycopg2.Error as error:
        _connections.pop(os.getpid(), None)
        raise FairnessError(
            f"{name}: Postgres did not grant the lock: {describe_error(error)}; run again when it responds"
        ) from None
    owner = os.getpid()
    try:
        yield _Advisory(connection, name)
    finally:
        if os.getpid() == owner:  # a process that was forked meanwhile holds nothing
            with contextlib.suppress(psycopg2.Error), connection.cursor() as cursor:
                cursor.execute("select pg_advisory_unlock(%s)", [key])


def _wait_for(connection: "Connection", key: int, waiting: Callable[[str], None]) -> None:
    pause, longest = _PAUSES
    announced = False
    with connection.cursor() as cursor:
        while True:
            cursor.execute("select pg_try_advisory_lock(%s)", [key])
            if _first(cursor.fetchone()):
                return
            if not announced:
                cursor.execute(_HOLDER, {"key": key})
                waiting(str(_first(cursor.fetchone()) or "another run"))
                announced = True
            time.sleep(pause)
            pause = min(2 * pause, longest)


def _first(row: tuple[object, ...] | None) -> object:
    return row[0] if row else None


def _connection() -> "Connection":
    """This process's connection; a new one if the database was restarted."""
    import psycopg2

    existing = _connections.get(os.getpid())
    if existing is not None:
        try:
            with existing.cursor() as cursor:
                cursor.execute("select 1")
            return existing
        except psycopg2.Error:  # if it held a lock, `check` fails before anything is written
            pass
    name = describe_process(this_process()).encode()[:_LONGEST_NAME].decode(errors="ignore")
    connection = _connections[os.getpid()] = connect(name)
    return connection


def identity(folder: Path, kind: str = "lake", made: str | None = None) -> str:
    """The lake's own name, the same on every machine, wherever it is mounted.

    Args:
        folder: The lake's folder of locks.
        kind: Whose name: the lake's, or that of the database with its locks.
        made: The name to store if there is none yet; a random one by default.

    Raises:
        FairnessError: the folder cannot be written.
    """
    file = folder / f".{kind}"
    try:
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with leased(folder / ".naming"), replacing(file) as temporary:
                temporary.write_text(file.read_text() if file.exists() else made or uuid.uuid4().hex, encoding="ascii")
        return file.read_text(encoding="ascii")
    except OSError as error:
        raise explained(error, file) from None
