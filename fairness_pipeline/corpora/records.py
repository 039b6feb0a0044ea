"""Rows with named columns, from any form that people keep tables in."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairness_pipeline.corpora.text_files import read_csv_rows, read_json_lines, read_lines
from fairness_pipeline.errors import FairnessError


def read_records(path: Path, encoding: str = "utf-8") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a `.csv`, `.tsv`, `.jsonl`, `.json` (a list of objects) or `.parquet` file, with where it stands.

    Text files may be `.gz` or `.zst`.

    Raises:
        FairnessError: the file is missing, broken, of another form, or a row has too many or too few cells.
    """
    suffix = Path(path.name.removesuffix(".gz").removesuffix(".zst")).suffix
    if suffix == ".jsonl":
        yield from read_json_lines(path)
    elif suffix == ".json":
        yield from _objects(path)
    elif suffix in (".csv", ".tsv"):
        yield from _table(path, suffix, encoding)
    elif suffix == ".parquet":
        yield from _parquet(path)
    else:
        raise FairnessError(f"{path}: expected a .csv, .tsv, .jsonl, .json or .parquet file")


def column(where: str, record: dict[str, Any], name: str) -> Any:
    """A cell of a row.

    Raises:
        FairnessError: there is no such column; names what there is.
    """
    if name not in record:
        raise FairnessError(f"{where}: expected a column '{name}', found {list(record)[:8]}")
    return record[name]


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        records = json.loads("\n".join(line for _, line in read_lines(path)))
    except ValueError as error:
        raise FairnessError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise FairnessError(f"{path}: expected a list of objects")
    yield from ((f"{path}, object {number}", record) for number, record in enumerate(records, start=1))


def _table(path: Path, suffix: str, encoding: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tabbed = ((number, line.split("\t")) for number, line in read_lines(path, encoding))
    names: list[str] | None = None
    for number, cells in read_csv_rows(path, encoding) if suffix == ".csv" else tabbed:
        if names is None:
            names = cells
        elif len(cells) != len(names):
            raise FairnessError(f"{path}, line {number}: expected {len(names)} columns, found {len(cells)}")
        else:
            yield f"{path}, line {number}", dict(zip(names, cells, strict=True))


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        number = 0
        for batch in pq.ParquetFile(path).iter_batches():
            for record in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", record
    except (pa.ArrowInvalid, OSError) as error:
        raise FairnessError(f"{path}: cannot be read as Parquet: {error}") from None
