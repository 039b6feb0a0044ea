"""SQL over the lake: an in-memory DuckDB with one view a table."""

from pathlib import Path

import duckdb


def connect(workspace: Path) -> duckdb.DuckDBPyConnection:
    """A connection whose views are the workspace's tables; partitions (corpus, dimension, model) are text columns."""
    connection = duckdb.connect()
    for folder in sorted((workspace / "tables").glob("*")):
        files = list(folder.rglob("part-0.parquet"))
        depth = max((len(path.parts) for path in files), default=0)  # an older layout had fewer partitions
        paths = [str(path) for path in sorted(files) if len(path.parts) == depth]
        if paths:
            listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            connection.execute(
                f'create view "{folder.name}" as select * from read_parquet('
                f"[{listed}], hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
            )
    return connection
