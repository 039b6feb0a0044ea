"""The rows that compare groups with the unmarked arm: all groups together, and each by itself."""

from collections.abc import Iterator
from dataclasses import replace

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.measures.outcomes.group_rows import GroupRows, Judging
from fairness_pipeline.measures.outcomes.rows import NOTHING, OMNIBUS, REFERENCE, SAID, SAID_OR_NOT, Judged


def unmarked_rows(name: str, outcome: Outcome, cells: OutcomeCells, judging: Judging) -> Iterator[Judged]:
    """For each group column, a row for each group against the unmarked arm, corrected together. The first column also
    has a row with a verdict on whether it matters that any group is said. (Crossed columns are all said, or none is.)

    Args:
        name: The name of the outcome.
        outcome: The specification of the outcome.
        cells: Its cells, the unmarked ones among them.
        judging: How it is judged; its `unmarked` is the level at which no group is said.

    Raises:
        NoMeeting: the unmarked arm never meets a group in an item.
    """
    level = judging.unmarked
    assert level is not None
    columns = [column for column in judging.columns if level in cells.groups[column].names]
    for index, column in enumerate(columns):
        if index == 0:
            for row in GroupRows(name, outcome, cells.mentioned_or_not(column, level), (column,), judging, None):
                if row.columns["contrast"] == OMNIBUS:
                    comparison = replace(row.row, measure=row.row.measure + SAID_OR_NOT)
                    yield replace(row, row=comparison, columns={**row.columns, "contrast": SAID})
        by_unmarked = replace(judging, reference={column: level})
        rows = GroupRows(name, outcome, cells, (column,), by_unmarked, None)
        yield from (
            replace(row, columns={**row.columns, "contrast": NOTHING})
            for row in rows
            if row.columns["contrast"] == REFERENCE
        )
