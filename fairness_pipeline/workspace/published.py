"""The papers' printed tables, files of `data/published`, to stand beside ours."""

import csv
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.paths import data_file


class PublishedRate(NamedTuple):
    """Both groups' rates, in percent, where no test is printed."""

    value_a: float
    value_b: float
    p: str | None = None


@lru_cache(maxsize=16)
def rows(table: str) -> tuple[dict[str, str], ...]:
    """The rows of a table, by its file's stem.

    Raises:
        FairnessError: there is no such file.
    """
    with data_file(f"published/{table}.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def checksums(tables: Collection[str]) -> dict[str, str]:
    """The SHA-256 of each table: a report is made anew when one changes."""
    return {name: checksum(data_file(f"published/{name}.csv")) for name in tables}
