"""The verdicts on a table's outcomes: whether they depend on the groups, on which, and by how much.

One row per outcome and group column carries the verdict: the omnibus test, with the largest gap between two groups.
The rows below it compare each group with the mean of the others, the pairs (or each group with a reference), and for
two columns the crossed groups with the sum of both. Their p is corrected together. docs/outcomes.md says why.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.specification import SIGNED, Outcome
from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.measures.outcomes.group_rows import GroupRows, Judging
from fairness_pipeline.measures.outcomes.group_words import word_rows
from fairness_pipeline.measures.outcomes.rows import (
    OMNIBUS,
    OUTCOME_SIGNIFICANCE,
    Judged,
    corrected,
    measure_of,
    unit_of,
)
from fairness_pipeline.measures.outcomes.side_rows import side_rows
from fairness_pipeline.measures.outcomes.unmarked_rows import unmarked_rows
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.statistics.groups import NoMeeting
from fairness_pipeline.statistics.verdicts import TOO_FEW

_MOST_UNREAD = 0.1
"""The largest share of unread answers: with more, the rest may not be typical of all."""


def judge_outcomes(
    cells: pa.Table, judging: Judging, control: pa.Table | None = None, words: pa.Table | None = None
) -> pa.Table:
    """A table of `OUTCOME_SIGNIFICANCE`.

    Args:
        cells: A table of `OUTCOME_CELLS`.
        judging: How outcomes are judged.
        control: The same for a condition that adds nothing about the groups; None if there is none.
        words: A table of `GROUP_WORDS`: whether answers can be told apart; None if that was not looked at.

    Raises:
        FairnessError: groups never meet in an item, or a reference is no group.
    """
    judged: list[Judged] = list(word_rows(words, judging.unmarked)) if words is not None else []
    for name, outcome in judging.outcomes.items():
        outcome_cells = OutcomeCells.of(cells, name, judging.columns)
        control_cells = OutcomeCells.of(control, name, judging.columns) if control is not None else None
        if len(outcome_cells.value):
            rows = list(_outcome_rows(name, outcome, outcome_cells, judging, control_cells))
            judged += (
                (row.without_verdict(outcome_cells.unread) for row in rows)
                if outcome_cells.unread > _MOST_UNREAD
                else rows
            )
    return pa.Table.from_pylist(
        corrected(judged, judging.alpha, is_control=judging.is_control), schema=OUTCOME_SIGNIFICANCE
    )


def _rare_row(name: str, outcome: Outcome, column: str) -> Judged:
    """The row of an outcome that so few answers have that its groups do not meet in the same questions."""
    note = f"so few answers have it that they are {TOO_FEW}"
    row = Comparison(measure_of(name, (column,)), unit_of(outcome)[0], note=note)
    columns = {"outcome": name, "attribute": column, "contrast": OMNIBUS, "group": "", "against": ""}
    return Judged(row, columns, fair=False, enough_data=False)


def _outcome_rows(
    name: str, outcome: Outcome, cells: OutcomeCells, judging: Judging, control: OutcomeCells | None
) -> Iterator[Judged]:
    if outcome.kind in SIGNED:
        yield from side_rows(name, outcome, cells, judging)
        return
    if cells.item is None and cells.name is None:
        return
    if judging.unmarked is not None:
        with suppress(NoMeeting):  # no item has this outcome both for a group and unmarked
            yield from unmarked_rows(name, outcome, cells, judging)
        cells = cells.without(judging.unmarked)
    for column in judging.columns:
        try:
            rows = list(GroupRows(name, outcome, cells, (column,), judging, control))
        except NoMeeting:
            if not judging.fair_here:
                raise  # a user's own table: its columns may be wrong
            yield _rare_row(name, outcome, column)
        else:
            yield from rows
    for both in combinations(judging.columns, 2):
        if len(cells.of_groups(both)[0].groups) == math.prod(len(cells.groups[column].names) for column in both):
            yield from GroupRows(name, outcome, cells, both, judging, control)
