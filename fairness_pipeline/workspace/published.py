"""Tables that the papers printed (files of `data/published`), to show beside ours."""

import csv
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from fairness_pipeline.foundation.guard import read_once
from fairness_pipeline.foundation.inputs import DataFile


class PublishedRate(NamedTuple):
    """The rates of both groups in percent, for tables without a printed test."""

    value_a: float
    value_b: float
    p: str | None = None


def rows(table: str) -> tuple[dict[str, str], ...]:
    """The rows of a table, named by the stem of its file; read again when it changes.

    Raises:
        FairnessError: the file does not exist.
    """
    return read_once(f"published/{table}.csv", _rows)


def _rows(path: Path) -> tuple[dict[str, str], ...]:
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def files(tables: Collection[str]) -> tuple[DataFile, ...]:
    """The files of some tables."""
    return tuple(DataFile.of(f"published/{name}.csv") for name in tables)


class PrintedTable(NamedTuple):
    """A table as a paper prints it: its source, the columns that name a line, its metrics, and each line's names and
    values."""

    source: str
    names: list[str]
    metrics: list[str]
    lines: list[tuple[list[str], list[str]]]


def printed(table: str, names: Sequence[str], shown: Callable[[dict[str, str]], bool]) -> list[PrintedTable]:
    """The printed tables of a file, one column per metric; columns that are empty in a table are left out.

    Args:
        table: The stem of the file, which has the columns `source`, `metric`, `value` and, perhaps, stars.
        names: The columns that name a line.
        shown: Which rows are shown.
    """
    by_source: dict[str, list[dict[str, str]]] = {}
    for row in rows(table):
        if shown(row):
            by_source.setdefault(row["source"], []).append(row)
    tables = []
    for source, source_rows in by_source.items():
        used = [name for name in names if any(row[name] for row in source_rows)]
        lines: dict[tuple[str, ...], dict[str, str]] = {}
        for row in source_rows:
            value = row["value"] + row.get("significance_stars", "")
            lines.setdefault(tuple(row[name] for name in used), {})[row["metric"]] = value
        metrics = list(dict.fromkeys(row["metric"] for row in source_rows))
        printed_lines = [
            (list(line), [values.get(metric, "–") for metric in metrics]) for line, values in lines.items()
        ]
        tables.append(PrintedTable(source, used, metrics, printed_lines))
    return tables
