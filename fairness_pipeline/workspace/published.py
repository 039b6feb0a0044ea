"""Tables that the papers printed (files of `data/published`), to show beside ours."""

import csv
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.paths import data_file


class PublishedRate(NamedTuple):
    """The rates of both groups in percent, for tables without a printed test."""

    value_a: float
    value_b: float
    p: str | None = None


@lru_cache(maxsize=16)
def rows(table: str) -> tuple[dict[str, str], ...]:
    """The rows of a table, named by the stem of its file.

    Raises:
        FairnessError: the file does not exist.
    """
    with data_file(f"published/{table}.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def checksums(tables: Collection[str]) -> dict[str, str]:
    """The SHA-256 of each table; a report is made again when one changes."""
    return {name: checksum(data_file(f"published/{name}.csv")) for name in tables}
