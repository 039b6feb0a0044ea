"""SQL over the lake: an in-memory DuckDB with one view a table."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import duckdb

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.workspace.lake import Lake


def connect(workspace: Path, leave_out: Collection[str] = ()) -> duckdb.DuckDBPyConnection:
    """A connection whose views are the workspace's tables; partitions (corpus, dimension, model) are text columns.

    Args:
        workspace: The workspace's folder.
        leave_out: Files of partitions that the views are to be without.
    """
    connection = duckdb.connect()
    lake = Lake(workspace)
    for table in lake.tables():
        paths = [str(path) for path in lake.partitions(table)]
        shown = [path for path in paths if path not in leave_out]
        if paths:
            listed = ", ".join("'" + path.replace("'", "''") + "'" for path in shown or paths[:1])
            with suppress(duckdb.Error):  # a damaged table that nobody asks for is in nobody's way
                connection.execute(
                    f'create view "{table}" as select * from read_parquet('
                    f"[{listed}], hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
                    + ("" if shown else " where false")
                )
    return connection


def reading(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """`query`, if it is one statement that only reads: the lake is written by its assets alone.

    Raises:
        FairnessError: it is empty, several statements, or writes.
        duckdb.Error: it is no SQL.
    """
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise FairnessError(
            f"the query failed: expected one statement, found {len(statements) or 'none'}; for example: "
            "select * from dialogue_significance"
        )
    kind = statements[0].type.name
    if kind != "SELECT":
        raise FairnessError(
            f"the query failed: {kind} may write or change something; expected a query that only reads (select, with, "
            "describe, summarize). fairness_pipeline.workspace.sql.connect gives Python a connection that may do more"
        )
    return query
