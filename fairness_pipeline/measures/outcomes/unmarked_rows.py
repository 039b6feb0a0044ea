"""The rows that compare groups with what says nothing of a group: all of them together, and each by itself."""

from collections.abc import Iterator
from dataclasses import replace

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.measures.outcomes.group_rows import GroupRows, Judging
from fairness_pipeline.measures.outcomes.rows import NOTHING, OMNIBUS, REFERENCE, SAID, SAID_OR_NOT, Judged


def unmarked_rows(name: str, outcome: Outcome, cells: OutcomeCells, judging: Judging) -> Iterator[Judged]:
    """By group column one row that carries a verdict, whether it matters that a group is said at all, and each group
    against the unmarked arm, corrected together. Of crossed columns all are said or none, so the first has that row.

    Args:
        name: The outcome.
        outcome: What it is.
        cells: Its cells, the unmarked ones among them.
        judging: How it is judged; its `unmarked` is the level at which nothing is said.

    Raises:
        NoMeeting: what is unmarked never meets a group in an item.
    """
    level = judging.unmarked
    assert level is not None
    columns = [column for column in judging.columns if level in cells.groups[column].names]
    for place, column in enumerate(columns):
        if place == 0:
            for row in GroupRows(name, outcome, cells.said_or_not(column, level), (column,), judging, None):
                if row.columns["contrast"] == OMNIBUS:
                    named = replace(row.row, measure=row.row.measure + SAID_OR_NOT)
                    yield replace(row, row=named, columns={**row.columns, "contrast": SAID})
        by_unmarked = replace(judging, reference={column: level})
        rows = GroupRows(name, outcome, cells, (column,), by_unmarked, None)
        yield from (
            replace(row, columns={**row.columns, "contrast": NOTHING})
            for row in rows
            if row.columns["contrast"] == REFERENCE
        )
