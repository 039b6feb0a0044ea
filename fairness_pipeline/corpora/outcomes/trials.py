"""The trials of a user's table: items, groups and outcomes as numbers, checked row by row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.outcomes.specification import MESSAGES, Outcome, OutcomeTable
from fairness_pipeline.corpora.outcomes.table_files import place_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some

_YES = ("1", "1.0", "true", "yes", "y")
_NO = ("0", "0.0", "false", "no", "n")
MISSING = ("na", "n/a", "nan", "null", "none")
"""Cells without a number, and without a yes or no."""


class Codes(NamedTuple):
    """A column as numbers: the index of each row's text in `names`; -1 where a row has none."""

    code: np.ndarray
    names: tuple[str, ...]

    def used(self) -> "Codes":
        """The codes without names that no row has."""
        used = np.zeros(len(self.names) + 1, dtype=bool)
        used[self.code] = True
        new_codes = np.append(np.cumsum(used[:-1]) - 1, -1)
        names = (name for name, is_used in zip(self.names, used[:-1], strict=True) if is_used)
        return Codes(new_codes[self.code], tuple(names))

    def without(self, name: str | None) -> "Codes":
        """The codes with -1 for a name; unchanged if there is no such name."""
        if name not in self.names:
            return self
        return Codes(np.where(self.code == self.names.index(str(name)), -1, self.code), self.names).used()

    def mentioned_or_not(self, column: str, nothing: str) -> "Codes":
        """The codes with two levels: the name `nothing`, or any other; -1 stays."""
        is_mentioned = self.code != self.names.index(nothing)
        return Codes(np.where(self.code < 0, -1, is_mentioned), (nothing, f"{column} said"))

    def crossed(self, other: "Codes") -> "Codes":
        """The codes of all combinations with another column's names; -1 where either column is -1.

        Raises:
            FairnessError: two combinations would have the same name.
        """
        code = np.where((self.code < 0) | (other.code < 0), -1, self.code * len(other.names) + other.code)
        combined: dict[str, tuple[str, str]] = {}
        for both in product(self.names, other.names):
            first = combined.setdefault(" ".join(both), both)
            if first != both:
                raise FairnessError(
                    f"group: crossed columns need one name a combination; '{first[0]}' with '{first[1]}' and "
                    f"'{both[0]}' with '{both[1]}' are both '{' '.join(both)}'; rename one of these groups"
                )
        return Codes(code, tuple(combined))


@dataclass(frozen=True)
class Trials:
    """The trials of a table.

    Attributes:
        groups: The groups by group column; -1 where the group is unknown.
        item: The items.
        cluster: The clusters.
        name: The names that stand for the groups; None if there are none.
        condition: The keys of the conditions, as the specification orders them.
        values: The numbers by outcome; NaN where a row has none.
        weights: By outcome with `per`, how much each row counts.
        labels: By outcome, the true answers (0, 1, NaN), if they are given.
        texts: `asked` and `answer`, and the outcomes that are texts, as text.
        rows: The number of rows of the file.
        beside: By name, the numbers whose means are shown beside the verdicts.
        readable: By outcome, whether each answer could be read (1, 0, NaN), if a column says so.
    """

    groups: Mapping[str, Codes]
    item: Codes | None
    cluster: Codes | None
    name: Codes | None
    condition: Codes
    values: Mapping[str, np.ndarray]
    weights: Mapping[str, np.ndarray]
    labels: Mapping[str, np.ndarray]
    texts: Mapping[str, pa.DictionaryArray]
    rows: int
    beside: Mapping[str, np.ndarray]
    readable: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.condition.code)


def read_trials(table: pa.Table, spec: OutcomeTable, path: Path | None = None) -> Trials:
    """The trials in a table of `read_table`. `path` is its file, for messages; None for a table in memory.

    Raises:
        FairnessError: a column is missing, or a cell is not as expected; names the line and the column.
    """
    return _Reader(table, spec, path).trials()


