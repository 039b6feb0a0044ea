"""Reads and writes CSV that no spreadsheet takes for formulas.

Spreadsheets run a cell that begins with `=`, `+`, `-` or `@`, and text from outside may hold anything. The usual remedy
is an apostrophe before the cell; the commands that read such files remove it.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing

_FORMULA_START = r"[\s\ufeff\u200b-\u200f]*[=+\-@\uff1d\uff0b\uff0d\uff20\u2212]|[\t\r]"
"""The four characters, also in full width, and after invisible characters."""
_FORMULA = re.compile(rf"'*(?:{_FORMULA_START})")
_ESCAPED = re.compile(rf"'+(?:{_FORMULA_START})")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""A number as files write it."""


def escaped(cell: Any) -> Any:
    """Returns `cell` as text that no spreadsheet runs; numbers, also as text, are unchanged.

    Example:
        >>> escaped("@USER hi"), escaped("-0.5"), escaped(-0.5), escaped("'=1+1"), escaped("hi")
        ("'@USER hi", '-0.5', -0.5, "''=1+1", 'hi')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def restored(cell: str) -> str:
    """The text from which `escaped` made `cell`.

    Example:
        >>> restored("'@USER hi"), restored("''=1+1"), restored("'tis"), restored("@USER hi")
        ('@USER hi', "'=1+1", "'tis", '@USER hi')
    """
    return cell[1:] if _ESCAPED.match(cell) else cell


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the rows of a CSV or TSV file by column name, each with its location for error messages. Cells that a row
    lacks are missing.

    Args:
        path: The file, in UTF-8.

    Raises:
        FairnessError: the file is not UTF-8, or not CSV.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            for row in reader:
                cells = {key: restored(cell) for key, cell in row.items() if key and isinstance(cell, str)}
                yield f"{path}, line {reader.line_num}", cells
    except UnicodeDecodeError as error:
        raise FairnessError(f"{path}: expected UTF-8, byte {error.start} is not; save the file as UTF-8") from None
    except csv.Error as error:
        raise FairnessError(f"{path}: expected CSV: {error}") from None


def write_rows(stream: TextIO, names: Sequence[str], rows: Iterable[Sequence[Any]], form: str = ".csv") -> int:
    """Writes rows with the names of their columns.

    Args:
        stream: The stream to write to.
        names: The names of the columns.
        rows: The cells of each row.
        form: `.csv` or `.tsv`, where text is `escaped`, or `.jsonl`, where it is not.

    Returns:
        How many cells were escaped.
    """
    if form == ".jsonl":
        for row in rows:
            stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
        return 0
    count = 0
    writer = csv.writer(stream, delimiter="\t" if form == ".tsv" else ",", lineterminator="\n")
    writer.writerow([escaped(name) for name in names])
    for row in rows:
        cells = [escaped(cell) for cell in row]
        count += sum(cell is not original for cell, original in zip(cells, row, strict=True))
        writer.writerow(cells)
    return count


def write_table(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Writes a file as `write_rows` does, in the form of its ending; it replaces an earlier one once it is whole."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        return write_rows(stream, names, rows, path.suffix)


def say_escaped(count: int) -> str:
    """The note about escaped cells, on a line of its own; empty if there are none."""
    if not count:
        return ""
    return (
        f"\n({count:,} cells begin with = + - or @ and have an apostrophe before it, so that no spreadsheet runs them. "
        "Take it off before a model reads them; .jsonl holds texts as they are)"
    )
