"""Reads dialogues of every declared format. Input that differs from its declaration is refused with file and line."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from fairness_pipeline.corpora.specification import Columns, CorpusSpecification
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_csv_rows, read_json_lines, read_lines

_ROWS = 4096


class Turns(NamedTuple):
    """One row as read: a context, its response and, if the file names them, its thread and its topic."""

    context: str
    response: str
    thread_id: str | None
    topic: str | None = None


def read_file(path: Path, corpus: CorpusSpecification) -> Iterator[Turns]:
    """The dialogues of one file.

    Raises:
        FairnessError: the file is missing, damaged, or differs from its declaration; names the file and the line.
    """
    empty = True
    for turns in _READERS[corpus.format](path, corpus):
        empty = False
        yield turns
    if empty:
        raise FairnessError(f"{path}: expected dialogues in format '{corpus.format}', found none; the file has no row")


def read_dataset(name: str, corpus: CorpusSpecification) -> Iterator[Turns]:
    """The dialogues of a data set of the `datasets` library.

    Raises:
        FairnessError: the data set cannot be loaded, or has other columns.
    """
    import datasets

    source = corpus.dataset
    assert source is not None
    try:
        rows = datasets.load_dataset(
            name, source.configuration, split=source.split, revision=source.revision, streaming=True
        )
        for number, row in enumerate(rows, start=1):
            yield from _record(f"data set '{source.name}', row {number}", row, corpus.columns)
    except FairnessError:
        raise
    except Exception as error:  # the library passes on whatever its readers raise
        raise FairnessError(
            f"data set '{source.name}' (configuration {source.configuration or 'default'}, split {source.split}) "
            f"cannot be loaded: {str(error) or type(error).__name__}; check its name, or load it once while the "
            "network is there"
        ) from error


# Rows of cells


def _cells(path: Path, corpus: CorpusSpecification) -> Iterator[Turns]:
    tabs = ((number, line.split("\t")) for number, line in read_lines(path))
    names: list[str] = []
    for number, cells in read_csv_rows(path) if corpus.format == "csv" else tabs:
        if not names:
            names = cells if corpus.header else [str(i) for i in range(1, len(cells) + 1)]
            _check_names(path, corpus.columns, names)
            if corpus.header:
                continue
        if len(cells) != len(names):
            raise FairnessError(
                f"{path}, line {number}: expected {len(names)} columns ({', '.join(names)}), found {len(cells)}"
            )
        # Of two columns with one name the first counts.
        record = dict(zip(reversed(names), reversed(cells), strict=True))
        yield from _record(f"{path}, line {number}", record, corpus.columns)


def _check_names(path: Path, columns: Columns, names: list[str]) -> None:
    for column in (columns.thread_id, columns.topic, columns.context, columns.response):
        if column is not None and str(column) not in names:
            raise FairnessError(
                f"{path}, line 1: expected a column '{column}', found {names[:8]}; name the columns in the corpus's "
                "YAML file (columns: {context: ..., response: ...}), or set 'header: false' if no line names them"
            )


# Alternating lines


def _lines(path: Path, corpus: CorpusSpecification) -> Iterator[Turns]:
    context: str | None = None
    last = 0
    for number, line in read_lines(path):
        last = number
        if context is None:
            context = line
        else:
            yield Turns(context, line, None)
            context = None
    if context is not None:
        raise FairnessError(
            f"{path}, line {last}: a context without a response; expected contexts and responses to alternate, an "
            "even number of lines"
        )


# Records


def _jsonl(path: Path, corpus: CorpusSpecification) -> Iterator[Turns]:
    for where, record in read_json_lines(path):
        yield from _record(where, record, corpus.columns)


def _parquet(path: Path, corpus: CorpusSpecification) -> Iterator[Turns]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = corpus.columns
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            known = file.schema_arrow.names
            thread = columns.thread_id or ("thread_id" if "thread_id" in known else None)
            text = [columns.turns] if columns.turns else [columns.context, columns.response]
            names = [str(column) for column in (*text, thread, columns.topic) if column is not None]
            if missing := [column for column in names if column not in known]:
                raise FairnessError(f"{path}: expected a column '{missing[0]}', found {known[:8]}")
            number = 0
            for batch in file.iter_batches(_ROWS, columns=names):
                for row in batch.to_pylist():
                    number += 1
                    yield from _record(f"{path}, row {number}", row, columns)
    except FileNotFoundError:
        raise FairnessError(f"{path}: cannot be read: no such file; check the path in the corpus's YAML file") from None
    except (OSError, pa.ArrowException) as error:
        raise FairnessError(
            f"{path}: not a whole Parquet file ({error}); fetch it again, or correct 'format'"
        ) from None


def _record(where: str, record: dict[str, Any], columns: Columns) -> Iterator[Turns]:
    declared = columns.thread_id is not None
    thread = _value(where, record, str(columns.thread_id)) if declared else record.get("thread_id")
    thread_id = str(thread) if thread not in (None, "") else None
    topic = _value(where, record, str(columns.topic)) if columns.topic is not None else None
    topic = str(topic) if topic not in (None, "") else None
    if columns.turns is None:
        context, response = (_text(where, record, str(name)) for name in (columns.context, columns.response))
        yield Turns(context, response, thread_id, topic)
        return
    turns = _value(where, record, columns.turns)
    if not isinstance(turns, list | tuple):
        raise FairnessError(f"{where}: expected a list under '{columns.turns}', found {type(turns).__name__}")
    texts = [_turn(where, turn, columns.turns) for turn in turns]
    for context, response in pairwise(texts):
        yield Turns(context, response, thread_id or where, topic)


def _value(where: str, record: dict[str, Any], name: str) -> Any:
    if name not in record:
        raise FairnessError(f"{where}: expected a key '{name}', found {list(record)[:8]}")
    return record[name]


def _text(where: str, record: dict[str, Any], name: str) -> str:
    value = _value(where, record, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FairnessError(f"{where}: expected text under '{name}', found {type(value).__name__}")
    return value


def _turn(where: str, turn: Any, name: str) -> str:
    if isinstance(turn, dict):
        known = [key for key in ("content", "text", "value") if key in turn]
        if not known:
            raise FairnessError(f"{where}: a turn under '{name}' has no 'content', 'text' or 'value'")
        turn = turn[known[0]]
    if turn is not None and not isinstance(turn, str):
        raise FairnessError(f"{where}: expected turns of text under '{name}', found {type(turn).__name__}")
    return turn or ""


_READERS: dict[str, Callable[[Path, CorpusSpecification], Iterator[Turns]]] = {
    "tsv": _cells,
    "csv": _cells,
    "lines": _lines,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
