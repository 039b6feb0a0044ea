"""Reads rows with named columns from common table formats."""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_csv_rows, read_json, read_json_lines, read_lines


def read_records(
    path: Path,
    encoding: str = "utf-8",
    *,
    separator: str | None = None,
    mark: str = ",",
    skipped: Counter[str] | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each row of a `.csv`, `.tsv`, `.jsonl`, `.json` (a list of objects) or `.parquet` file, with its file and
    line.

    Text files may be compressed as `.gz` or `.zst`, or be the only file in a `.zip`.

    Args:
        path: The file.
        encoding: The encoding of a text file.
        separator: The separator of a file without quotation marks, whatever the file's ending.
        mark: The separator of a `.csv` file.
        skipped: Counts rows with too many or too few cells, which are then left out. Without it they are an error.

    Raises:
        FairnessError: the file is missing, broken, of another form, names a column twice, or a row has too many or too
            few cells.
    """
    suffix = Path(path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".zip")).suffix
    if suffix == ".jsonl":
        yield from read_json_lines(path, unique=True)
    elif suffix == ".json":
        yield from _objects(path)
    elif suffix in (".csv", ".tsv"):
        yield from _table(path, separator or ("\t" if suffix == ".tsv" else None), encoding, skipped, mark)
    elif suffix == ".parquet":
        yield from _parquet(path)
    else:
        raise FairnessError(f"{path}: expected a .csv, .tsv, .jsonl, .json or .parquet file")


def column(where: str, record: dict[str, Any], name: str) -> Any:
    """The cell of a row in one column.

    Raises:
        FairnessError: the column does not exist; names the existing ones.
    """
    if name not in record:
        raise FairnessError(f"{where}: expected a column '{name}', found {list(record)[:8]}{_separator_hint(record)}")
    return record[name]


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    records = read_json(path, unique=True)
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise FairnessError(f"{path}: expected a list of objects")
    yield from ((f"{path}, object {number}", record) for number, record in enumerate(records, start=1))


def _table(
    path: Path, separator: str | None, encoding: str, skipped: Counter[str] | None, mark: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """With a separator every line is taken literally as a row; without one the file is CSV."""
    split = ((number, line.split(separator)) for number, line in read_lines(path, encoding))
    names: list[str] | None = None
    for number, cells in split if separator else read_csv_rows(path, encoding, mark):
        if names is None:
            names = cells
            _check_columns(f"{path}, line {number}", names)
        elif len(cells) != len(names):
            if skipped is not None:
                skipped["with too many or too few cells"] += 1
                continue
            hint = (
                "; quotation marks say nothing between tabs or a 'separator': save cells that hold one, or a line "
                "end, as .csv with commas or as .parquet"
            )
            raise FairnessError(
                f"{path}, line {number}: expected {len(names)} columns, found {len(cells)}"
                f"{hint if separator else _separator_hint(names)}"
            )
        else:
            yield f"{path}, line {number}", dict(zip(names, cells, strict=True))
    if names is None:
        raise FairnessError(f"{path}: expected a header that names the columns, found an empty file")


def _check_columns(where: str, names: Collection[str]) -> None:
    if duplicate := next((name for name, count in Counter(names).items() if name and count > 1), None):
        raise FairnessError(f"{where}: the column '{duplicate}' is listed twice; keep one")


def _separator_hint(names: Collection[str]) -> str:
    """Advice if a header of one name seems to hold another separator; otherwise empty."""
    header = next(iter(names)) if len(names) == 1 else ""
    mark = next((mark for mark in (";", "\t", "|") if mark in header), None)
    return f"; is the separator {mark!r}? Save the file with commas, or set separator: {mark!r}" if mark else ""


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        number, file = 0, pq.ParquetFile(path, page_checksum_verification=True)
        _check_columns(f"{path}", file.schema_arrow.names)
        for batch in file.iter_batches():
            for record in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", record
    except (pa.ArrowInvalid, OSError) as error:
        raise FairnessError(f"{path}: cannot be read as Parquet: {error}") from None
