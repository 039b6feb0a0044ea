"""Dagster's records in files, with less to do for each event.

Dagster's own storage opens its file anew for each statement, keeps what a table's metadata say twice (as an output and
as a materialization), and starts four processes a run that copy what is printed to the terminal. The workspace's
`dagster.yaml` names the classes here; what they write is what Dagster's own classes read.
"""

import atexit
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import dagster as dg
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

from fairness_pipeline.defs.dagster_internals import (
    IO_TYPE_EXTENSION,
    SQLITE_BUSY_TIMEOUT_SECONDS,
    CapturedLogContext,
    ComputeIOType,
    ConfigurableClassData,
    ConsolidatedSqliteEventLogStorage,
    LocalComputeLogManager,
    SqlEventLogStorage,
    SqliteRunStorage,
    create_db_conn_string,
    create_engine,
    ensure_file,
    redirect_to_file,
    touch_file,
)

_OF_NO_INTEREST = (dg.DagsterEventType.RESOURCE_INIT_STARTED, dg.DagsterEventType.RESOURCE_INIT_SUCCESS)
"""Events of a resource that no asset here uses."""


MAKING = ".making-"
"""How the names of folders begin in which the file of events is made."""


class LastStaysNoted(SqlEventLogStorage):
    """An asset's last materialization stays noted as such. Two processes that make partitions of an asset at once may
    note theirs in the other order than they stored them; what is made from the later one would then look out of date.
    """

    def _store_asset_event(self, conn: Connection, event: dg.EventLogEntry, event_id: int) -> None:
        """Called by Dagster in a transaction whose first statement keeps others from noting one meanwhile."""
        super()._store_asset_event(conn, event, event_id)
        told = event.dagster_event
        if told is None or told.event_type != dg.DagsterEventType.ASSET_MATERIALIZATION or not told.asset_key:
            return
        (last,) = self.fetch_materializations(told.asset_key, 1).records
        if last.storage_id > event_id:
            super()._store_asset_event(conn, last.event_log_entry, last.storage_id)


class EventsInOneFile(LastStaysNoted, ConsolidatedSqliteEventLogStorage):
    """The events of all runs in one SQLite file; its place is Dagster's home."""

    def _init_db(self) -> None:
        """Called by Dagster for a new file. It is made elsewhere and then moved, so that a kill leaves no half of
        it; its pages have twice the usual size, so that fewer events need a second one."""
        place, own = Path(self.get_db_path()), self._conn_string  # type: ignore[no-untyped-call]
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=MAKING, dir=place.parent) as folder:
            made = Path(folder) / place.name
            with closing(sqlite3.connect(made)) as connection:
                connection.execute("PRAGMA page_size = 8192")
                connection.execute("PRAGMA journal_mode = WAL")
            self._conn_string = create_db_conn_string(folder, place.stem)
            try:
                super()._init_db()  # type: ignore[no-untyped-call]
            finally:
                if (engine := _engines.pop(self._conn_string, None)) is not None:
                    engine.dispose()
                self._conn_string = own
            try:
                os.link(made, place)
            except FileExistsError:  # another process was first
                pass
            except OSError:  # this file system has no links
                made.replace(place)

    def has_table(self, table_name: str) -> bool:
        """Whether a table is there; none is ever taken away."""
        if table_name not in self._tables:
            self._tables[table_name] = super().has_table(table_name)
        return self._tables[table_name]

    @cached_property
    def _tables(self) -> dict[str, bool]:
        return {}

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with _engine(self._conn_string).begin() as connection:
            yield connection

    def store_event(self, event: dg.EventLogEntry) -> None:
        """Stores an event without what stands elsewhere: tags for Python's logging, its message a second time, an
        output's metadata, which are those of its materialization. That a check is planned stands in the check's own
        row."""
        told = event.dagster_event
        if told is not None:
            if told.event_type in _OF_NO_INTEREST or _is_said_elsewhere(told):
                return
            told = told._replace(logging_tags={})
            if told.event_type == dg.DagsterEventType.STEP_OUTPUT:
                told = told._replace(event_specific_data=told.step_output_data._replace(metadata={}))
            event = event._replace(dagster_event=told, user_message="" if told.message else event.user_message)
            if told.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED:
                return self.store_asset_check_event(event, self.get_maximum_record_id())
        super().store_event(event)

    def _event_to_row(self, event: dg.EventLogEntry) -> dict[str, Any]:
        row = super()._event_to_row(event)
        return row | {"event": json.dumps(json.loads(row["event"]), separators=(",", ":"))}  # without spaces


