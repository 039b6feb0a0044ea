"""The verdict on a measure of responses. The difference that is left after masking the groups' own words decides."""

from collections.abc import Collection
from dataclasses import replace

from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.dialogue.measure import MASKED
from fairness_pipeline.measures.dialogue.registry import is_gap
from fairness_pipeline.statistics.comparison import Comparison, adjusted
from fairness_pipeline.statistics.verdicts import on_content

SHOWS_THROUGH = "the exchanged words show through the mask"


def judged(rows: list[Comparison], alpha: float, leaking: Collection[str] = ()) -> list[Comparison]:
    """The rows with adjusted p and the verdicts that follow. The verdict on a measure combines both its readings.

    The measures as they are form one family of Holm's, and their neutral readings another; distinguishable answers are
    always read with the groups' words masked, and belong to that. Parts of measures form a third. A measure that no
    response shows belongs to none: it cannot be rejected, whatever the level (Tarone 1990).
    The row of a measure has the p of its neutral reading (`p_holm`, `p_bh`), on which its verdict rests.

    Args:
        rows: The rows of each measure and of its neutral reading, whose name ends in `MASKED`.
        alpha: The level.
        leaking: Measures whose neutral reading still reveals which group a context named. Nothing is biased in them.
    """
    whole = [row.measure for row in rows if is_gap(row.measure)]
    content = [*(name + MASKED for name in whole), DISTINGUISHABLE]
    unseen = [row.measure for row in rows if row.value_a == row.value_b == 0]
    families = (
        [name for name in whole if name not in unseen],
        [name for name in content if name not in unseen],
        [row.measure for row in rows if row.measure not in (*whole, *content, *unseen)],
        *([name] for name in unseen),
    )
    by_name = {
        row.measure: row
        for family in families
        for row in adjusted([row for row in rows if row.measure in family], alpha)
    }
    for name in whole:
        if name + MASKED in by_name:
            by_name[name] = _on_both(by_name[name], by_name[name + MASKED], name in leaking, alpha)
    return [by_name[row.measure] for row in rows]


def _on_both(row: Comparison, neutral: Comparison, leaks: bool, alpha: float) -> Comparison:
    left = neutral.difference / row.difference if row.difference else 0.0
    found = on_content(row.verdict, neutral.verdict, left=left, p=neutral.p_decides, alpha=alpha)
    note = SHOWS_THROUGH if leaks and found == "biased" else ""
    return replace(
        row,
        p_holm=neutral.p_holm,
        p_bh=neutral.p_bh,
        verdict="inconclusive" if note else found,
        note="; ".join(filter(None, [row.note, note])),
    )
