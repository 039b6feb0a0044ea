"""SQL over the lake: an in-memory DuckDB with one view for each table."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import duckdb

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.workspace.lake import Lake


def connect(workspace: Path, leave_out: Collection[str] = ()) -> duckdb.DuckDBPyConnection:
    """A connection with a view for each table of the workspace. The axes (corpus, dimension, model) are text columns.

    It reads the tables' folder and nothing else.

    Args:
        workspace: The workspace's folder.
        leave_out: Files of partitions to leave out of the views.
    """
    connection = duckdb.connect()
    lake = Lake(workspace)
    for table in lake.tables():
        paths = [str(path) for path in lake.partitions(table)]
        kept = [path for path in paths if path not in leave_out]
        if paths:
            files = ", ".join("'" + path.replace("'", "''") + "'" for path in kept or paths[:1])
            with suppress(duckdb.Error):  # a damaged table must not disturb queries of other tables
                connection.execute(
                    f'create view "{table}" as select * from read_parquet('
                    f"[{files}], hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
                    + ("" if kept else " where false")
                )
    # Queries see the tables and no other file, address or extension, and cannot change that.
    folder = str(workspace / "tables").replace("'", "''")
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"allowed_directories = ['{folder}']",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"set {setting}")
    return connection


def reading(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Returns `query` if it is a single statement that only reads: only assets may write to the lake.

    Raises:
        FairnessError: the query is empty, has several statements, or writes.
        duckdb.Error: the query is not valid SQL.
    """
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise FairnessError(
            f"the query failed: expected one statement, found {len(statements) or 'none'}; for example: "
            "select * from dialogue_significance"
        )
    try:
        kind = statements[0].type.name
    except ValueError:  # a kind that the library has no name for
        kind = "it"
    if kind != "SELECT":
        raise FairnessError(
            f"the query failed: {kind} may write or change something; expected a query that only reads (select, with, "
            "describe, summarize). fairness_pipeline.workspace.sql.connect gives Python a connection that may do more"
        )
    return query
