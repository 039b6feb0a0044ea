"""Reads and writes CSV; what is written no spreadsheet takes for a formula.

A cell that begins with `=`, `+`, `-` or `@` is run by spreadsheets, and text from outside may say anything. The usual
remedy is an apostrophe before it, which the commands that read such files take off again.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from fairness_pipeline.foundation.errors import FairnessError

_BEGINS = r"[\s\ufeff\u200b-\u200f]*[=+\-@\uff1d\uff0b\uff0d\uff20\u2212]|[\t\r]"
"""The four, also as wide letters, and behind what nobody sees."""
_FORMULA = re.compile(rf"'*(?:{_BEGINS})")
_ESCAPED = re.compile(rf"'+(?:{_BEGINS})")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""How files write a number."""


def escaped(cell: Any) -> Any:
    """`cell` as text that no spreadsheet runs; numbers, also as text, are left as they are.

    Example:
        >>> escaped("@USER hi"), escaped("-0.5"), escaped(-0.5), escaped("'=1+1"), escaped("hi")
        ("'@USER hi", '-0.5', -0.5, "''=1+1", 'hi')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def restored(cell: str) -> str:
    """The text of which `escaped` made `cell`.

    Example:
        >>> restored("'@USER hi"), restored("''=1+1"), restored("'tis"), restored("@USER hi")
        ('@USER hi', "'=1+1", "'tis", '@USER hi')
    """
    return cell[1:] if _ESCAPED.match(cell) else cell


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV or TSV file by the names of its columns, each with its place for errors. Cells that a row lacks
    are missing.

    Args:
        path: The file, in UTF-8.

    Raises:
        FairnessError: it is no UTF-8, or no CSV.
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
        count += sum(cell is not own for cell, own in zip(cells, row, strict=True))
        writer.writerow(cells)
    return count


def say_escaped(count: int) -> str:
    """What a user should know of cells that were escaped, as a line of its own; empty if none was."""
    if not count:
        return ""
    return (
        f"\n({count:,} cells begin with = + - or @ and have an apostrophe before it, so that no spreadsheet runs them. "
        "Take it off before a model reads them; .jsonl holds texts as they are)"
    )
