"""SQL over the lake: an in-memory DuckDB with one view a table."""

from pathlib import Path

import duckdb


def connect(workspace: Path) -> duckdb.DuckDBPyConnection:
    """A connection whose views are the workspace's tables; partitions (corpus, dimension, model) are text columns."""
    connection = duckdb.connect()
    for folder in sorted((workspace / "tables").glob("*")):
        if any(folder.rglob("*.parquet")):
            pattern = str(folder / "**" / "part-0.parquet").replace("'", "''")
            connection.execute(
                f'create view "{folder.name}" as select * from read_parquet('
                f"'{pattern}', hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
            )
    return connection
