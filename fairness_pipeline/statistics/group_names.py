"""Effects of groups that names represent, with the names as a sample, too: answers vary from name to name.

V = max(V_items, V_names, V_items + V_names - V_cells), with V_names = sum of l_g^2 var(names of g) / J_g (Welch 1947),
for a contrast l of the groups and J_g names of group g. With only the items as the sample, 13 to 99% of null draws are
significant if names matter; with only the names, up to 94% are if items matter.

If an item has few names, its mean contains a large part of each. What a name adds to that mean then varies less than
the name's effect s: it is (I - W) s, with W_jj' the mean share of name j' in the items of name j. So the part of
V_names beyond the spread within names is divided by the share that is left: (k - 1) / k if each item has one name of
each of k groups, and names always meet the same others. Without this, 15% of null draws of two groups are significant
if names matter; with it, 5%.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.groups import Cells, Errors, Fit, Meetings, each_against_others, pairs, quadratic
from fairness_pipeline.statistics.intervals import combined
from fairness_pipeline.statistics.relabelling import DRAWS, below_draws

_MOST_NAMES = 3000
"""With more names, their degrees of freedom are approximated."""
FEWEST_ITEMS = 8
"""With fewer clusters the items are no sample: results hold for these items alone."""


class NamedFit:
    """The groups' effects in cells with names.

    Args:
        cells: The cells; each name belongs to one group.

    Attributes:
        fit: The effects, with the items as the sample.
        of_name: (names,) what each name adds to the item's mean.
        left: The shares of the names' variance and degrees of freedom that are left in `of_name`.
        group_of: (names,) the group of each name.
        fixed: Whether the items are too few to be a sample.
    """

    def __init__(self, cells: Cells) -> None:
        assert cells.name is not None
        self.fit = Fit(cells)
        self._cells = cells
        count, names = len(cells.groups), int(cells.name.max()) + 1
        self.fixed = self.fit.clusters < FEWEST_ITEMS
        self.group_of = np.zeros(names, dtype=np.int64)
        self.group_of[cells.name] = cells.group
        residual = cells.value - self.fit.effects[cells.group]
        items = np.bincount(cells.item, residual) / np.bincount(cells.item)
        self.of_name = np.bincount(cells.name, cells.value - items[cells.item]) / np.bincount(cells.name)
        self._sizes = np.bincount(self.group_of, minlength=count)
        means = np.bincount(self.group_of, self.of_name, count) / self._sizes
        squares = np.bincount(self.group_of, np.square(self.of_name - means[self.group_of]), count)
        self._variances = squares / np.maximum(self._sizes - 1, 1) / self._sizes
        self.left = _remaining(cells, self.group_of)

    @property
    def fewest(self) -> int:
        """The names of the group with the fewest."""
        return int(self._sizes.min())

    def errors(self, contrasts: np.ndarray) -> Errors:
        """The contrasts with errors over names, and over items if these are a sample.

        Args:
            contrasts: (m, k) weights of the groups, each with sum 0.
        """
        names, freedom = self._over_names(contrasts)
        within = quadratic(contrasts, self._within)
        names, pooled = self._restored(names, within), np.sqrt(self._restored(self._pooled(contrasts), within))
        over_items = self.fit.errors(contrasts)
        if self.fixed or self.fewest < 2:
            error = np.sqrt(names) if self.fewest > 1 else np.full(len(contrasts), np.inf)
            return Errors(over_items.centre, error, np.maximum(error, pooled), freedom)
        items, over_cells = np.square(over_items.error), quadratic(contrasts, self.fit.covariance_over_cells())
        variance = np.maximum(np.maximum(items, names), items + names - over_cells)
        freedoms = [
            combined(
                0.0, [(float(item_variance), float(item_freedom)), (float(name_variance), float(name_freedom))]
            ).freedom
            for item_variance, item_freedom, name_variance, name_freedom in zip(
                items, over_items.freedom, names, freedom, strict=True
            )
        ]
        error = np.sqrt(variance)
        widest = np.maximum(np.maximum(error, over_items.widest), pooled)
        return Errors(over_items.centre, error, widest, np.array(freedoms))

    def _restored(self, names: np.ndarray, within_names: np.ndarray) -> np.ndarray:
        """The variance over names, including the part that the items' means absorb."""
        return names + (1 / self.left.variance - 1) * np.maximum(0.0, names - within_names)

    @cached_property
    def _within(self) -> np.ndarray:
        """The covariance of the effects that comes from within names, (k, k)."""
        cells = self._cells
        return Fit(cells._replace(value=cells.value - self.of_name[cells.name])).covariance_over_cells()

    def _over_names(self, contrasts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The variance over names, and its degrees of freedom (Welch 1947)."""
        parts = np.square(contrasts) * self._variances
        total = parts.sum(axis=1)
        squares = (np.square(parts) / np.maximum(self._sizes - 1, 1)).sum(axis=1)
        least = float(max(1, self.fewest - 1))
        freedom = np.where(squares > 0, np.square(total) / np.where(squares > 0, squares, 1.0), least)
        return total, np.maximum(1.0, self.left.freedom * freedom)

    def _pooled(self, contrasts: np.ndarray) -> np.ndarray:
        """The variance over names if names vary equally in every group."""
        freedom = np.maximum(self._sizes - 1, 0)
        variance = (self._variances * self._sizes * freedom).sum() / max(1, freedom.sum())
        return (np.square(contrasts) / self._sizes).sum(axis=1) * variance

    def adjusted(self, contrasts: np.ndarray, seed: int) -> np.ndarray:
        """The p of each contrast over names and items, never below that of shuffling the names, adjusted by Holm: (m,).

        Args:
            contrasts: (m, k) weights of the groups, each with sum 0.
            seed: The seed of the shuffles.
        """
        random, count = np.random.default_rng(seed), len(self._sizes)

        def distances(groups: np.ndarray) -> np.ndarray:
            return np.abs(contrasts @ (np.bincount(groups, self.of_name, count) / self._sizes))

        observed, single = distances(self.group_of), self.errors(contrasts).p
        drawn = np.stack([distances(random.permutation(self.group_of)) for _ in range(DRAWS)])
        p = ((drawn >= observed * (1 - 1e-9)).sum(axis=0) + 1) / (DRAWS + 1)
        return np.array(holm(np.maximum(single, below_draws(p, DRAWS, single)).tolist()))

    def others(self, seed: int) -> np.ndarray:
        """The adjusted p of each group against the mean of the others: (k,). Two groups make one contrast."""
        count = len(self._sizes)
        if count == 2:
            return np.repeat(self.adjusted(pairs(2), seed), 2)
        return self.adjusted(each_against_others(count), seed)

    def by_chance(self, seed: int) -> float:
        """The median of the largest gap between two groups when the names' groups are shuffled."""
        random, count = np.random.default_rng(seed), len(self._sizes)
        gaps = [
            np.ptp(np.bincount(random.permutation(self.group_of), self.of_name, count) / self._sizes)
            for _ in range(DRAWS)
        ]
        return float(np.median(gaps))

    @cached_property
    def meetings(self) -> Meetings:
        """For each pair of groups, the names of the smaller one, and how many names of both deviate from the median
        name. Their rates differ by no more than the share of the smaller group's names that deviate."""
        deviates = np.abs(self.of_name - np.median(self.of_name)) > 1e-9 * max(
            1e-300, float(np.abs(self.of_name).max())
        )
        deviating = np.bincount(self.group_of, deviates, len(self._sizes))
        first, second = np.triu_indices(len(self._sizes), 1)
        fewest = np.minimum(self._sizes[first], self._sizes[second]).astype(float)
        deviating_of_both = deviating[first] + deviating[second]
        share = deviating_of_both / (self._sizes[first] + self._sizes[second])
        return Meetings(fewest, deviating_of_both, fewest, share, fewest)

    def typical_error(self) -> float:
        """The error of a typical pair of groups."""
        return math.sqrt(float(np.square(self.errors(pairs(len(self._sizes))).widest).mean()))


class _Remaining(NamedTuple):
    """The shares of the names' variance within groups, and of its degrees of freedom (Satterthwaite's), that are left
    after the items' means are subtracted."""

    variance: float
    freedom: float


def _remaining(cells: Cells, group_of: np.ndarray) -> _Remaining:
    """tr K / n and (tr K)^2 / (n tr K^2), with K = C (I - W)(I - W)' C, where C centres within groups and n = tr C."""
    assert cells.name is not None
    names, items = len(group_of), int(cells.item.max()) + 1
    incidence = sparse.csr_array((np.ones(len(cells.name)), (cells.name, cells.item)), (names, items))
    of_item = sparse.csr_array(incidence / np.maximum(incidence.sum(axis=0), 1))
    of_name = sparse.csr_array(incidence / np.maximum(incidence.sum(axis=1), 1)[:, None])
    trace, freedom, rows = 0.0, 0, list[np.ndarray]()
    for group in range(len(cells.groups)):
        members = np.flatnonzero(group_of == group)
        deviations = -(of_name[members] @ of_item.T).toarray()
        deviations[np.arange(len(members)), members] += 1
        deviations -= deviations.mean(axis=0)
        trace += float(np.square(deviations).sum())
        freedom += len(members) - 1
        rows += [deviations] if names <= _MOST_NAMES else []
    if trace <= 0:
        return _Remaining(1.0, 1.0)
    stacked = np.concatenate(rows) if rows else None
    squares = float(np.square(stacked @ stacked.T).sum()) if stacked is not None else trace
    return _Remaining(min(1.0, trace / freedom), min(1.0, trace**2 / squares / freedom))
