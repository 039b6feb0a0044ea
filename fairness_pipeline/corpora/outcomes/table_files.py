"""Reads tables as tools write them: CSV, TSV, JSON (Lines), Parquet and Arrow, the text formats also packed.

All columns are read as text, each distinct text once, so that ten million rows take little more than their numbers. An
error names the line and the column; to find the line, a broken file is read a second time, slowly.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import (
    most_bytes,
    open_unpacked,
    read_csv_rows,
    read_json,
    read_json_lines,
    read_lines,
    too_large,
    unreadable,
)

PACKED = (".gz", ".zst")
_TEXT, _BINARY = (".csv", ".tsv", ".jsonl", ".ndjson", ".json"), (".parquet", ".arrow", ".feather")
FORMS = (*_TEXT, *_BINARY)
"""The endings of files that are read."""
MOST_ROWS = 20_000_000
"""The most rows of a table; each takes about 100 bytes of memory."""
_INDEX = "index"
_BATCH = 20_000
_ENCODED = pa.dictionary(pa.int32(), pa.string())


def form_of(path: Path) -> str:
    """The ending of a file's name without its packing, such as `.csv`.

    Raises:
        FairnessError: it is none of `FORMS`.
    """
    form = (path.with_suffix("").suffix if path.suffix in PACKED else path.suffix).lower()
    if form not in FORMS or (form in _BINARY and path.suffix in PACKED):
        raise FairnessError(
            f"{path}: expected a table that ends in {', '.join(FORMS)} (text also packed: {', '.join(PACKED)}); found "
            f"'{path.suffix or 'no ending'}'"
        )
    return form


def column_names(path: Path) -> tuple[str, ...]:
    """The names of a table's columns, read from its beginning.

    Raises:
        FairnessError: the file has another form, or no columns.
    """
    form = form_of(path)
    if form in (".csv", ".tsv"):
        names = _header(path)
    elif form in _BINARY:
        names = next((batch.column_names for batch in _BATCHES[form](path)), [])
    else:
        names = list(flat(next((record for _, record in _records(path)), {})))
    if not names:
        raise FairnessError(f"{path}: expected a file with named columns, found an empty one")
    return tuple(names)


def read_table(path: Path) -> pa.Table:
    """The columns of a table as text, dictionary-encoded; null where a cell is empty.

    A nested object of JSON gives columns such as `doc.id`, and a list its JSON text.

    Raises:
        FairnessError: the file is missing or broken, has no rows, too many rows, no names of columns or one twice, or
            a column of another kind; names the line.
    """
    form = form_of(path)
    try:
        batches = list(_encoded_batches(path, _BATCHES[form](path)))
    except OSError as error:
        raise unreadable(path, error) from None
    if not batches or not sum(batch.num_rows for batch in batches):
        raise FairnessError(f"{path}: expected rows below the names of the columns, found none")
    return join_tables(batches)


def text_columns(table: pa.Table, path: Path = Path("table")) -> pa.Table:
    """A table in memory in the form that `read_table` returns.

    Raises:
        FairnessError: it has no rows, or a column of another kind.
    """
    if not table.num_rows:
        raise FairnessError(f"{path}: expected rows, found none; fill it, or leave it out")
    return join_tables(list(_encoded_batches(path, iter([table]))))


def join_tables(batches: list[pa.Table]) -> pa.Table:
    """Encoded batches as one table; a column that a batch lacks is null there."""
    names = list(dict.fromkeys(name for batch in batches for name in batch.column_names))
    columns = [
        pa.chunked_array(
            [
                batch[name].combine_chunks() if name in batch.column_names else pa.nulls(batch.num_rows, _ENCODED)
                for batch in batches
            ],
            _ENCODED,
        )
        for name in names
    ]
    return pa.table([_one_dictionary(column) for column in columns], names=names)


def place_of(path: Path, row: int) -> str:
    """The location of a row (counted from 0) in its file: `line 7`, or `row 7` if the format has no lines."""
    form = form_of(path)
    if form in (".csv", ".tsv"):
        return f"line {next(islice(_cells(path), row + 1, None))[0]}"
    if form in (".jsonl", ".ndjson", ".json"):
        return next(islice(_records(path), row, None))[0].rpartition(", ")[2]
    return f"row {row + 1}"


def _encoded_batches(path: Path, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yields the batches with all columns encoded; refuses a file with too many rows."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > MOST_ROWS:
            raise FairnessError(
                f"{path}: more than {MOST_ROWS:,} rows, which are held in memory as numbers (about 100 bytes each); "
                "average draws first, or audit a part"
            )
        yield pa.table([_encoded(path, name, batch[name]) for name in batch.column_names], names=batch.column_names)


def _encoded(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
        plain = column
    elif pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise FairnessError(f"{path}: column '{name}' holds {kind}; expected text, numbers or yes and no")
    else:
        plain = column.cast(pa.string())
    encoded = plain if pa.types.is_dictionary(plain.type) else plain.dictionary_encode()
    return _one_dictionary(encoded.cast(_ENCODED))


def _one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """One chunk, in which an empty text is null."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], _ENCODED)
    empty = pc.index(array.dictionary, pa.scalar("", pa.string())).as_py()
    if empty >= 0:
        indices = pc.if_else(pc.equal(array.indices, empty), pa.scalar(None, pa.int32()), array.indices)
        array = pa.DictionaryArray.from_arrays(indices, array.dictionary)
    return pa.chunked_array([array])


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row of a CSV or TSV file, with the row's line. Blank lines are skipped."""
    if form_of(path) == ".csv":
        return read_csv_rows(path)
    return ((number, line.split("\t")) for number, line in read_lines(path) if line)


