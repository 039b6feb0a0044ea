"""Dagster's records in files, with less work for each event.

Dagster's own storage opens its file anew for each statement, stores a table's metadata twice (as an output and as
a materialization), and starts four processes a run that copy what is printed to the terminal. The workspace's
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

_IGNORED = (dg.DagsterEventType.RESOURCE_INIT_STARTED, dg.DagsterEventType.RESOURCE_INIT_SUCCESS)
"""Events of a resource that no asset here uses."""


MAKING = ".making-"
"""The prefix of folders in which the file of events is made."""


class LastStaysNoted(SqlEventLogStorage):
    """Keeps an asset's last materialization noted as such. Two processes that make partitions of an asset at once may
    note theirs in another order than they stored them; downstream partitions would then look out of date.
    """

    def _store_asset_event(self, conn: Connection, event: dg.EventLogEntry, event_id: int) -> None:
        """Called by Dagster in a transaction whose first statement keeps others from noting one meanwhile."""
        super()._store_asset_event(conn, event, event_id)
        dagster_event = event.dagster_event
        if (
            dagster_event is None
            or dagster_event.event_type != dg.DagsterEventType.ASSET_MATERIALIZATION
            or not dagster_event.asset_key
        ):
            return
        (last,) = self.fetch_materializations(dagster_event.asset_key, 1).records
        if last.storage_id > event_id:
            super()._store_asset_event(conn, last.event_log_entry, last.storage_id)


class EventsInOneFile(LastStaysNoted, ConsolidatedSqliteEventLogStorage):
    """The events of all runs in one SQLite file; its place is Dagster's home."""

    def _init_db(self) -> None:
        """Called by Dagster for a new file. It is made elsewhere and then moved, so that a kill leaves no
        partial file; its pages have twice the usual size, so that fewer events need a second page."""
        path, address = Path(self.get_db_path()), self._conn_string  # type: ignore[no-untyped-call]
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=MAKING, dir=path.parent) as folder:
            new_file = Path(folder) / path.name
            with closing(sqlite3.connect(new_file)) as connection:
                connection.execute("PRAGMA page_size = 8192")
                connection.execute("PRAGMA journal_mode = WAL")
            self._conn_string = create_db_conn_string(folder, path.stem)
            try:
                super()._init_db()  # type: ignore[no-untyped-call]
            finally:
                if (engine := _engines.pop(self._conn_string, None)) is not None:
                    engine.dispose()
                self._conn_string = address
            try:
                os.link(new_file, path)
            except FileExistsError:  # another process was first
                pass
            except OSError:  # this file system has no links
                new_file.replace(path)

    def has_table(self, table_name: str) -> bool:
        """Whether a table exists; tables are never dropped."""
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
        """Stores an event without what is stored elsewhere: tags for Python's logging, a second copy of its message, an
        output's metadata, which are those of its materialization. A planned check is stored only in the check's own
        row."""
        inner = event.dagster_event
        if inner is not None:
            if inner.event_type in _IGNORED or _is_redundant(inner):
                return
            inner = inner._replace(logging_tags={})
            if inner.event_type == dg.DagsterEventType.STEP_OUTPUT:
                inner = inner._replace(event_specific_data=inner.step_output_data._replace(metadata={}))
            event = event._replace(dagster_event=inner, user_message="" if inner.message else event.user_message)
            if inner.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED:
                return self.store_asset_check_event(event, self.get_maximum_record_id())
        super().store_event(event)

    def _event_to_row(self, event: dg.EventLogEntry) -> dict[str, Any]:
        row = super()._event_to_row(event)
        return row | {"event": json.dumps(json.loads(row["event"]), separators=(",", ":"))}  # without spaces


def _is_redundant(event: dg.DagsterEvent) -> bool:
    """Whether other events say the same: an evaluation follows the output of a check, and steps report their own
    beginning and end, also where their process does."""
    if event.event_type == dg.DagsterEventType.STEP_OUTPUT:
        return event.step_output_data.output_name != _RESULT
    if event.event_type == dg.DagsterEventType.ENGINE_EVENT:
        data = event.engine_event_data
        return data.error is None and "step_keys" in data.metadata
    return False


_RESULT = "result"
"""Dagster's name of the output of an asset's step."""


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
    """Captures what runs print in files, where Dagster keeps them in its home and the UI reads them.

    Attributes:
        in_terminal: Whether this process prints to the terminal, as a command does that makes units itself.
    """

    in_terminal: ClassVar[bool] = False

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return cls(str(Path(config_value["base_dir"]) / "storage"), inst_data=inst_data)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[CapturedLogContext]:
        """Redirects what is printed meanwhile to files."""
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
        event.listen(engine, "connect", _on_connect)
        event.listen(engine, "checkout", _on_checkout)
        _engines[address] = engine
    return _engines[address]


def _on_connect(connection: sqlite3.Connection, record: Any) -> None:
    """Lets commits return before the disk has written: after a power cut the lake reports again what the file lost."""
    connection.execute("PRAGMA synchronous = NORMAL")
    record.info["file"] = _file_of(connection)


def _on_checkout(connection: sqlite3.Connection, record: Any, proxy: object) -> None:
    """Opens the file again if it was deleted or replaced meanwhile."""
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
