"""The rows of one outcome by group: the largest gap, each group, pairs, crossed groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import optional
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.measures.outcomes.group_effects import FEWEST_NAMES, GroupEffects, Interval
from fairness_pipeline.measures.outcomes.plain_test import PlainTest
from fairness_pipeline.measures.outcomes.rows import (
    BEYOND,
    CROSS,
    CROSSED,
    MOST_PAIRS,
    NAMES_AND_ITEMS,
    OMNIBUS,
    OTHERS,
    PAIR,
    REFERENCE,
    Judged,
    inside,
    margin_of,
    measure_of,
    unit_of,
)
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.comparison import AT_THE_END, Comparison
from fairness_pipeline.statistics.controls import EXPLAINED
from fairness_pipeline.statistics.effects import cohens_h
from fairness_pipeline.statistics.equivalence import Bound, tost
from fairness_pipeline.statistics.groups import Fit, NoMeeting, clusters_if_no_more_differ, index_of_pair
from fairness_pipeline.statistics.intervals import finite, quantile
from fairness_pipeline.statistics.relabelling import intersections
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.statistics.verdicts import TOO_FEW, too_few

_CROSSED = 0.8
"""The share of the crossed cells within items below which a column's gap may come from another column."""


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How outcomes are judged.

    Args:
        outcomes: By name.
        columns: The group columns.
        reference: The group with which the others are compared, by group column.
        alpha: The level.
        seed: The seed of all draws.
        is_control: Whether the cells are those of a condition that says nothing about the groups.
        unmarked: The level of the group columns at which nothing is said; None if there is none.
        fair_here: Whether `fair` is claimed for these names alone, as the groups have no other names here. A difference
            between groups must hold for other names, too.
    """

    outcomes: Mapping[str, Outcome]
    columns: tuple[str, ...]
    reference: Mapping[str, str] = field(default_factory=dict)
    alpha: float
    seed: int
    is_control: bool = False
    unmarked: str | None = optional()
    fair_here: bool | None = optional()


class GroupRows:
    """The rows of one outcome by one group column, or by two crossed.

    Args:
        name: The name of the outcome.
        outcome: The specification of the outcome.
        cells: Its cells.
        columns: The group columns.
        judging: How it is judged.
        control: The cells of a condition that adds nothing about the groups; None if there is none.

    Raises:
        NoMeeting: groups never meet in an item.
        FairnessError: a reference is no group.
    """

    def __init__(
        self,
        name: str,
        outcome: Outcome,
        cells: OutcomeCells,
        columns: tuple[str, ...],
        judging: Judging,
        control: OutcomeCells | None,
    ) -> None:
        group_cells, draws = cells.of_groups(columns)
        count = len(group_cells.groups)
        if count < 2:
            phrase = f"only group '{group_cells.groups[0]}'" if count else "no group"
            raise NoMeeting(
                f"outcome '{name}': {phrase} of '{CROSS.join(columns)}' shares an item with another group; at least "
                "two groups are needed"
            )
        reference = judging.reference.get(columns[0]) if len(columns) == 1 else None
        if reference is not None:
            if reference not in group_cells.groups:
                raise FairnessError(
                    f"reference: '{reference}' is not a group of '{columns[0]}'; its groups: "
                    f"{some(group_cells.groups, 8)}"
                )
            index = group_cells.groups.index(reference)
            first = np.array([group for group in range(count) if group != index])
            second = np.full(count - 1, index)
        else:
            first, second = np.triu_indices(count, 1)
        self._pair_contrast = REFERENCE if reference is not None else PAIR
        self._unit, self._scale = unit_of(outcome)
        self._effects = GroupEffects(group_cells, first, second, judging.seed, rates=self._unit == "percent")
        by_items = group_cells.name is not None and judging.fair_here
        self._for_fair = (
            GroupEffects(group_cells.without_names(), first, second, judging.seed, rates=self._unit == "percent")
            if by_items
            else self._effects
        )
        self._name, self._outcome, self._judging = name, outcome, judging
        self._columns, self._control = columns, control
        self._draws, self._deviation = draws, cells.deviation
        self._cells = cells
        overall = float((group_cells.value * draws).sum() / draws.sum())
        self._margin = margin_of(outcome, overall, cells.deviation)

    def __iter__(self) -> Iterator[Judged]:
        """The omnibus row, then those of single contrasts."""
        effects = self._effects
        yield self._omnibus()
        if not effects.enough_for_verdict:
            return
        count = len(effects.groups)
        if count > 2:
            p_of_others = self._for_fair.p_equivalence_to_others(self._margin / self._scale)
            for index, interval in enumerate(effects.intervals("others")):
                others = float(np.delete(effects.fit.values, index).mean())
                values = (float(effects.fit.values[index]), others)
                group, enough_data = effects.groups[index], effects.can_differ(index)
                plain, p_fair = self._plain.between([[index], np.delete(np.arange(count), index)]), p_of_others[index]
                yield self._single(
                    OTHERS, group, "the others", values, interval, float(p_fair), plain, enough_data=enough_data
                )
        if len(effects.first) <= MOST_PAIRS:
            indices = index_of_pair(effects.first, effects.second, count)
            listed = zip(effects.first, effects.second, indices, effects.intervals("contrasts"), strict=True)
            for a, b, pair, interval in listed:
                values = (float(effects.fit.values[a]), float(effects.fit.values[b]))
                enough_data, p_fair = (
                    effects.can_differ(a) and effects.can_differ(b),
                    float(self._p_fair_of_pairs[pair]),
                )
                groups, plain = (effects.groups[a], effects.groups[b]), self._plain.between([[a], [b]])
                yield self._single(
                    self._pair_contrast, *groups, values, interval, p_fair, plain, enough_data=enough_data
                )
        if len(self._columns) == 2 and not effects.cells.name is not None:
            yield from self._beyond_rows()

    def power(self) -> str:
        """What the table can show about the outcome, in words, before any verdict."""
        effects, unit = self._effects, UNITS[self._unit].rstrip()
        heading = f"{measure_of(self._name, self._columns)}: {number_of(len(effects.groups), 'group')}"
        sample = f"{heading}, {number_of(effects.sample, effects.unit)}{' a group' if effects.unit == 'name' else ''}"
        if not effects.enough_for_verdict:
            least = FEWEST_NAMES if effects.unit == "name" else FEWEST_TO_TELL
            return f"{sample}: too few to tell; {least} at least"
        if effects.at_floor:
            return f"{sample}: {self._floor_note(self._margin / self._scale)[0]}"
        least_gap = self._scale * effects.minimum_detectable(self._judging.alpha)
        detectable = f"finds a gap of about {least_gap:.3g}{unit} four times in five"
        if (needed := effects.needed(self._margin / self._scale)) is None:
            return f"{sample}: {detectable}"
        required = (
            f"about {needed:,} {effects.unit}s would show that no gap exceeds {self._margin:.3g}{unit}, if none does"
        )
        return f"{sample}: {detectable}; {required}"

    def _omnibus(self) -> Judged:
        effects, for_fair, alpha = self._effects, self._for_fair, self._judging.alpha
        margin = self._margin / self._scale
        fit, notes = effects.fit, list[str]()
        needed = for_fair.needed(margin)
        p, p_fair = effects.omnibus, float(self._p_fair_of_pairs.max())
        enough_data = effects.enough_for_verdict and effects.can_differ()
        fair = for_fair.enough_for_verdict and for_fair.enough_for_fair and p_fair <= alpha
        if effects.fixed:
            notes.append(f"in these {number_of(fit.clusters, 'item')}: too few to be a sample of others")
        if not effects.enough_for_verdict:
            by_names = effects.unit == "name"
            least = FEWEST_NAMES if by_names else FEWEST_TO_TELL
            notes.append(too_few(effects.sample, effects.unit, least) + (" in each group" if by_names else ""))
        elif for_fair.at_floor and (p >= alpha or not enough_data):
            note, needed = self._floor_note(margin, fair=fair)
            notes.append(note)
        elif not fair and p >= alpha:
            notes.append(f"the smallest margin that would be fair is {self._scale * for_fair.smallest_margin:.3g}")
        notes += self._crossing_notes
        gap = (for_fair if fair else effects).gap
        control = self._gap_in_control(gap.most, gap.least)
        if self._control is not None and not control:
            notes.append("the control has other groups, and is not compared")
        varies = gap.estimate.error > 0
        values = (float(fit.values[gap.most]), float(fit.values[gap.least]))
        row = self._row(
            values,
            (gap.estimate.centre, gap.low, gap.high),
            p,
            NAMES_AND_ITEMS if effects.unit == "name" else "labels exchanged within clusters",
            p_fair,
            effects.minimum_detectable(alpha) if varies else None,
            needed if varies or for_fair.at_floor else None,
            "; ".join(notes),
            self._plain.between([[index] for index in range(len(effects.groups))]),
        )
        columns = self._outcome_columns(
            OMNIBUS,
            effects.groups[gap.most],
            effects.groups[gap.least],
            by_chance=round(self._scale * effects.by_chance, 12),
            differing=int(np.median(effects.meetings.differing)),
            smallest_margin=self._scale * for_fair.smallest_margin,
            **control,
        )
        return Judged(row, columns, fair, enough_data)

    def _floor_note(self, margin: float, *, fair: bool = False) -> tuple[str, int | None]:
        """The note if too few clusters differ: the exact bound, and how many clusters would do if no more differ."""
        effects = self._for_fair
        unit = "name" if effects.unit == "name" else "cluster"
        per_group = " a group" if unit == "name" else ""
        differing, total = (
            int(np.median(column)) for column in (effects.meetings.differing, effects.meetings.clusters)
        )
        statement = f"the typical pair of groups differs in {differing} of {number_of(total, unit)}{per_group}"
        if self._unit != "percent":
            return f"{statement}: {TOO_FEW}; {effects.fewest_that_differ} at least", None
        enough = clusters_if_no_more_differ(differing, margin, self._judging.alpha)
        note = f"{statement}: {AT_THE_END} {100 * effects.largest_possible().max():.2g} points either way (exact, 95%)"
        condition = f"no more than {differing} differ" if differing else "none differs"
        return note if fair else f"{note}; {enough} {unit}s{per_group} would do if {condition}", enough

    @cached_property
    def _p_fair_of_pairs(self) -> np.ndarray:
        """The p that each pair of groups differs by the margin or more."""
        return self._for_fair.p_equivalence(self._margin / self._scale)

    def _single(
        self,
        contrast: str,
        group: str,
        against: str,
        values: tuple[float, float],
        interval: Interval,
        p_fair: float,
        plain: tuple[float, float],
        *,
        enough_data: bool,
    ) -> Judged:
        """The row of one contrast of groups, below the omnibus row."""
        ends = (interval.estimate.centre, interval.low, interval.high)
        row = self._row(values, ends, interval.p, "corrected together", p_fair, None, None, "", plain)
        fair = p_fair <= self._judging.alpha and self._for_fair.enough_for_fair
        return Judged(row, self._outcome_columns(contrast, group, against), fair, enough_data)

    def _beyond_rows(self) -> Iterator[Judged]:
        """The rows of the crossed groups beyond the sum of both columns' effects."""
        effects, alpha = self._effects, self._judging.alpha
        shape = tuple(len(self._cells.groups[column].names) for column in self._columns)
        assert len(shape) == 2
        result = intersections(effects.fit, shape, self._judging.seed)
        estimates = result.errors.estimates()
        margin = self._margin / self._scale
        index = int(np.argmax(np.abs(result.effects)))
        p_fair = max(tost(estimate, Bound(margin)).p for estimate in estimates)
        reach = max(quantile(1 - 0.025 / len(estimates), estimate.freedom) for estimate in estimates)
        ends = [(e.centre, e.centre - reach * e.error, e.centre + reach * e.error) for e in estimates]
        least = max(abs(e.centre) + quantile(0.95, e.freedom) * e.error for e in estimates)
        fair = p_fair <= alpha and effects.enough_for_fair and not effects.at_floor
        enough_data = effects.can_differ()
        note = "" if enough_data and not effects.at_floor else f"the clusters that differ are {TOO_FEW}"
        values = self._beyond_values(result.effects, index)
        detectable = (reach + quantile(0.8)) * estimates[index].error
        test = "levels exchanged within clusters"
        row = self._row(values, ends[index], result.omnibus, test, p_fair, detectable, None, note)
        columns = self._outcome_columns(
            BEYOND, effects.groups[index], "the sum of both", smallest_margin=self._scale * least
        )
        yield Judged(row, columns, fair, enough_data)
        for index, p in enumerate(result.each):
            values = self._beyond_values(result.effects, index)
            row = self._row(values, ends[index], float(p), "corrected together", 1.0, None, None, "")
            yield Judged(
                row, self._outcome_columns(CROSSED, effects.groups[index], "the sum of both"), False, enough_data
            )

    def _beyond_values(self, beyond: np.ndarray, index: int) -> tuple[float, float]:
        value = float(self._effects.fit.values[index])
        return value, value - float(beyond[index])

    def _gap_in_control(self, most: int, least: int) -> dict[str, float | None]:
        """The same gap in the control, and the p that it is less than half of this one."""
        if self._control is None:
            return {}
        control_cells, _ = self._control.of_groups(self._columns)
        groups = self._effects.groups
        if control_cells.groups != groups:
            return {}
        fit = Fit(control_cells)
        contrast = np.zeros((1, len(groups)))
        contrast[0, most], contrast[0, least] = 1.0, -1.0
        (gap_in_control,) = fit.errors(contrast).estimates()
        (gap,) = self._effects.errors(contrast).estimates()
        excess = gap_in_control.minus(gap.scaled(EXPLAINED))
        return {"control_gap": round(self._scale * gap_in_control.centre, 12), "p_control": excess.p_below(0.0)}

    def _row(
        self,
        values: tuple[float, float],
        interval: tuple[float, float, float],
        p: float,
        test: str,
        p_fair: float,
        detectable: float | None,
        needed: int | None,
        note: str,
        plain: tuple[float, float] | None = None,
    ) -> Comparison:
        effects, scale = self._effects, self._scale
        centre, low, high = interval
        rates = values if self._unit == "percent" else None
        size = cohens_h(*(min(1.0, max(0.0, rate)) for rate in rates)) if rates else None
        return Comparison(
            measure=measure_of(self._name, self._columns) + ("" if plain else f", {BEYOND}"),
            unit=self._unit,
            n=len(effects.cells.cluster),
            value_a=inside(scale * values[0], self._unit),
            value_b=inside(scale * values[1], self._unit),
            difference=round(scale * centre, 12),
            ci_low=finite(scale * low),
            ci_high=finite(scale * high),
            test=self._plain.name if plain else None,
            statistic=finite(plain[0]) if plain else None,
            p=plain[1] if plain else None,
            p_holm=p,
            p_bh=p,
            paired_test=test,
            p_paired=p,
            effect_size=size if rates else (centre / self._deviation if self._deviation else None),
            margin=self._margin,
            p_equivalence=min(1.0, p_fair),
            minimum_detectable=finite(scale * detectable) if detectable is not None else None,
            beyond_margin=bool(scale * low > self._margin or scale * high < -self._margin),
            clusters=effects.sample,
            effective_clusters=effects.effective,
            clusters_needed=needed,
            note=note,
        )

    @property
    def _crossing_notes(self) -> list[str]:
        """A note if other group columns are not crossed with this one within items."""
        share = self._cells.crossed(self._columns) if len(self._columns) == 1 else 1.0
        if share >= _CROSSED:
            return []
        return [f"other group columns are not crossed with {self._columns[0]} within items: the gap may be theirs"]

    @cached_property
    def _plain(self) -> PlainTest:
        return PlainTest(self._effects.cells, self._draws, self._cells, rates=self._unit == "percent")

    def _outcome_columns(self, contrast: str, group: str, against: str, **more: Any) -> dict[str, Any]:
        return {
            "outcome": self._name,
            "attribute": CROSS.join(self._columns),
            "contrast": contrast,
            "group": group,
            "against": against,
            **more,
        }