def _is_said_elsewhere(told: dg.DagsterEvent) -> bool:
    """Whether an event is the output of a check, whose evaluation follows, or says that a process begins or ends the
    steps that begin and end themselves."""
    if told.event_type == dg.DagsterEventType.STEP_OUTPUT:
        return told.step_output_data.output_name != _RESULT
    if told.event_type == dg.DagsterEventType.ENGINE_EVENT:
        data = told.engine_event_data
        return data.error is None and "step_keys" in data.metadata
    return False


_RESULT = "result"
"""What Dagster calls the output of an asset's step."""


class RunsInOneFile(SqliteRunStorage):
    """Runs and their tags in a SQLite file, where Dagster keeps it in its home."""

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return cls.from_local(str(Path(config_value["base_dir"]) / "history"), inst_data)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection in a transaction."""
        with _engine(self._conn_string).begin() as connection:
            yield connection


class PrintsInFiles(LocalComputeLogManager):
    """What runs print goes into files, where Dagster keeps them in its home, and the UI shows it.

    Attributes:
        in_terminal: Whether this process leaves what it prints to the terminal: a command that makes units itself.
    """

    in_terminal: ClassVar[bool] = False

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return cls(str(Path(config_value["base_dir"]) / "storage"), inst_data=inst_data)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[CapturedLogContext]:
        """Sends what is printed meanwhile into files."""
        with ExitStack() as stack:
            for stream, kind in ((sys.stdout, ComputeIOType.STDOUT), (sys.stderr, ComputeIOType.STDERR)):
                path = self.get_captured_local_path(log_key, IO_TYPE_EXTENSION[kind])
                ensure_file(path)
                if not self.in_terminal:
                    stack.enter_context(redirect_to_file(stream, path))
            yield CapturedLogContext(log_key)
        touch_file(self.complete_artifact_path(log_key))  # type: ignore[no-untyped-call]


_engines: dict[str, Engine] = {}


def _engine(address: str) -> Engine:
    """The connections of this process to a file, which stay open."""
    if address not in _engines:
        engine = create_engine(
            address, poolclass=QueuePool, max_overflow=-1, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
        )
        event.listen(engine, "connect", _begun)
        event.listen(engine, "checkout", _still_there)
        _engines[address] = engine
    return _engines[address]


def _begun(connection: sqlite3.Connection, record: Any) -> None:
    """A commit need not wait for the disk: after a power cut the lake tells Dagster again what the file lost."""
    connection.execute("PRAGMA synchronous = NORMAL")
    record.info["file"] = _file_of(connection)


def _still_there(connection: sqlite3.Connection, record: Any, proxy: object) -> None:
    """A file that was deleted or replaced meanwhile is opened anew."""
    if record.info["file"] != _file_of(connection):
        raise DisconnectionError


def _file_of(connection: sqlite3.Connection) -> tuple[int, int] | None:
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    return (path.stat().st_dev, path.stat().st_ino) if path.exists() else None


def forget_connections(close: bool = True) -> None:
    """Closes the connections of this process to all records; they are opened again when they are needed."""
    for engine in _engines.values():
        engine.dispose(close)
    _engines.clear()


atexit.register(forget_connections)
# A connection must not be used on both sides of a fork.
os.register_at_fork(after_in_child=lambda: forget_connections(close=False))
