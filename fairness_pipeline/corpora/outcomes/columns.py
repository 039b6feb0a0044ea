"""Describes the columns of a table: what their values look like, and how they nest and cross."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.trials import MISSING, Codes, numbered
from fairness_pipeline.foundation.csv_cells import NUMBER
from fairness_pipeline.foundation.plain_text import some

MOSTLY = 0.9
"""If at least this share of a column's rows has a form, the other rows are taken for errors."""
_EVEN = 0.2
_EVEN_OF_TWO = 0.02
"""The largest relative standard deviation of how often values occur: of several values, and of two."""


class Column:
    """A column and the properties of its values.

    Args:
        name: The name.
        column: The values, dictionary-encoded in one chunk.
    """

    def __init__(self, name: str, column: pa.ChunkedArray) -> None:
        self.name = name
        encoded = column.chunk(0)
        self.texts: list[str] = encoded.dictionary.to_pylist()
        self.code = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self.used = np.unique(self.code[self.code >= 0])
        self.distinct = len(self.used)
        self.missing = int((self.code < 0).sum())

    @property
    def values(self) -> list[str]:
        """Its distinct values."""
        return [self.texts[code] for code in self.used]

    @property
    def codes(self) -> Codes:
        """The column as `numbered` takes it."""
        return Codes(self.code, tuple(self.texts))

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """Its distinct values as numbers, without those that are missing; None if one is no number."""
        try:
            numbers = [float(text) for text in self.values if text.strip().lower() not in MISSING]
        except ValueError:
            return None
        return np.array(numbers) if numbers else None

    @property
    def mostly_numbers(self) -> bool:
        """Whether nearly all of its rows are numbers; the reader names the others by line."""
        numbers = np.array([NUMBER.fullmatch(text.strip()) is not None for text in self.texts] + [True])
        return self.distinct > 1 and bool(numbers[self.code].mean() >= MOSTLY)

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.numbers is not None and bool(np.all(np.mod(self.numbers, 1) == 0))

    @property
    def alike(self) -> str:
        """Its values that differ only in case or spaces, in words; empty if there are none."""
        alike: dict[str, list[str]] = {}
        for text in self.values:
            alike.setdefault(" ".join(text.lower().split()), []).append(f"'{text}'")
        return some([", ".join(names) for names in alike.values() if len(names) > 1])

    @cached_property
    def length(self) -> float:
        """The mean length of its distinct values."""
        return float(np.mean([len(text) for text in self.values[:2000]])) if self.distinct else 0.0

    @property
    def row_number(self) -> bool:
        """Whether all rows have different values that are no measurements."""
        return self.distinct == len(self.code) and (self.whole or self.numbers is None)

    @property
    def measured(self) -> bool:
        """Whether its values are measurements: numbers that are not whole, or very many."""
        return self.numbers is not None and not self.whole

    @property
    def even(self) -> bool:
        """Whether its values occur about equally often, as those of a design do and those of a measurement do not."""
        counts = np.bincount(self.code[self.code >= 0])
        counts = counts[counts > 0]
        return bool(counts.std() <= (_EVEN if self.distinct > 2 else _EVEN_OF_TWO) * counts.mean())


class Columns:
    """The columns of a table from `read_table`, and how they nest and cross."""

    def __init__(self, table: pa.Table) -> None:
        self._columns = {name: Column(name, table[name]) for name in table.column_names}
        self._combinations: dict[frozenset[str], int] = {}

    def __iter__(self) -> Iterator[Column]:
        return iter(self._columns.values())

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def combinations(self, *names: str) -> int:
        """How many different combinations of values some columns have."""
        key = frozenset(names)
        if key not in self._combinations:
            self._combinations[key] = len(np.unique(numbered(*(self[name].codes for name in key))))
        return self._combinations[key]

    def nested(self, inner: str, *outer: str) -> bool:
        """Whether each value of a column occurs with one combination of the outer columns' values only."""
        return self.combinations(inner, *outer) == self.combinations(inner)

    def meets(self, name: str, others: Sequence[str]) -> float:
        """The share of the others' combinations that a value of a column meets on average."""
        return self.combinations(name, *others) / (self[name].distinct * self.combinations(*others))
