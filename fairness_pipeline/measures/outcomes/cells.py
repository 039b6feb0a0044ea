"""Cells: the mean outcome of each item, group and name over draws. All statistics of a table start from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.outcomes.trials import Codes, Trials, numbered
from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.statistics.groups import Cells

OUTCOME_CELLS = schema(
    outcome=(pa.string(), "what came out"),
    item=optional(pa.string(), "what stays the same when only the group changes"),
    cluster=optional(pa.string(), "what items share"),
    name=optional(pa.string(), "what stands for the group"),
    groups=(pa.list_(pa.string()), "of each group column the group; null where it is unknown"),
    value=(pa.float64(), "the mean outcome of the draws"),
    square=(pa.float64(), "the mean square of the draws"),
    draws=(pa.int64(), "how many there are"),
    weight=optional(pa.float64(), "of an outcome with `per` how much they count on average"),
    deviation=(
        pa.float64(),
        "the standard deviation of single trials around their item and groups, over all conditions",
    ),
    unread=optional(pa.float64(), "the share of this outcome's answers in the condition that could not be read"),
    asked=optional(pa.string(), "what the first of them was asked"),
    answer=optional(pa.string(), "what it was answered"),
)
"""The mean of each outcome by item, groups and name."""


def cell_table(trials: Trials, condition: str) -> pa.Table:
    """A table of `OUTCOME_CELLS` of the trials in one condition."""
    rows = np.flatnonzero(trials.condition.code == trials.condition.names.index(condition))
    parts = [part for part in (trials.item, trials.name) if part]
    parts += list(trials.groups.values())
    key = numbered(*parts)[rows] if parts else rows
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    first = rows[first]
    count = len(first)
    tables = []
    for outcome, values in trials.values.items():
        outcomes, weights = values[rows], trials.weights.get(outcome)
        readable = trials.readable[outcome][rows] if outcome in trials.readable else np.array([np.nan])
        unread = None if np.isnan(readable).all() else 1 - float(np.nanmean(readable))
        known = ~np.isnan(outcomes)
        draws = np.bincount(cell[known], minlength=count)
        kept = draws > 0
        sums, squares = (
            np.bincount(cell[known], column[known], count)[kept] for column in (outcomes, np.square(outcomes))
        )
        cell_rows = first[kept]
        groups = [_texts(codes, cell_rows) for codes in trials.groups.values()]
        flat = (
            pa.concat_arrays(groups).take(
                pa.array(np.arange(len(cell_rows) * len(groups)).reshape(len(groups), -1).T.ravel())
            )
            if groups
            else pa.array([], pa.string())
        )
        offsets = pa.array(np.arange(len(cell_rows) + 1, dtype=np.int32) * len(groups))
        tables.append(
            pa.table(
                {
                    "outcome": pa.array([outcome]).take(pa.array(np.zeros(len(cell_rows), dtype=np.int64))),
                    "item": _texts(trials.item, cell_rows),
                    "cluster": _texts(trials.cluster or trials.item, cell_rows),
                    "name": _texts(trials.name, cell_rows),
                    "groups": pa.ListArray.from_arrays(offsets, flat),
                    "value": sums / draws[kept],
                    "square": squares / draws[kept],
                    "draws": draws[kept],
                    "weight": pa.nulls(len(cell_rows), pa.float64())
                    if weights is None
                    else np.bincount(cell[known], weights[rows][known], count)[kept] / draws[kept],
                    "deviation": np.full(len(cell_rows), _deviation(trials, values)),
                    "unread": pa.array([unread] * len(cell_rows), pa.float64()),
                    **{
                        role: trials.texts[role].take(pa.array(cell_rows)).cast(pa.string())
                        if role in trials.texts
                        else pa.nulls(len(cell_rows), pa.string())
                        for role in ("asked", "answer")
                    },
                },
                schema=OUTCOME_CELLS,
            )
        )
    return pa.concat_tables(tables) if tables else OUTCOME_CELLS.empty_table()


def means_beside(trials: Trials, condition: str) -> dict[str, float]:
    """The means that are reported beside the verdicts of a condition, by name; unknown ones are left out."""
    chosen = trials.condition.code == trials.condition.names.index(condition)
    known = {name: values[chosen & ~np.isnan(values)] for name, values in trials.beside.items()}
    return {name: float(values.mean()) for name, values in known.items() if len(values)}


def _deviation(trials: Trials, values: np.ndarray) -> float:
    """The standard deviation of single trials around the mean of their item and the effect of their groups, within
    conditions: a gap between groups must not widen its own margin, nor that of another column."""
    known = ~np.isnan(values)
    residual = values[known]
    if not len(residual):
        return 0.0
    condition = trials.condition
    by_item = numbered(condition, *([trials.item] if trials.item else []))[known]
    by_group = numbered(condition, *trials.groups.values())[known]
    freedom = len(residual)
    for code in (by_item, by_group):
        numbers = np.unique(code, return_inverse=True)[1]
        sizes = np.bincount(numbers)
        residual = residual - (np.bincount(numbers, residual) / sizes)[numbers]
        freedom -= len(sizes)
    return float(np.sqrt(np.square(residual).sum() / max(1, freedom + len(condition.names))))


def _texts(codes: Codes | None, rows: np.ndarray) -> pa.Array:
    """The texts behind the codes of some rows; null where there is none."""
    if codes is None:
        return pa.nulls(len(rows), pa.string())
    code = codes.code[rows]
    return pa.array(codes.names, pa.string()).take(pa.array(code, mask=code < 0))


@dataclass(frozen=True)
class OutcomeCells:
    """The cells of one outcome as numbers.

    Attributes:
        value: (n,) the mean outcome.
        square: (n,) the mean square.
        draws: (n,) the number of draws.
        deviation: The standard deviation of a single trial around its item and groups.
        item: (n,) the item; None if there are no items.
        cluster: (n,) the cluster.
        name: (n,) the name that represents the group; None without names.
        groups: The group of each cell, by group column.
    """

    value: np.ndarray
    square: np.ndarray
    draws: np.ndarray
    item: Codes | None
    cluster: Codes | None
    name: Codes | None
    groups: Mapping[str, Codes]
    deviation: float = 0.0
    weight: np.ndarray | None = None
    unread: float = 0.0

    @classmethod
    def of(cls, table: pa.Table, outcome: str, columns: Sequence[str]) -> "OutcomeCells":
        """From a table of `OUTCOME_CELLS`.

        Args:
            table: The table.
            outcome: The name of the outcome.
            columns: The names of the group columns, in the order of the table's lists.
        """
        rows = table.filter(pc.equal(table["outcome"], outcome))
        flat = pc.list_flatten(rows["groups"]).combine_chunks() if columns else None
        groups = {
            name: _codes(flat.take(pa.array(np.arange(offset, len(flat), len(columns)))))
            for offset, name in enumerate(columns)
            if flat is not None
        }
        roles = {role: _codes(rows[role]) if rows[role].null_count < len(rows) else None for role in _ROLES}
        value, square, draws = (rows[name].to_numpy() for name in ("value", "square", "draws"))
        deviation = float(rows["deviation"][0].as_py()) if len(rows) else 0.0
        weight = rows["weight"].to_numpy() if len(rows) and rows["weight"].null_count == 0 else None
        unread = float(rows["unread"][0].as_py() or 0.0) if len(rows) else 0.0
        return cls(
            value, square, draws, roles["item"], roles["cluster"], roles["name"], groups, deviation, weight, unread
        )

    def crossed(self, columns: Sequence[str]) -> float:
        """The share of possible crossed cells that exist, within items: 1 if each item has every level of the other
        group columns with every level of the chosen ones.
        """
        others = [column for name, column in self.groups.items() if name not in columns]
        if not others or self.item is None:
            return 1.0
        chosen = numbered(*(self.groups[name] for name in columns))
        other = numbered(*others)
        item = self.item.code.astype(np.int64)
        both = len(np.unique(np.stack([item, chosen, other], axis=1), axis=0))
        sizes = [np.bincount(np.unique(np.stack([item, levels], axis=1), axis=0)[:, 0]) for levels in (chosen, other)]
        return both / max(1, int((sizes[0] * sizes[1]).sum()))

    def at(self, rows: np.ndarray) -> "OutcomeCells":
        """Some of the cells, by their numbers."""

        def chosen(codes: Codes | None) -> Codes | None:
            return Codes(codes.code[rows], codes.names) if codes else None

        groups = {name: Codes(column.code[rows], column.names) for name, column in self.groups.items()}
        item, cluster, name = (chosen(column) for column in (self.item, self.cluster, self.name))
        weight = self.weight[rows] if self.weight is not None else None
        return OutcomeCells(
            self.value[rows], self.square[rows], self.draws[rows], item, cluster, name, groups, self.deviation, weight
        )

    def without(self, level: str | None) -> "OutcomeCells":
        """The cells without those in which a group column has a level.

        Args:
            level: The level; None for all cells.
        """
        columns = [column for column in self.groups.values() if level in column.names]
        if level is None or not columns:
            return self
        kept = np.logical_and.reduce([column.code != column.names.index(level) for column in columns])
        cells = self.at(np.flatnonzero(kept))
        groups = {name: column.used() for name, column in cells.groups.items()}
        return replace(cells, groups=groups, unread=self.unread)

    def mentioned_or_not(self, column: str, level: str) -> "OutcomeCells":
        """The cells by a column of two levels: a group is said, or none.

        Args:
            column: The column.
            level: Its level at which no group is said.
        """
        return replace(self, groups={column: self.groups[column].mentioned_or_not(column, level)})

    def linearised(self, chosen: np.ndarray) -> np.ndarray:
        """The outcomes of some cells, linearised for their mean: with weights, z = (v - S w) / mean w + S, where S =
        sum v / sum w, whose mean is S.

        Args:
            chosen: (n,) a mask of the cells.
        """
        value = self.value[chosen]
        if self.weight is None:
            return value
        weight = self.weight[chosen]
        if not weight.sum():
            return np.zeros(len(value))
        ratio = value.sum() / weight.sum()
        return (value - ratio * weight) / weight.mean() + ratio

    def of_groups(self, columns: Sequence[str]) -> tuple[Cells, np.ndarray]:
        """The cells for one group column, or for several crossed, averaged over the other columns within an item; and
        the number of draws of each.
        """
        group, names = reduce(Codes.crossed, (self.groups[name] for name in columns))
        known = group >= 0
        item = self.item.code if self.item else np.zeros(len(self.value), dtype=np.int64)
        parts = [item[known], group[known], *([self.name.code[known]] if self.name else [])]
        key = parts[0] * len(names) + parts[1]
        item_of_pair = np.unique(key) // len(names)  # only items in which several groups meet tell anything
        several = np.bincount(item_of_pair, minlength=item.max(initial=0) + 1)[parts[0]] > 1
        known = np.flatnonzero(known)[several]
        parts, key = [part[several] for part in parts], key[several]
        if self.name:
            key = key * len(self.name.names) + parts[2]
        _, first, cell = np.unique(key, return_index=True, return_inverse=True)
        value = np.bincount(cell, self.value[known]) / np.bincount(cell)
        draws = np.bincount(cell, self.draws[known])
        kept, numbers = np.unique(parts[1][first], return_inverse=True)
        items, item_number = np.unique(parts[0][first], return_inverse=True)
        cluster = np.zeros(len(items), dtype=np.int64)
        cell_cluster = self.cluster.code[known][first] if self.cluster else np.zeros(len(first), dtype=np.int64)
        cluster[item_number] = cell_cluster
        name_number = np.unique(parts[2][first], return_inverse=True)[1] if self.name else None
        groups = tuple(names[number] for number in kept)
        return Cells(value, item_number, numbers, cluster, groups, name_number), draws


_ROLES = ("item", "cluster", "name")


def _codes(column: pa.Array | pa.ChunkedArray) -> Codes:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()  # the same names get the same codes in every condition
    ranks = np.append(np.argsort(order), -1)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Codes(ranks[codes], tuple(encoded.dictionary.take(pa.array(order)).to_pylist()))