def _header(path: Path) -> list[str]:
    """The names of a CSV or TSV file's columns; a first one without a name is the index that pandas writes."""
    names = next((cells for _, cells in _cells(path)), [])
    return [_INDEX, *names[1:]] if len(names) > 1 and names[0] == "" and _INDEX not in names else names


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise FairnessError(f"{path}: expected the names of the columns in the first line, found an empty file")
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise FairnessError(f"{path}, line 1: column '{doubled}' is listed twice; rename one")
    if "" in names:
        raise FairnessError(f"{path}, line 1: column {names.index('') + 1} has no name; name it")
    if len(names) == 1 and (mark := next((mark for mark in (";", "\t", "|", ",") if mark in names[0]), None)):
        expected = "commas (.csv)" if form_of(path) == ".csv" else "tabs (.tsv)"
        raise FairnessError(
            f"{path}, line 1: one column {names[0][:60]!r}; separated by {mark!r}? Expected {expected}; save it again"
        )


def _separated(path: Path) -> Iterator[pa.Table]:
    """Batches as Arrow parses them; if it fails, the slow reader says where."""
    names = _header(path)
    _check_names(path, names)
    quoted = form_of(path) == ".csv"
    most = most_bytes(path)
    try:
        with open_unpacked(path) as stream:
            reader = pyarrow.csv.open_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=1 << 22),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter="," if quoted else "\t", quote_char='"' if quoted else False, newlines_in_values=quoted
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, _ENCODED), strings_can_be_null=False
                ),
            )
            unpacked = 0
            for batch in reader:
                unpacked += batch.nbytes
                if unpacked > most:
                    raise too_large(path, most)
                yield pa.table(batch).rename_columns(names)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, EOFError) as error:
        _find_fault(path, names)
        raise FairnessError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None


def _find_fault(path: Path, names: list[str]) -> None:
    """Reads a file slowly, and names the line that is wrong."""
    for number, cells in _cells(path):
        if len(cells) != len(names):
            raise FairnessError(f"{path}, line {number}: expected {len(names)} columns, found {len(cells)}")


def _json_batches(path: Path) -> Iterator[pa.Table]:
    records = (flat(record) for _, record in _records(path))
    while batch := list(islice(records, _BATCH)):
        names = list(dict.fromkeys(name for record in batch for name in record))
        yield pa.table({name: pa.array([record.get(name) for record in batch], pa.string()) for name in names})


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of JSON Lines, or of a list in a JSON file, each with its location."""
    if form_of(path) != ".json":
        yield from read_json_lines(path)
        return
    content = read_json(path)
    if not isinstance(content, list):
        raise FairnessError(f"{path}: expected a list of objects, found {type(content).__name__}")
    for number, record in enumerate(content, start=1):
        if not isinstance(record, dict):
            raise FairnessError(f"{path}, object {number}: expected an object, found {type(record).__name__}")
        yield f"{path}, object {number}", record


def flat(record: Mapping[str, Any], under: str = "") -> dict[str, str | None]:
    """A JSON object as text by name; nested objects have names such as `doc.id`."""
    columns: dict[str, str | None] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            columns |= flat(value, f"{under}{name}.")
        else:
            plain = value is None or isinstance(value, str)
            columns[under + name] = value if plain else json.dumps(value, ensure_ascii=False)
    return columns


def _parquet_batches(path: Path) -> Iterator[pa.Table]:
    try:
        file = pyarrow.parquet.ParquetFile(path)
        for batch in file.iter_batches(1 << 17):
            yield pa.table(batch)
    except pa.ArrowException as error:
        raise FairnessError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _arrow_batches(path: Path) -> Iterator[pa.Table]:
    try:
        with pa.memory_map(str(path)) as source:
            magic = source.read_buffer(6).to_pybytes()
            source.seek(0)
            if magic == b"ARROW1":
                reader = pa.ipc.open_file(source)
                yield from (pa.table(reader.get_batch(index)) for index in range(reader.num_record_batches))
            else:
                yield from map(pa.table, pa.ipc.open_stream(source))
    except pa.ArrowException as error:
        raise FairnessError(f"{path}: cannot be read as Arrow: {str(error).splitlines()[0]}") from None


_BATCHES = {
    ".csv": _separated,
    ".tsv": _separated,
    ".jsonl": _json_batches,
    ".ndjson": _json_batches,
    ".json": _json_batches,
    ".parquet": _parquet_batches,
    ".arrow": _arrow_batches,
    ".feather": _arrow_batches,
}
