"""Changes of the groups' outcomes between the baseline and another condition: a prompt, a model or a run."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.specification import SIGNED
from fairness_pipeline.corpora.outcomes.trials import Codes, numbered
from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.measures.outcomes.group_effects import GroupEffects
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.rows import CROSS, unit_of
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.groups import Fit, each_against_others
from fairness_pipeline.statistics.intervals import finite
from fairness_pipeline.statistics.signed import signed_means

ANY = "any group"

OUTCOME_CHANGES = schema(
    outcome=(pa.string(), "what came out"),
    attribute=(pa.string(), "the group column, or two crossed; empty for an outcome with a side of its own"),
    group=(pa.string(), f"the group, compared with the mean of the others; {ANY} for the test of all together"),
    items=(pa.int64(), "items that both conditions have"),
    unit=(pa.string(), "of the amounts"),
    before=optional(pa.float64(), "the group minus the mean of the others, in the baseline"),
    after=optional(pa.float64(), "the same in this condition"),
    change=optional(pa.float64(), "after minus before"),
    ci_low=optional(pa.float64(), "lower end of its 95% interval, which holds for all groups together"),
    ci_high=optional(pa.float64(), "upper end"),
    p=(pa.float64(), "the p of no change: of any group adjusted by Holm over outcomes, of single groups together"),
    shown=(pa.bool_(), "whether the change is shown"),
)
"""What a condition changes, compared with the baseline."""


def changes_between(before: pa.Table, after: pa.Table, judging: Judging) -> pa.Table:
    """A table of `OUTCOME_CHANGES`: outcomes after minus before over the same items, compared between groups.

    Args:
        before: A table of `OUTCOME_CELLS` of the baseline.
        after: The same of the condition.
        judging: How outcomes are judged.

    Raises:
        FairnessError: groups never meet in an item.
    """
    rows: list[dict[str, Any]] = []
    for name, outcome in judging.outcomes.items():
        both = [OutcomeCells.of(table, name, judging.columns).without(judging.unmarked) for table in (before, after)]
        pair = _shared_cells(*both)
        if pair is None:
            continue
        unit, scale = unit_of(outcome)
        common = {"outcome": name, "unit": unit}
        if outcome.kind in SIGNED:
            rows.append({**common, "attribute": "", **_change_of_signed(*pair, judging.seed, scale)})
        elif pair[0].item is not None or pair[0].name is not None:
            columns: list[Sequence[str]] = [(column,) for column in judging.columns]
            for chosen in [*columns, *combinations(judging.columns, 2)]:
                rows += [
                    {**common, "attribute": CROSS.join(chosen), **row}
                    for row in _changes_of_groups(*pair, chosen, judging.seed, scale)
                ]
    family = [row for row in rows if row["group"] == ANY]
    for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
        row["p"] = p
    shown = {(row["outcome"], row["attribute"]) for row in family if row["p"] < judging.alpha}
    for row in rows:
        row["shown"] = row["p"] < judging.alpha and (row["outcome"], row["attribute"]) in shown
    return pa.Table.from_pylist(rows, OUTCOME_CHANGES)


def _changes_of_groups(
    before: OutcomeCells, after: OutcomeCells, columns: Sequence[str], seed: int, scale: float
) -> Iterator[dict[str, Any]]:
    (cells_before, _), (cells_after, _) = before.of_groups(columns), after.of_groups(columns)
    first, second = np.triu_indices(len(cells_before.groups), 1)
    effects = GroupEffects(cells_before._replace(value=cells_after.value - cells_before.value), first, second, seed)
    if not effects.enough_for_verdict:
        return
    items = len(cells_before.cluster)
    yield {"group": ANY, "items": items, "p": effects.omnibus}
    contrasts = each_against_others(len(effects.groups))
    levels = np.stack([scale * contrasts @ Fit(cells).effects for cells in (cells_before, cells_after)], axis=1)
    for group, (value_before, value_after), interval in zip(
        effects.groups, levels, effects.intervals("others"), strict=True
    ):
        change, low, high = (scale * value for value in (interval.estimate.centre, interval.low, interval.high))
        yield {
            "group": group, "items": items, "before": value_before, "after": value_after, "change": change,
            "ci_low": finite(low), "ci_high": finite(high), "p": interval.p,
        }  # fmt: skip


def _change_of_signed(before: OutcomeCells, after: OutcomeCells, seed: int, scale: float) -> dict[str, Any]:
    cluster = before.cluster.code if before.cluster else np.arange(len(before.value))
    cluster = np.unique(cluster, return_inverse=True)[1]
    all_cells = np.ones(len(cluster), dtype=bool)
    change = after.linearised(all_cells) - before.linearised(all_cells)
    means = signed_means(lambda mask: change[mask], cluster, np.zeros(len(cluster), dtype=np.int64), ("all",), seed)
    low, high = means.estimates[0].interval(0.95)
    levels = [scale * float(cells.linearised(all_cells).mean()) for cells in (before, after)]
    return {
        "group": ANY, "items": means.counts[0], "before": levels[0], "after": levels[1],
        "change": scale * means.estimates[0].centre, "ci_low": scale * low, "ci_high": scale * high, "p": means.p[0],
    }  # fmt: skip


def _shared_cells(before: OutcomeCells, after: OutcomeCells) -> tuple[OutcomeCells, OutcomeCells] | None:
    """The cells that both conditions have, in the same order; None if there are none."""
    keys = []
    shared: list[tuple[str, ...]] = []
    pairs = [(before.item, after.item), (before.name, after.name)]
    pairs += [(before.groups[name], after.groups[name]) for name in before.groups]
    for first, second in pairs:
        if first is not None and second is not None:
            shared.append(tuple(dict.fromkeys((*first.names, *second.names))))
    for cells in (before, after):
        columns = [column for column in (cells.item, cells.name, *cells.groups.values()) if column is not None]
        if len(columns) != len(shared) or not columns:
            return None
        keys.append(numbered(*(_renumbered(column, names) for column, names in zip(columns, shared, strict=True))))
    _, rows_before, rows_after = np.intersect1d(keys[0], keys[1], return_indices=True)
    return (before.at(rows_before), after.at(rows_after)) if len(rows_before) else None


def _renumbered(codes: Codes, names: tuple[str, ...]) -> Codes:
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of[name] for name in codes.names] + [-1])
    return Codes(numbers[codes.code], names)
