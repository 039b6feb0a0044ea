"""Reads and writes Parquet with checksums, so that a damaged page is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_parquet(table: pa.Table, path: Path) -> None:
    """Writes a table whose pages have checksums."""
    pq.write_table(table, path, write_page_checksum=True)


def read_parquet(path: Path) -> pa.Table:
    """Reads a table.

    Raises:
        pa.ArrowInvalid, OSError: the file is not Parquet, or a page is damaged.
    """
    return pq.read_table(path, partitioning=None, page_checksum_verification=True)
