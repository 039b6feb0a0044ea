"""The verdict on a measure of responses: the whole difference, and what is left with the groups' own words masked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.dialogue.diversity import jackknifed_excess
from fairness_pipeline.measures.dialogue.measure import MASKED, Readings, Sides
from fairness_pipeline.measures.dialogue.registry import is_gap
from fairness_pipeline.statistics.clusters import cautious_mean
from fairness_pipeline.statistics.comparison import Clusterings, Comparison, adjusted
from fairness_pipeline.statistics.controls import EXPLAINED, p_as_large, p_smaller, too_small
from fairness_pipeline.statistics.intervals import Estimate, count_difference, of_interval
from fairness_pipeline.statistics.verdicts import ARTEFACT, joined_notes, on_content

SHOWS_THROUGH = "the exchanged words show through the mask"


@dataclass(frozen=True)
class Controls:
    """What could overrule a shown difference: the same answers with the groups' words masked, and those of a parrot.

    Args:
        values: Both readings of every measure that scores answers one by one, on both sides of every pair, by row.
        readings: Gives both readings of the answers, for diversity.
        blocks: The blocks of the jackknife of diversity.
        clusters: How pairs move together.
        leaking: The gap of a parrot's answers in the masked reading, by measure, if they have one.
    """

    values: Mapping[str, Sides]
    readings: Callable[[], Readings]
    blocks: int
    clusters: Clusterings = ()
    leaking: Mapping[str, Estimate] = field(default_factory=dict)

    def excess(self, row: Comparison) -> Estimate:
        """A row's difference with the groups' words masked minus its unmasked difference, in its unit."""
        if row.measure not in self.values:
            return self._of_diversity[row.measure]
        whole, masked = self.values[row.measure], self.values[row.measure + MASKED]
        excess = np.subtract(*masked, dtype=float) - np.subtract(*whole, dtype=float)
        over_pairs = count_difference(excess, np.zeros(len(excess)))
        return cautious_mean(excess, self.clusters, over_pairs).scaled(100.0 if row.unit == "percent" else 1.0)

    def p_masked(self, row: Comparison) -> float:
        """The p of the hypothesis that a row's difference is as large with the groups' words masked."""
        return p_smaller(row.difference, self.excess(row))

    def p_parrot(self, row: Comparison, neutral: Comparison) -> float:
        """The p of the hypothesis that a parrot makes less than half of a row's masked difference."""
        parrot = self.leaking.get(row.measure)
        if parrot is None:
            return 1.0
        masked = of_interval(neutral.difference, neutral.ci_low, neutral.ci_high)
        centre = parrot.centre - EXPLAINED * neutral.difference
        return p_as_large(neutral.difference, Estimate(centre, float(np.hypot(parrot.error, EXPLAINED * masked.error))))

    @cached_property
    def _of_diversity(self) -> Mapping[str, Estimate]:
        return jackknifed_excess(*self.readings(), self.blocks, self.clusters)


def judged(rows: list[Comparison], alpha: float, controls: Controls) -> list[Comparison]:
    """The rows with adjusted p and the verdicts that follow. The verdict on a measure combines both its readings.

    The unmasked measures form one family of Holm's, and their neutral readings another. Distinguishable answers are
    always read with the groups' words masked, and belong to the second family. Parts of measures form a third. A
    measure that is 0 in all responses belongs to no family: it cannot be rejected at any level (Tarone 1990).
    The row of a measure has the p of its neutral reading (`p_holm`, `p_bh`). If its verdict rests on the unmasked
    answers, it has twice their p, as there were two chances.

    Args:
        rows: The rows of each measure and of its neutral reading, whose name ends in `MASKED`.
        alpha: The level.
        controls: What could overrule a shown difference.
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
            by_name[name] = _on_both(by_name[name], by_name[name + MASKED], controls, alpha)
    return [by_name[row.measure] for row in rows]


def _on_both(row: Comparison, neutral: Comparison, controls: Controls, alpha: float) -> Comparison:
    """The row of a measure with the verdict on both of its readings."""
    overrules = row.verdict == "biased" != neutral.verdict
    p_control = controls.p_masked(row) if overrules else 1.0
    verdict = on_content(row.verdict, neutral.verdict, p_whole=row.p_holm, p_control=p_control, alpha=alpha)
    p_values, note = (neutral.p_holm, neutral.p_bh), ""
    if overrules and verdict == "biased":
        p_values = min(1.0, 2 * row.p_holm), min(1.0, 2 * row.p_bh)
        note = too_small(f"{row.n:,} pairs with the groups' words masked")
    elif verdict == "biased" and controls.p_parrot(row, neutral) < alpha:
        verdict, note = ARTEFACT, SHOWS_THROUGH
    notes = joined_notes(row.note, note)
    return replace(row, p_holm=p_values[0], p_bh=p_values[1], verdict=verdict, note=notes)
