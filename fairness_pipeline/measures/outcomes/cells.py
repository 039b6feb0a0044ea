"""Cells: the mean outcome of each item, group and name, draws averaged. What all statistics of a table start from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    """A table of `OUTCOME_CELLS` of the trials in one condition.

    Args:
        trials: The trials.
        condition: The key of the condition.
    """
    rows = np.flatnonzero(trials.condition.code == trials.condition.names.index(condition))
    parts = [own for own in (trials.item, trials.name) if own]
    parts += list(trials.groups.values())
    place = numbered(*parts)[rows] if parts else rows
    _, first, cell = np.unique(place, return_index=True, return_inverse=True)
    first = rows[first]
    count = len(first)
    tables = []
    for outcome, values in trials.values.items():
        own, weights = values[rows], trials.weights.get(outcome)
        readable = trials.readable[outcome][rows] if outcome in trials.readable else np.array([np.nan])
        unread = None if np.isnan(readable).all() else 1 - float(np.nanmean(readable))
        known = ~np.isnan(own)
        draws = np.bincount(cell[known], minlength=count)
        kept = draws > 0
        sums, squares = (np.bincount(cell[known], each[known], count)[kept] for each in (own, np.square(own)))
        places = first[kept]
        groups = [_texts(codes, places) for codes in trials.groups.values()]
        flat = (
            pa.concat_arrays(groups).take(
                pa.array(np.arange(len(places) * len(groups)).reshape(len(groups), -1).T.ravel())
            )
            if groups
            else pa.array([], pa.string())
        )
        offsets = pa.array(np.arange(len(places) + 1, dtype=np.int32) * len(groups))
        tables.append(
            pa.table(
                {
                    "outcome": pa.array([outcome]).take(pa.array(np.zeros(len(places), dtype=np.int64))),
                    "item": _texts(trials.item, places),
                    "cluster": _texts(trials.cluster or trials.item, places),
                    "name": _texts(trials.name, places),
                    "groups": pa.ListArray.from_arrays(offsets, flat),
                    "value": sums / draws[kept],
                    "square": squares / draws[kept],
                    "draws": draws[kept],
                    "weight": pa.nulls(len(places), pa.float64())
                    if weights is None
                    else np.bincount(cell[known], weights[rows][known], count)[kept] / draws[kept],
                    "deviation": np.full(len(places), _deviation(trials, values)),
                    "unread": pa.array([unread] * len(places), pa.float64()),
                    **{
                        role: trials.texts[role].take(pa.array(places)).cast(pa.string())
                        if role in trials.texts
                        else pa.nulls(len(places), pa.string())
                        for role in ("asked", "answer")
                    },
                },
                schema=OUTCOME_CELLS,
            )
        )
    return pa.concat_tables(tables) if tables else OUTCOME_CELLS.empty_table()


def means_beside(trials: Trials, condition: str) -> dict[str, float]:
    """The means that stand beside the verdicts of a condition, by name; without those of which nothing is known."""
    chosen = trials.condition.code == trials.condition.names.index(condition)
    known = {name: values[chosen & ~np.isnan(values)] for name, values in trials.beside.items()}
    return {name: float(values.mean()) for name, values in known.items() if len(values)}


def _deviation(trials: Trials, values: np.ndarray) -> float:
    """The standard deviation of single trials around the mean of their item and the effect of their groups, within
    conditions: a gap between groups must not widen its own margin, nor that of another column."""
    known = ~np.isnan(values)
    left = values[known]
    if not len(left):
        return 0.0
    condition = trials.condition
    by_item = numbered(condition, *([trials.item] if trials.item else []))[known]
    by_group = numbered(condition, *trials.groups.values())[known]
    freedom = len(left)
    for place in (by_item, by_group):
        numbers = np.unique(place, return_inverse=True)[1]
        sizes = np.bincount(numbers)
        left = left - (np.bincount(numbers, left) / sizes)[numbers]
        freedom -= len(sizes)
    return float(np.sqrt(np.square(left).sum() / max(1, freedom + len(condition.names))))


def _texts(codes: Codes | None, rows: np.ndarray) -> pa.Array:
    """The texts behind the codes of some rows; null where there is none."""
    if codes is None:
        return pa.nulls(len(rows), pa.string())
    own = codes.code[rows]
    return pa.array(codes.names, pa.string()).take(pa.array(own, mask=own < 0))


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
        name: (n,) what stands for the group; None if nothing does.
        groups: By group column.
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
            outcome: Which outcome.
            columns: The names of the group columns, in the order of the table's lists.
        """
        own = table.filter(pc.equal(table["outcome"], outcome))
        flat = pc.list_flatten(own["groups"]).combine_chunks() if columns else None
        groups = {
            name: _codes(flat.take(pa.array(np.arange(place, len(flat), len(columns)))))
            for place, name in enumerate(columns)
            if flat is not None
        }
        roles = {role: _codes(own[role]) if own[role].null_count < len(own) else None for role in _ROLES}
        value, square, draws = (own[name].to_numpy() for name in ("value", "square", "draws"))
        deviation = float(own["deviation"][0].as_py()) if len(own) else 0.0
        weight = own["weight"].to_numpy() if len(own) and own["weight"].null_count == 0 else None
        unread = float(own["unread"][0].as_py() or 0.0) if len(own) else 0.0
        return cls(
            value, square, draws, roles["item"], roles["cluster"], roles["name"], groups, deviation, weight, unread
        )

    def crossed(self, columns: Sequence[str]) -> float:
        """The share of the crossed cells that there are, within items: 1 if each item has every level of the other
        group columns with every level of these.

        Args:
            columns: Some of the group columns.
        """
        others = [own for name, own in self.groups.items() if name not in columns]
        if not others or self.item is None:
            return 1.0
        own = numbered(*(self.groups[name] for name in columns))
        other = numbered(*others)
        item = self.item.code.astype(np.int64)
        both = len(np.unique(np.stack([item, own, other], axis=1), axis=0))
        sizes = [np.bincount(np.unique(np.stack([item, each], axis=1), axis=0)[:, 0]) for each in (own, other)]
        return both / max(1, int((sizes[0] * sizes[1]).sum()))

    def at(self, rows: np.ndarray) -> "OutcomeCells":
        """Some of the cells, by their numbers."""

        def chosen(codes: Codes | None) -> Codes | None:
            return Codes(codes.code[rows], codes.names) if codes else None

        groups = {name: Codes(own.code[rows], own.names) for name, own in self.groups.items()}
        item, cluster, name = (chosen(own) for own in (self.item, self.cluster, self.name))
        weight = self.weight[rows] if self.weight is not None else None
        return OutcomeCells(
            self.value[rows], self.square[rows], self.draws[rows], item, cluster, name, groups, self.deviation, weight
        )

    def without(self, level: str | None) -> "OutcomeCells":
        """The cells without those in which a group column has a level.

        Args:
            level: The level; None for all cells.
        """
        columns = [own for own in self.groups.values() if level in own.names]
        if level is None or not columns:
            return self
        kept = np.logical_and.reduce([own.code != own.names.index(level) for own in columns])
        cells = self.at(np.flatnonzero(kept))
        groups = {name: own.used() for name, own in cells.groups.items()}
        return replace(cells, groups=groups, unread=self.unread)

    def said_or_not(self, column: str, level: str) -> "OutcomeCells":
        """The cells by a column of two levels: something is said, or nothing.

        Args:
            column: The column.
            level: Its level at which nothing is said.
        """
        return replace(self, groups={column: self.groups[column].said_or_not(column, level)})

    def linearised(self, chosen: np.ndarray) -> np.ndarray:
        """The outcomes of some cells, as their mean is taken: with weights, z = (v - S w) / mean w + S, where S = sum v
        / sum w, whose mean is S.

        Args:
            chosen: (n,) which cells.
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

        Args:
            columns: Which group columns.
        """
        codes = [self.groups[name] for name in columns]
        known = np.logical_and.reduce([own.code >= 0 for own in codes])
        group = np.zeros(len(self.value), dtype=np.int64)
        names = [""]
        for own in codes:
            group = group * len(own.names) + own.code
            names = [f"{before} {name}".strip() for before in names for name in own.names]
        item = self.item.code if self.item else np.zeros(len(self.value), dtype=np.int64)
        parts = [item[known], group[known], *([self.name.code[known]] if self.name else [])]
        place = parts[0] * len(names) + parts[1]
        beside = np.unique(place) // len(names)  # items in which several groups meet say something
        several = np.bincount(beside, minlength=item.max(initial=0) + 1)[parts[0]] > 1
        known = np.flatnonzero(known)[several]
        parts, place = [part[several] for part in parts], place[several]
        if self.name:
            place = place * len(self.name.names) + parts[2]
        _, first, cell = np.unique(place, return_index=True, return_inverse=True)
        value = np.bincount(cell, self.value[known]) / np.bincount(cell)
        draws = np.bincount(cell, self.draws[known])
        kept, numbers = np.unique(parts[1][first], return_inverse=True)
        items, own_item = np.unique(parts[0][first], return_inverse=True)
        cluster = np.zeros(len(items), dtype=np.int64)
        of_cell = self.cluster.code[known][first] if self.cluster else np.zeros(len(first), dtype=np.int64)
        cluster[own_item] = of_cell
        named = np.unique(parts[2][first], return_inverse=True)[1] if self.name else None
        groups = tuple(names[place] for place in kept)
        return Cells(value, own_item, numbers, cluster, groups, named), draws


_ROLES = ("item", "cluster", "name")


def _codes(column: pa.Array | pa.ChunkedArray) -> Codes:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()  # the same names, the same order in every condition
    places = np.append(np.argsort(order), -1)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Codes(places[codes], tuple(encoded.dictionary.take(pa.array(order)).to_pylist()))
