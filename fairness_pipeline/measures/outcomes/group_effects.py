"""How one outcome depends on the groups: the estimates and p values of one group column, or of two crossed."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import scipy

from fairness_pipeline.statistics.clusters import FEWEST_FOR_FAIR, FEWEST_TO_TELL
from fairness_pipeline.statistics.equivalence import POWER, Bound, tost
from fairness_pipeline.statistics.group_names import NamedFit
from fairness_pipeline.statistics.groups import (
    Cells,
    Errors,
    Fit,
    Meetings,
    clusters_needed,
    each_against_others,
    index_of_pair,
    of_two,
    p_most_that_differ,
    pairs,
)
from fairness_pipeline.statistics.intervals import Estimate, most_that_differ, quantile
from fairness_pipeline.statistics.relabelling import Relabelled, relabel

FEWEST_THAT_DIFFER = 6
"""If fewer clusters differ between two groups, t has nothing to estimate from."""
FEWEST_FOR_T = 15
"""If fewer clusters differ, and most do not, t alone does not show that two groups' rates are alike: at a true gap of
the margin it did so in 12% of draws of 700 answers. Clusters count by weight: 4 of 60 answers and 700 of one are 58."""
FEWEST_NAMES = 5
"""With fewer names in a group, or fewer names that differ, no difference is reported."""


_LEVEL = 0.05
"""The level of the intervals."""


class Interval(NamedTuple):
    """A contrast with its p and its 95% interval, both corrected for all contrasts of its kind."""

    estimate: Estimate
    p: float
    low: float
    high: float

    @classmethod
    def of(cls, estimate: Estimate, reach: float, p: float, least: float = 0.0, *, few: bool = False) -> "Interval":
        """The interval of a given half-width. It contains 0 if p is 5% or more; otherwise it ends at 0 at the latest.

        Args:
            estimate: The contrast.
            reach: The half-width in standard errors.
            p: The p of the contrast.
            least: The least distance from 0 that the interval reaches, whatever the error.
            few: Whether so few clusters differ that only `least` is known, in both directions.
        """
        if few:
            return cls(estimate, p, -least, least)
        if estimate.error == 0 and not least:
            return cls(estimate, p, math.nan, math.nan)  # all clusters differ alike: nothing to estimate from
        half_width = max(reach, quantile(0.975, estimate.freedom)) * estimate.error
        half_width = (
            min(half_width, max(least, abs(estimate.centre))) if math.isinf(half_width) and least else half_width
        )
        half_width = max(half_width, abs(estimate.centre)) if p >= _LEVEL else half_width
        low, high = estimate.centre - half_width, estimate.centre + half_width
        above = estimate.centre >= 0
        low, high = (low, max(high, least)) if above else (min(low, -least), high)
        if p < _LEVEL:
            low, high = (max(low, 0.0), high) if above else (low, min(high, 0.0))
        return cls(estimate, p, low, high)


class LargestGap(NamedTuple):
    """The two groups that lie farthest apart.

    Attributes:
        most: The group with the highest outcome.
        least: The group with the lowest.
        estimate: Their difference, which overstates the true one; its error is that of the two groups.
        low: The largest lower limit of any pair, corrected for all pairs.
        high: The largest upper limit of any pair, not corrected.
    """

    most: int
    least: int
    estimate: Estimate
    low: float
    high: float


@dataclass(frozen=True)
class GroupEffects:
    """The groups' effects on one outcome, tested.

    Args:
        cells: The outcome's cells.
        first: (m,) the first group of each contrast of two groups that is listed.
        second: (m,) the second group of each.
        seed: The seed of all draws.
        rates: Whether outcomes are rates, which differ by no more than the share of clusters that differ.
    """

    cells: Cells
    first: np.ndarray
    second: np.ndarray
    seed: int
    rates: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self.cells.groups

    @cached_property
    def fit(self) -> Fit:
        """The effects, with clusters of items as the sample."""
        return self._named.fit if self._named else Fit(self.cells)

    @cached_property
    def _named(self) -> NamedFit | None:
        return NamedFit(self.cells) if self.cells.name is not None else None

    @cached_property
    def _relabelled(self) -> Relabelled | None:
        return None if self._named and self._named.fixed else relabel(self.fit, self.first, self.second, self.seed)

    # The sample

    @property
    def unit(self) -> Literal["cluster", "name"]:
        """The unit of the sample: names where names are a sample, as they are scarcer than clusters."""
        return "name" if self._named else "cluster"

    @property
    def fixed(self) -> bool:
        """Whether the items are too few to be a sample, so that results hold for them alone."""
        return self._named is not None and self._named.fixed

    @property
    def sample(self) -> int:
        """The number of clusters, or of names in the group with the fewest."""
        return self._named.fewest if self._named else self.fit.clusters

    @property
    def effective(self) -> float:
        """The number of clusters of equal size that would weigh as much."""
        return float(self._named.fewest) if self._named else self.fit.effective

    @property
    def enough_for_verdict(self) -> bool:
        """Whether the sample is large enough for any verdict."""
        return self.sample >= (FEWEST_NAMES if self._named else FEWEST_TO_TELL)

    @property
    def enough_for_fair(self) -> bool:
        """Whether every pair of groups meets in enough clusters for `fair`."""
        return all(sample.clusters.min() >= FEWEST_FOR_FAIR for sample in self._samples)

    @property
    def meetings(self) -> Meetings:
        """Where pairs of groups meet and differ: in clusters of items, or in names if these are a sample."""
        return self._samples[0]

    @cached_property
    def _samples(self) -> list[Meetings]:
        if self._named is None:
            return [self.fit.meetings]
        return [self._named.meetings] if self._named.fixed else [self._named.meetings, self.fit.meetings]

    @property
    def fewest_that_differ(self) -> int:
        """The fewest differing clusters (or names) from which a difference is reported."""
        return FEWEST_NAMES if self._named else FEWEST_THAT_DIFFER

    @property
    def at_floor(self) -> bool:
        """Whether too few clusters differ in the typical pair of groups."""
        return float(np.median(self.meetings.differing)) < self.fewest_that_differ

    def can_differ(self, group: int | None = None) -> bool:
        """Whether enough clusters differ in some pair of groups, or in some pair of one group, to tell a difference."""
        first, second = np.triu_indices(len(self.groups), 1)
        involved = np.ones(len(first), dtype=bool) if group is None else (first == group) | (second == group)
        return bool(self.meetings.differing[involved].max() >= self.fewest_that_differ)

    @cached_property
    def _few(self) -> np.ndarray:
        """(pairs,) whether so few clusters differ that t has nothing to estimate from."""
        fewest = [FEWEST_THAT_DIFFER if sample is self.fit.meetings else FEWEST_NAMES for sample in self._samples]
        return np.any([sample.differing < least for sample, least in zip(self._samples, fewest, strict=True)], axis=0)

    @cached_property
    def _bounded(self) -> np.ndarray:
        """(pairs,) whether few clusters differ, or the outcome is so rare that t alone is not enough."""
        if not self.rates:
            return self._few
        rare = [(sample.share < 0.5) & (sample.share * sample.even < FEWEST_FOR_T) for sample in self._samples]
        return np.any([self._few, *rare], axis=0)

    def largest_possible(self, alpha: float = _LEVEL) -> np.ndarray:
        """(pairs,) the exact upper limit of the share of clusters that differ; a rate differs by no more. Other
        outcomes have no limit.
        """
        if not self.rates:
            return np.full(len(self._few), math.inf)
        return np.max([most_that_differ(sample.differing, sample.effective, alpha) for sample in self._samples], axis=0)

    # Tests

    @cached_property
    def others(self) -> np.ndarray:
        """(k,) the p of each group against the mean of the others, corrected together."""
        p = self._relabelled.others if self._relabelled else np.zeros(len(self.groups))
        return np.maximum(p, self._named.others(self.seed)) if self._named else p

    @cached_property
    def contrasts(self) -> np.ndarray:
        """(m,) the p of each listed contrast of two groups, corrected together."""
        p = self._relabelled.contrasts if self._relabelled else np.zeros(len(self.first))
        weights = of_two(self.first, self.second, len(self.groups))
        return np.maximum(p, self._named.adjusted(weights, self.seed)) if self._named else p

    @property
    def omnibus(self) -> float:
        """The p that no group differs."""
        return float(self.others.min()) if self._named or not self._relabelled else self._relabelled.omnibus

    @property
    def by_chance(self) -> float:
        """The median of the largest gap if the labels are exchanged."""
        return self._named.by_chance(self.seed) if self._named else self._relabelled.by_chance  # type: ignore[union-attr]

    # Estimates

    def errors(self, contrasts: np.ndarray) -> Errors:
        """The contrasts with their errors."""
        return self._named.errors(contrasts) if self._named else self.fit.errors(contrasts)

    def intervals(self, kind: Literal["others", "contrasts"]) -> list["Interval"]:
        """Each contrast with its 95% interval, which holds for all of them together, and contains 0 if its test
        does not reject."""
        count = len(self.groups)
        weights = each_against_others(count) if kind == "others" else of_two(self.first, self.second, count)
        reach, p_values = self._reach(kind, len(weights)), self.others if kind == "others" else self.contrasts
        pair = index_of_pair(self.first, self.second, count)
        least, few = np.where(self._bounded, self.largest_possible(_LEVEL / len(weights)), 0.0), self._few
        if kind == "others":
            of_group = [np.flatnonzero(column != 0) for column in pairs(count).T]
            least = np.array([least[chosen].mean() if self._bounded[chosen].all() else 0.0 for chosen in of_group])
            few = np.array([few[chosen].all() for chosen in of_group])
        else:
            least, few = least[pair], few[pair]
        return [
            Interval.of(estimate, reach, float(p), float(least_reach), few=bool(is_few))
            for estimate, p, least_reach, is_few in zip(
                self.errors(weights).estimates(), p_values, least, few, strict=True
            )
        ]

    def _reach(self, kind: str, count: int) -> float:
        if self._named:
            return quantile(1 - 0.025 / count, max(1.0, float(self._named.fewest - 1)))
        assert self._relabelled
        return self._relabelled.reach_others if kind == "others" else self._relabelled.reach_contrasts

    @cached_property
    def gap(self) -> LargestGap:
        """The largest gap between two groups; its interval contains 0 if no group is shown to differ. With two
        groups it is the interval of their difference."""
        least = np.where(self._bounded, self.largest_possible(), 0.0)
        reach, estimates = self._reach("contrasts", len(self.first)), self._every_pair.estimates()
        lows = [abs(one.centre) - max(reach, quantile(0.975, one.freedom)) * one.error for one in estimates]
        low = max(0.0, *np.where(self._few, 0.0, lows))
        high = max(*(max(map(abs, one.interval(0.95))) for one in estimates), *least, 0.0)
        highest, lowest = int(np.argmax(self.fit.effects)), int(np.argmin(self.fit.effects))
        if highest == lowest:
            lowest = (highest + 1) % len(self.groups)
        contrast = of_two(np.array([highest]), np.array([lowest]), len(self.groups))
        gap = LargestGap(highest, lowest, self.errors(contrast).estimates()[0], float(low), float(high))
        if len(self.groups) == 2:
            interval = Interval.of(gap.estimate, 0.0, self.omnibus, float(least[0]), few=bool(self._few[0]))
            return gap._replace(low=interval.low, high=interval.high)
        if gap.estimate.error == 0 and not least.any():
            return gap._replace(low=math.nan, high=math.nan)
        return gap._replace(low=0.0) if self.omnibus >= _LEVEL else gap

    @cached_property
    def _every_pair(self) -> Errors:
        return self.errors(pairs(len(self.groups)))

    def p_equivalence(self, margin: float) -> np.ndarray:
        """The p that each pair of groups differs by the margin or more, by two one-sided tests: (pairs,). If few of
        many clusters differ, it is at least the p of the exact bound for rates, and 1 for other outcomes.
        """
        p = np.array([tost(estimate, Bound(margin)).p for estimate in self._every_pair.estimates()])
        return np.maximum(p, self._p_where_few_differ(margin))

    def p_equivalence_to_others(self, margin: float) -> np.ndarray:
        """The same for each group and the mean of the others: (k,)."""
        count = len(self.groups)
        p = np.array(
            [tost(estimate, Bound(margin)).p for estimate in self.errors(each_against_others(count)).estimates()]
        )
        first, second = np.triu_indices(count, 1)
        for groups in (first, second):
            np.maximum.at(p, groups, self._p_where_few_differ(margin))
        return p

    def _p_where_few_differ(self, margin: float) -> np.ndarray:
        """The p by the exact bound for pairs for which t is not enough, else 0: (pairs,)."""
        exact = np.ones(len(self._few))
        if self.rates:
            by_sample = [p_most_that_differ(sample.differing, sample.effective, margin) for sample in self._samples]
            exact = np.max(by_sample, axis=0)
        return np.where(self._bounded, exact, 0.0)

    @cached_property
    def smallest_margin(self) -> float:
        """The smallest margin for which every pair would be shown to be inside."""
        by_t = [
            abs(estimate.centre) + quantile(0.95, estimate.freedom) * estimate.error
            for estimate in self._every_pair.estimates()
        ]
        return float(np.max(np.where(self._bounded, np.maximum(by_t, self.largest_possible()), by_t)))

    def minimum_detectable(self, alpha: float) -> float:
        """The difference of one group from all others that the omnibus test would find with 80% power: for k groups
        of equal variance its statistic is noncentral chi-square of k - 1 degrees of freedom, widened as Student's t is.
        """
        count = len(self.groups)
        critical = scipy.special.chdtri(count - 1, alpha)
        noncentrality = float(scipy.special.chndtrinc(critical, count - 1, 1 - POWER))
        widening = quantile(1 - alpha / 2, float(np.median(self._every_pair.freedom))) / quantile(1 - alpha / 2)
        return widening * math.sqrt(noncentrality * count / (count - 1) / 2) * (self._named or self.fit).typical_error()

    def needed(self, margin: float) -> int | None:
        """The number of clusters (or of names a group) like these that would show that no two groups differ by the
        margin, with 80% power, if none differs."""
        return clusters_needed((self._named or self.fit).typical_error(), len(self.groups), self.effective, margin)