class _Reader:
    def __init__(self, table: pa.Table, spec: OutcomeTable, path: Path | None) -> None:
        self._table, self._spec, self._path = table, spec, path
        self._rows = table.num_rows
        self._row_numbers: np.ndarray | None = None  # in the file, once the table is filtered
        kept: np.ndarray | None = None
        for column, value in spec.where.items():
            texts = self._column(column, "where")
            index = pc.index(texts.dictionary, pa.scalar(value, pa.string())).as_py()
            chosen = _indices(texts) == (index if index >= 0 else -2)
            kept = chosen if kept is None else kept & chosen
        if spec.condition:
            chosen = self._conditions().code >= 0
            empty = _indices(self._column(spec.condition, "condition")) < 0
            if empty.any():
                row = int(np.argmax(empty))
                raise FairnessError(
                    f"{self._where(row)}: column '{spec.condition}' (condition) is empty; fill it, or leave the row out"
                )
            kept = chosen if kept is None else kept & chosen
        if kept is not None and not kept.any():
            filters = ", ".join(f"{column} = {value}" for column, value in spec.where.items())
            raise FairnessError(
                f"{self._name}: no row is left with {filters or 'one of the conditions'}; check the values"
            )
        if kept is not None:
            self._table, self._row_numbers = table.filter(pa.array(kept)), np.flatnonzero(kept)

    @property
    def _name(self) -> str:
        return str(self._path) if self._path else "table"

    def _where(self, row: int) -> str:
        """The location of a row, for a message; `row` counts the kept rows only."""
        if self._row_numbers is not None:
            row = int(self._row_numbers[row])
        return f"{self._path}, {place_of(self._path, row)}" if self._path else f"table, row {row}"

    def _column(self, name: str, role: str) -> pa.DictionaryArray:
        if name not in self._table.column_names:
            raise FairnessError(
                f"{self._name}: {role}: there is no column '{name}'; columns: {some(self._table.column_names, 12)}"
            )
        column = self._table[name]
        return column.chunk(0) if column.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))

    def _codes(self, name: str, role: str, *, required: bool = True) -> Codes:
        column = self._column(name, role)
        codes = _indices(column)
        if required and (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise FairnessError(f"{self._where(row)}: column '{name}' ({role}) is empty; fill it, or leave the row out")
        return Codes(codes, tuple(column.dictionary.to_pylist())).used()

    def _conditions(self) -> Codes:
        spec = self._spec
        assert spec.condition is not None
        column = self._column(spec.condition, "condition")
        names = column.dictionary.to_pylist()
        keys = spec.condition_keys
        codes = {spec.conditions[key]: code for code, key in enumerate(keys)}
        if absent := [value for value in codes if value not in names]:
            raise FairnessError(
                f"{self._name}: conditions: column '{spec.condition}' has no value '{absent[0]}'; it has "
                f"{some(list(map(repr, names)), 8)}"
            )
        known = np.array([codes.get(name, -1) for name in names] + [-1])
        return Codes(known[_indices(column)], keys)

    def trials(self) -> Trials:
        """The trials of the table."""
        spec = self._spec
        readable = {
            key: self._numbers(outcome.readable, f"outcomes.{key}.readable")
            for key, outcome in spec.outcomes.items()
            if outcome.readable
        }
        if spec.format != MESSAGES:  # messages differ in the outcomes that are read
            self._check_readable(readable)
        groups = {name: self._group(name) for name in spec.group}
        item = self._codes(spec.item, "item") if spec.item else None
        cluster = self._codes(spec.cluster, "cluster") if spec.cluster else None
        name = self._codes(spec.name, "name") if spec.name else None
        values: dict[str, np.ndarray] = {}
        weights: dict[str, np.ndarray] = {}
        labels: dict[str, np.ndarray] = {}
        texts = {role: self._column(column, role) for role in ("asked", "answer") if (column := getattr(spec, role))}
        for key, outcome in spec.outcomes.items():
            where = f"outcomes.{key}"
            if outcome.kind == "text":
                texts[key] = self._column(outcome.column or key, where)
            else:
                values[key] = self._values(outcome, outcome.column or key, where)
            if outcome.per:
                weights[key] = self._weights(outcome.per, f"{where}.per")
            if outcome.label:
                known = self._column(outcome.label, f"{where}.label").dictionary.to_pylist()
                positive = tuple(value for value in outcome.positive if value in known)
                labels[key] = self._yes(outcome.label, positive, f"{where}.label")
        one_condition = Codes(np.zeros(self._table.num_rows, dtype=np.int32), spec.condition_keys)
        condition = self._conditions() if spec.condition else one_condition
        beside = {key: self._numbers(column, f"beside.{key}") for key, column in spec.beside.items()}
        trials = Trials(
            groups, item, cluster, name, condition, values, weights, labels, texts, self._rows, beside, readable
        )
        self._check_nesting(trials)
        if spec.draw:
            self._check_draws(trials, self._codes(spec.draw, "draw"))
        return trials

    def _check_readable(self, readable: Mapping[str, np.ndarray]) -> None:
        count = sum(int((~np.isnan(flags)).sum()) for flags in readable.values())
        if not count or any(np.nansum(flags) for flags in readable.values()):
            return
        answers = self._column(self._spec.answer, "answer").to_pylist() if self._spec.answer else []
        first = next((text for text in answers if text), "")
        raise FairnessError(
            f"{self._name}: none of {count:,} answers could be read; the first is {first[:80]!r}. Change the prompt or "
            "the system prompt, or take another model"
        )

    def _group(self, name: str) -> Codes:
        codes = self._codes(name, "group", required=False)
        unknown = [group.lower() in map(str.lower, self._spec.unknown) for group in codes.names]
        known = Codes(np.where(np.array([*unknown, True])[codes.code], -1, codes.code), codes.names).used()
        count = len(known.names)
        if count < 2:
            raise FairnessError(
                f"{self._name}: group: column '{name}' has {count} known group"
                f"{'' if count == 1 else 's'} ({some(list(codes.names)) or 'nothing'}); a comparison needs "
                "at least two"
            )
        return known

    def _values(self, outcome: Outcome, column: str, role: str) -> np.ndarray:
        if outcome.kind == "yes_no" and not outcome.over:
            return self._yes(column, outcome.positive, role)
        numbers = self._numbers(column, role)
        if outcome.minus:
            return numbers - self._numbers(outcome.minus, f"{role}.minus")
        if outcome.over:
            gap = numbers - self._numbers(outcome.over, f"{role}.over")
            larger = (np.sign(gap) + 1) / 2 if outcome.kind == "preference" else gap > 0
            return np.where(np.isnan(gap), np.nan, larger)
        if outcome.kind == "preference":
            self._check(column, numbers, (numbers >= 0) & (numbers <= 1), "a number from 0 to 1")
        if outcome.kind == "count":
            self._check(
                column, numbers, (numbers >= 0) & (np.mod(numbers, 1) == 0), "a count: a whole number of 0 or more"
            )
        if outcome.kind == "rank":
            self._check(
                column,
                numbers,
                (numbers >= 1) & (np.mod(numbers, 0.5) == 0),
                "a place: 1 or more, half places for ties",
            )
        return numbers

    def _weights(self, name: str, role: str) -> np.ndarray:
        weights = self._numbers(name, role)
        self._check(name, weights, weights >= 0, "a number of 0 or more")
        return weights

    def _numbers(self, name: str, role: str) -> np.ndarray:
        column = self._column(name, role)
        texts = column.dictionary.to_pylist()
        missing = np.array([text.strip().lower() in MISSING for text in texts] + [True])
        try:
            numbers = column.dictionary.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            numbers = np.array([_number(text) for text in texts])
        numbers = np.append(numbers, np.nan)
        codes = _indices(column)
        wrong = ~missing & ~np.isfinite(numbers)
        if wrong[codes].any():
            self._refuse(name, codes, wrong, texts, "a number")
        return np.where(missing, np.nan, numbers)[codes]

    def _yes(self, name: str, yes: tuple[str, ...], role: str) -> np.ndarray:
        column = self._column(name, role)
        texts = column.dictionary.to_pylist()
        codes = _indices(column)
        if yes:
            if absent := [value for value in yes if value not in texts]:
                raise FairnessError(
                    f"{self._name}: {role}.positive: column '{name}' has no value '{absent[0]}'; it has "
                    f"{some(list(map(repr, texts)), 8)}"
                )
            answers = [float(text in yes) for text in texts]
        else:
            words = [text.strip().lower() for text in texts]
            answers = [1.0 if text in _YES else 0.0 if text in _NO else np.nan for text in words]
            wrong = np.array(
                [text not in MISSING and np.isnan(answer) for text, answer in zip(words, answers, strict=True)]
                + [False]
            )
            if wrong[codes].any():
                self._refuse(name, codes, wrong, texts, "1 or 0, yes or no (or name the values that count: positive)")
        return np.append(answers, np.nan)[codes]

    def _refuse(self, name: str, codes: np.ndarray, wrong: np.ndarray, texts: list[str], expected: str) -> None:
        row = int(np.argmax(wrong[codes]))
        raise FairnessError(
            f"{self._where(row)}: column '{name}': expected {expected}, found {texts[codes[row]][:40]!r}"
        )

    def _check(self, name: str, values: np.ndarray, right: np.ndarray, expected: str) -> None:
        wrong = ~right & ~np.isnan(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise FairnessError(f"{self._where(row)}: column '{name}': expected {expected}, found {values[row]:g}")

    def _check_nesting(self, trials: Trials) -> None:
        """Checks that each item is in one cluster, and that each name stands for one group."""
        if trials.item and trials.cluster:
            self._check_nested(trials.item, trials.cluster, "item", "cluster", "clusters hold whole items")
        if trials.name:
            for column, group in trials.groups.items():
                self._check_nested(trials.name, group, "name", f"group ('{column}')", "a name stands for one")

    def _check_nested(self, inner: Codes, outer: Codes, role: str, within: str, why: str) -> None:
        known = (inner.code >= 0) & (outer.code >= 0)
        first = np.full(len(inner.names), -1)
        rows = np.flatnonzero(known)[::-1]
        first[inner.code[rows]] = outer.code[rows]
        wrong = known & (first[inner.code] != outer.code)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise FairnessError(
                f"{self._where(row)}: {role} '{inner.names[inner.code[row]]}' is in {within} "
                f"'{outer.names[outer.code[row]]}' here, and in '{outer.names[first[inner.code[row]]]}' before; {why}"
            )

    def _check_draws(self, trials: Trials, draw: Codes) -> None:
        """Checks that no trial occurs twice."""
        parts = [
            trials.condition,
            *(codes for codes in (trials.item, trials.name) if codes),
            *trials.groups.values(),
            draw,
        ]
        numbers = numbered(*parts)
        _, first = np.unique(numbers, return_index=True)
        if len(first) < len(numbers):
            repeated = np.ones(len(numbers), dtype=bool)
            repeated[first] = False
            row = int(np.argmax(repeated))
            earlier = int(np.argmax(numbers == numbers[row]))
            raise FairnessError(
                f"{self._where(row)}: the same trial as {self._where(earlier).rpartition(', ')[2]} (draw "
                f"'{draw.names[draw.code[row]]}'); number repeated trials, or name a condition"
            )


def numbered(*columns: Codes) -> np.ndarray:
    """A number for each row; rows with the same combination of values have the same number."""
    numbers = np.zeros(len(columns[0].code), dtype=np.int64)
    size = 1
    for column in columns:
        count = len(column.names) + 1
        if size * count > 2**62:
            _, numbers = np.unique(numbers, return_inverse=True)
            size = int(numbers.max(initial=0)) + 1
        numbers, size = numbers * count + column.code + 1, size * count
    return numbers


def _indices(column: pa.DictionaryArray) -> np.ndarray:
    """The index of each row's text in the dictionary; -1 where it is null."""
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
