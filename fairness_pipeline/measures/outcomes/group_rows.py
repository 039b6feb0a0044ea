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
from fairness_pipeline.statistics.groups import Fit, NoMeeting, clusters_if_no_more_differ, place_of_pair
from fairness_pipeline.statistics.intervals import finite, quantile
from fairness_pipeline.statistics.relabelling import intersections
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.statistics.verdicts import TOO_FEW, too_few

_CROSSED = 0.8
"""The share of the crossed cells within items below which a column's gap may be another column's."""


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How outcomes are judged.

    Args:
        outcomes: By name.
        columns: The group columns.
        reference: By group column the group with which the others are compared.
        alpha: The level.
        seed: The seed of all draws.
        is_control: Whether the cells are those of a condition that says nothing of the groups.
        unmarked: The level of the group columns at which nothing is said; None if there is none.
        fair_here: Whether `fair` is said of these names alone, which are all the ways in which a group is said here.
            That groups differ must hold for other names, too.
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
        name: The outcome.
        outcome: What it is.
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
        own, draws = cells.of_groups(columns)
        count = len(own.groups)
        if count < 2:
            there = f"only group '{own.groups[0]}'" if count else "no group"
            raise NoMeeting(
                f"outcome '{name}': {there} of '{CROSS.join(columns)}' stands in an item beside another; two at least "
                "are compared"
            )
        wanted = judging.reference.get(columns[0]) if len(columns) == 1 else None
        if wanted is not None:
            if wanted not in own.groups:
                raise FairnessError(
                    f"reference: '{wanted}' is no group of '{columns[0]}'; those: {some(own.groups, 8)}"
                )
            place = own.groups.index(wanted)
            first = np.array([group for group in range(count) if group != place])
            second = np.full(count - 1, place)
        else:
            first, second = np.triu_indices(count, 1)
        self._listed = REFERENCE if wanted is not None else PAIR
        self._unit, self._scale = unit_of(outcome)
        self._effects = GroupEffects(own, first, second, judging.seed, rates=self._unit == "percent")
        by_items = own.name is not None and judging.fair_here
        self._small = (
            GroupEffects(own.without_names(), first, second, judging.seed, rates=self._unit == "percent")
            if by_items
            else self._effects
        )
        self._name, self._outcome, self._judging = name, outcome, judging
        self._columns, self._control = columns, control
        self._draws, self._deviation = draws, cells.deviation
        self._whole = cells
        overall = float((own.value * draws).sum() / draws.sum())
        self._margin = margin_of(outcome, overall, cells.deviation)

    def __iter__(self) -> Iterator[Judged]:
        """The omnibus row, then those of single contrasts."""
        effects = self._effects
        yield self._omnibus()
        if not effects.enough_to_tell:
            return
        count = len(effects.groups)
        if count > 2:
            p_of_others = self._small.p_equivalence_to_others(self._margin / self._scale)
            for place, interval in enumerate(effects.intervals("others")):
                others = float(np.delete(effects.fit.values, place).mean())
                values = (float(effects.fit.values[place]), others)
                group, told = effects.groups[place], effects.can_differ(place)
                plain, p_fair = self._plain.between([[place], np.delete(np.arange(count), place)]), p_of_others[place]
                yield self._single(OTHERS, group, "the others", values, interval, float(p_fair), plain, told=told)
        if len(effects.first) <= MOST_PAIRS:
            places = place_of_pair(effects.first, effects.second, count)
            listed = zip(effects.first, effects.second, places, effects.intervals("contrasts"), strict=True)
            for a, b, pair, interval in listed:
                values = (float(effects.fit.values[a]), float(effects.fit.values[b]))
                told, p_fair = effects.can_differ(a) and effects.can_differ(b), float(self._p_of_pairs[pair])
                groups, plain = (effects.groups[a], effects.groups[b]), self._plain.between([[a], [b]])
                yield self._single(self._listed, *groups, values, interval, p_fair, plain, told=told)
        if len(self._columns) == 2 and not effects.cells.name is not None:
            yield from self._beyond()

    def power(self) -> str:
        """What the table can show of it, in words, before any verdict."""
        effects, unit = self._effects, UNITS[self._unit].rstrip()
        whole = f"{measure_of(self._name, self._columns)}: {number_of(len(effects.groups), 'group')}"
        sample = f"{whole}, {number_of(effects.sample, effects.unit)}{' a group' if effects.unit == 'name' else ''}"
        if not effects.enough_to_tell:
            least = FEWEST_NAMES if effects.unit == "name" else FEWEST_TO_TELL
            return f"{sample}: too few to tell; {least} at least"
        if effects.at_floor:
            return f"{sample}: {self._floor(self._margin / self._scale)[0]}"
        least_gap = self._scale * effects.minimum_detectable(self._judging.alpha)
        found = f"finds a gap of about {least_gap:.3g}{unit} four times in five"
        if (needed := effects.needed(self._margin / self._scale)) is None:
            return f"{sample}: {found}"
        shown = (
            f"about {needed:,} {effects.unit}s would show that no gap exceeds {self._margin:.3g}{unit}, if none does"
        )
        return f"{sample}: {found}; {shown}"

    def _omnibus(self) -> Judged:
        effects, small, alpha = self._effects, self._small, self._judging.alpha
        margin = self._margin / self._scale
        fit, notes = effects.fit, list[str]()
        needed = small.needed(margin)
        p, p_fair = effects.omnibus, float(self._p_of_pairs.max())
        told = effects.enough_to_tell and effects.can_differ()
        fair = small.enough_to_tell and small.enough_for_fair and p_fair <= alpha
        if effects.fixed:
            notes.append(f"in these {number_of(fit.clusters, 'item')}: too few to be a sample of others")
        if not effects.enough_to_tell:
            named = effects.unit == "name"
            least = FEWEST_NAMES if named else FEWEST_TO_TELL
            notes.append(too_few(effects.sample, effects.unit, least) + (" in each group" if named else ""))
        elif small.at_floor and (p >= alpha or not told):
            note, needed = self._floor(margin, fair=fair)
            notes.append(note)
        elif not fair and p >= alpha:
            notes.append(f"the smallest margin that would be fair is {self._scale * small.smallest_margin:.3g}")
        notes += self._unbalanced
        shown = (small if fair else effects).gap
        control = self._gap_in_control(shown.most, shown.least)
        if self._control is not None and not control:
            notes.append("the control has other groups, and is not compared")
        varies = shown.estimate.error > 0
        pair = (float(fit.values[shown.most]), float(fit.values[shown.least]))
        row = self._row(
            pair,
            (shown.estimate.centre, shown.low, shown.high),
            p,
            NAMES_AND_ITEMS if effects.unit == "name" else "labels exchanged within clusters",
            p_fair,
            effects.minimum_detectable(alpha) if varies else None,
            needed if varies or small.at_floor else None,
            "; ".join(notes),
            self._plain.between([[place] for place in range(len(effects.groups))]),
        )
        own = self._own(
            OMNIBUS,
            effects.groups[shown.most],
            effects.groups[shown.least],
            by_chance=round(self._scale * effects.by_chance, 12),
            differing=int(np.median(effects.meetings.differing)),
            smallest_margin=self._scale * small.smallest_margin,
            **control,
        )
        return Judged(row, own, fair, told)

    def _floor(self, margin: float, *, fair: bool = False) -> tuple[str, int | None]:
        """What is said where too few clusters differ: the exact bound, and how many clusters would do if none does."""
        effects = self._small
        where = "name" if effects.unit == "name" else "cluster"
        of_group = " a group" if where == "name" else ""
        differ, of = (int(np.median(column)) for column in (effects.meetings.differing, effects.meetings.clusters))
        told = f"the typical pair of groups differs in {differ} of {number_of(of, where)}{of_group}"
        if self._unit != "percent":
            return f"{told}: {TOO_FEW}; {effects.fewest_that_differ} at least", None
        enough = clusters_if_no_more_differ(differ, margin, self._judging.alpha)
        note = f"{told}: {AT_THE_END} {100 * effects.largest_possible().max():.2g} points either way (exact, 95%)"
        if_so = f"no more than {differ} differ" if differ else "none differs"
        return note if fair else f"{note}; {enough} {where}s{of_group} would do if {if_so}", enough

    @cached_property
    def _p_of_pairs(self) -> np.ndarray:
        """The p that each pair of groups differs by the margin or more."""
        return self._small.p_equivalence(self._margin / self._scale)

    def _single(
        self,
        contrast: str,
        group: str,
        against: str,
        values: tuple[float, float],
        own: Interval,
        p_fair: float,
        plain: tuple[float, float],
        *,
        told: bool,
    ) -> Judged:
        """One contrast of groups below the omnibus row."""
        ends = (own.estimate.centre, own.low, own.high)
        row = self._row(values, ends, own.p, "corrected together", p_fair, None, None, "", plain)
        fair = p_fair <= self._judging.alpha and self._small.enough_for_fair
        return Judged(row, self._own(contrast, group, against), fair, told)

    def _beyond(self) -> Iterator[Judged]:
        """The crossed groups beyond the sum of both columns' effects."""
        effects, alpha = self._effects, self._judging.alpha
        shape = tuple(len(self._whole.groups[column].names) for column in self._columns)
        assert len(shape) == 2
        found = intersections(effects.fit, shape, self._judging.seed)
        estimates = found.errors.estimates()
        margin = self._margin / self._scale
        place = int(np.argmax(np.abs(found.effects)))
        p_fair = max(tost(estimate, Bound(margin)).p for estimate in estimates)
        reach = max(quantile(1 - 0.025 / len(estimates), estimate.freedom) for estimate in estimates)
        ends = [(e.centre, e.centre - reach * e.error, e.centre + reach * e.error) for e in estimates]
        least = max(abs(e.centre) + quantile(0.95, e.freedom) * e.error for e in estimates)
        fair = p_fair <= alpha and effects.enough_for_fair and not effects.at_floor
        told = effects.can_differ()
        note = "" if told and not effects.at_floor else f"the clusters that differ are {TOO_FEW}"
        values = self._beyond_values(found.effects, place)
        detectable = (reach + quantile(0.8)) * estimates[place].error
        test = "levels exchanged within clusters"
        row = self._row(values, ends[place], found.omnibus, test, p_fair, detectable, None, note)
        own = self._own(BEYOND, effects.groups[place], "the sum of both", smallest_margin=self._scale * least)
        yield Judged(row, own, fair, told)
        for place, p in enumerate(found.each):
            values = self._beyond_values(found.effects, place)
            row = self._row(values, ends[place], float(p), "corrected together", 1.0, None, None, "")
            yield Judged(row, self._own(CROSSED, effects.groups[place], "the sum of both"), False, told)

    def _beyond_values(self, beyond: np.ndarray, place: int) -> tuple[float, float]:
        value = float(self._effects.fit.values[place])
        return value, value - float(beyond[place])

    def _gap_in_control(self, most: int, least: int) -> dict[str, float | None]:
        """The same gap in the control, and the p that it is less than half of this one."""
        if self._control is None:
            return {}
        own, _ = self._control.of_groups(self._columns)
        groups = self._effects.groups
        if own.groups != groups:
            return {}
        fit = Fit(own)
        contrast = np.zeros((1, len(groups)))
        contrast[0, most], contrast[0, least] = 1.0, -1.0
        (there,) = fit.errors(contrast).estimates()
        (here,) = self._effects.errors(contrast).estimates()
        excess = there.minus(here.scaled(EXPLAINED))
        return {"control_gap": round(self._scale * there.centre, 12), "p_control": excess.p_below(0.0)}

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
        share = values if self._unit == "percent" else None
        size = cohens_h(*(min(1.0, max(0.0, each)) for each in share)) if share else None
        return Comparison(
            measure=measure_of(self._name, self._columns) + ("" if plain else f", {BEYOND}"),
            unit=self._unit,
            n=len(effects.cells.cluster),
            value_a=inside(scale * values[0], self._unit),
            value_b=inside(scale * values[1], self._unit),
            difference=round(scale * centre, 12),
            difference_percent=None,
            ci_low=finite(scale * low),
            ci_high=finite(scale * high),
            test=self._plain.name if plain else None,
            statistic=finite(plain[0]) if plain else None,
            p=plain[1] if plain else None,
            p_holm=p,
            p_bh=p,
            paired_test=test,
            paired_statistic=None,
            p_paired=p,
            effect_size=size if share else (centre / self._deviation if self._deviation else None),
            margin=self._margin,
            p_equivalence=min(1.0, p_fair),
            minimum_detectable=finite(scale * detectable) if detectable is not None else None,
            verdict="inconclusive",
            paper_verdict=None,
            beyond_margin=bool(scale * low > self._margin or scale * high < -self._margin),
            clusters=effects.sample,
            effective_clusters=effects.effective,
            clusters_needed=needed,
            note=note,
        )

    @property
    def _unbalanced(self) -> list[str]:
        """A note if other group columns are not crossed with this one within items."""
        share = self._whole.crossed(self._columns) if len(self._columns) == 1 else 1.0
        if share >= _CROSSED:
            return []
        return [f"other group columns are not crossed with {self._columns[0]} within items: the gap may be theirs"]

    @cached_property
    def _plain(self) -> PlainTest:
        return PlainTest(self._effects.cells, self._draws, self._whole, rates=self._unit == "percent")

    def _own(self, contrast: str, group: str, against: str, **more: Any) -> dict[str, Any]:
        return {
            "outcome": self._name,
            "attribute": CROSS.join(self._columns),
            "contrast": contrast,
            "group": group,
            "against": against,
            **more,
        }
