"""Tests whether groups of annotators call different items positive. Equal mean rates do not mean equal labelling.

Two groups that are opposite on every item have the same mean rate. The interaction of item and group reveals this: how
far the groups' rates of single items differ, beyond the variation of single labels.
"""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.welch import of_like_labour

DRAWS, SEED = 999, 0
_ENOUGH = 20
"""After this many draws that reach the statistic, no more are needed: p is far above any level."""
_ROUNDS = 5
FEWEST_ITEMS = 100
"""The number of items with two labels from each group that `fair` needs."""
ITEM_MARGIN = 0.15
"""A typical difference of a single item's rates that does not matter. Most data could not show a smaller one."""


class ItemsByGroup(NamedTuple):
    """How groups label single items; of more than two groups the pair that differs most or is known least.

    Attributes:
        p: The p of no interaction. Groups are exchanged among raters with a similar number of labels.
        excess: The statistic as a multiple of its value by chance. It is 1 without an interaction.
        typical: The root mean square of the items' true differences, 0..1. It is 0 if chance explains all of it.
        upper: Its upper 95% bound. Infinite if nothing is known.
        p_small: The p of the hypothesis that it is at or above `ITEM_MARGIN`.
        items: The number of items with at least two labels from each group, on which the last three values rest.
    """

    p: float
    excess: float
    typical: float
    upper: float
    p_small: float
    items: int

    @property
    def small(self) -> bool:
        """Whether the typical difference is shown to be small."""
        return self.items >= FEWEST_ITEMS and self.p_small <= 0.05


def items_by_group(labels: Labels, sides: np.ndarray, draws: int = DRAWS) -> ItemsByGroup:
    """Tests the interaction, and bounds the typical difference of an item from above.

    Args:
        labels: The labels of all annotators.
        sides: The group of each annotator, from 0; -1 if it is unknown.
        draws: The number of exchanges of the raters' groups.
    """
    p, excess = _interaction(labels, sides, draws)
    pairs = combinations(range(int(sides.max(initial=1)) + 1), 2)
    results = [_typical(labels, np.select([sides == a, sides == b], [0, 1], -1)) for a, b in pairs]
    typical, upper, p_small, items = zip(*results, strict=True)
    return ItemsByGroup(p, excess, max(typical), max(upper), max(p_small), min(items))


def _interaction(labels: Labels, sides: np.ndarray, draws: int) -> tuple[float, float]:
    """p, and the ratio to chance. For each item, sum_g n_g d_g^2 minus what chance would give, sum_g (1 - n_g / n)
    s_g^2; d_g is how far a group's rate of the item differs from the item's, beyond the groups' own levels, s_g^2 the
    variance of its labels of the item. The statistic is the mean over items divided by its error, as labels may vary
    more in a small group than in a large one.

    Each rater's own strictness is removed first (alternating means of items and raters), so that a strict rater of one
    group does not count as an interaction. Groups are permuted within strata of raters with a similar number of
    labels.
    """
    known = sides[labels.annotator] >= 0
    item, annotator, z = labels.item[known], labels.annotator[known], labels.label[known].astype(float)
    y = z - strictness(item, annotator, z, len(labels.items), len(sides))
    labour = np.bincount(annotator, minlength=len(sides))
    strata = of_like_labour(labour, np.where(labour > 0, sides, -1))
    beyond, chance = _beyond_chance(item, y, sides[annotator], len(labels.items))
    if len(beyond) < 2:
        return 1.0, 1.0
    observed = _studentized(beyond)
    random = np.random.default_rng(SEED)
    reached, made = 0, 0
    while made < draws and reached < _ENOUGH:
        drawn = sides.copy()
        for stratum in strata:
            drawn[stratum] = random.permutation(sides[stratum])
        made += 1
        reached += _studentized(_beyond_chance(item, y, drawn[annotator], len(labels.items))[0]) >= observed - 1e-9
    return (reached + 1) / (made + 1), 1 + float(beyond.sum()) / chance if chance > 0 else 1.0


def _studentized(beyond: np.ndarray) -> float:
    """The mean over items, divided by its error; 0 if nothing varies."""
    spread = float(beyond.std()) if len(beyond) > 1 else 0.0
    return float(beyond.mean()) * math.sqrt(len(beyond)) / spread if spread > 0 else 0.0


def strictness(item: np.ndarray, person: np.ndarray, z: np.ndarray, items: int, people: int) -> np.ndarray:
    """For each label: how much more often its rater says positive than others do on the same items."""
    per_item, per_person = np.bincount(item, minlength=items), np.bincount(person, minlength=people)
    rater = np.zeros(people)
    for _ in range(_ROUNDS):
        of_item = np.bincount(item, z - rater[person], items) / np.maximum(per_item, 1)
        rater = np.bincount(person, z - of_item[item], people) / np.maximum(per_person, 1)
    return np.asarray(rater[person])


def _beyond_chance(item: np.ndarray, y: np.ndarray, group: np.ndarray, items: int) -> tuple[np.ndarray, float]:
    """(items,) how much more the groups' rates of an item vary than by chance, for items that two groups labelled; and
    the sum over items of the variation by chance. A single label varies like its group's labels of other items."""
    count = int(group.max()) + 1
    cell = group * items + item
    counts, sums, squares = (
        np.bincount(cell, weights, count * items).reshape(count, items) for weights in (None, y, np.square(y))
    )
    # Where a group hardly ever labels an item twice, nothing tells how much its single labels vary.
    rarely_twice = 2 * (counts > 1).sum(axis=1) < (counts == 1).sum(axis=1)
    counts[rarely_twice[:, None] & (counts == 1)] = 0
    shared = (counts > 0).sum(axis=0) > 1
    if shared.sum() < 2:
        return np.zeros(0), 0.0
    counts = counts[:, shared]
    sums, squares = (np.where(counts > 0, values[:, shared], 0.0) for values in (sums, squares))
    totals = counts.sum(axis=0)
    rate, share = sums / np.maximum(counts, 1), counts / totals
    deviation = rate - sums.sum(axis=0) / totals
    # The groups' own levels c, by least squares: d_g = deviation_g - (c_g - the item's mean of c).
    normal = np.diag(counts.sum(axis=1)) - counts @ share.T
    level = np.linalg.lstsq(normal, (counts * deviation).sum(axis=1), rcond=None)[0]
    deviation = deviation - (level[:, None] - level @ share)
    within, freedom = np.maximum(squares - counts * np.square(rate), 0.0), np.maximum(counts - 1, 0)
    common = within.sum(axis=1, keepdims=True) / np.maximum(freedom.sum(axis=1, keepdims=True), 1)
    chance = ((1 - share) * np.where(freedom > 0, within / np.maximum(freedom, 1), common) * (counts > 0)).sum(axis=0)
    return (counts * np.square(deviation)).sum(axis=0) - chance, float(chance.sum())


def _typical(labels: Labels, sides: np.ndarray) -> tuple[float, float, float, int]:
    """The typical difference of an item with its upper bound, the p of its being large, and the number of items.

    u = (a - b)^2 - a (1 - a) / (n_a - 1) - b (1 - b) / (n_b - 1) is unbiased for an item's squared difference. theta is
    its mean, weighted by V^2. Its variance is the larger of the jackknives over items and over raters (within groups).
    """
    side = sides[labels.annotator]
    size = len(labels.items)
    counts = np.stack([np.bincount(labels.item[side == g], minlength=size) for g in (0, 1)])
    sums = np.stack([np.bincount(labels.item[side == g], labels.label[side == g], size) for g in (0, 1)])
    chosen = np.asarray((counts >= 2).all(axis=0))
    n = int(chosen.sum())
    unknown = (0.0, math.inf, 1.0, n)
    if n < 2:
        return unknown
    u, w = _unbiased(counts[:, chosen], sums[:, chosen])
    total = float(w.sum())
    theta = float((w * u).sum()) / total
    without = (theta * total - w * u) / (total - w)
    item_variance = (n - 1) / n * float(np.square(without - without.mean()).sum())
    kept = (side >= 0) & chosen[labels.item]
    position = np.cumsum(chosen) - 1
    item, annotator, g, z = position[labels.item[kept]], labels.annotator[kept], side[kept], labels.label[kept]
    counts_without, sums_without = counts[:, chosen][:, item].copy(), sums[:, chosen][:, item].copy()
    rows = np.arange(len(item))
    counts_without[g, rows] -= 1
    sums_without[g, rows] -= z
    u_without, w_without = _unbiased(counts_without, sums_without)
    rater_variance, effective = 0.0, math.inf
    for group in (0, 1):
        in_group = g == group
        change = np.bincount(annotator[in_group], (w_without * u_without - (w * u)[item])[in_group], len(sides))
        change_w = np.bincount(annotator[in_group], (w_without - w[item])[in_group], len(sides))
        labour = np.bincount(annotator[in_group], minlength=len(sides))
        present = labour > 0
        raters = int(present.sum())
        if raters < 2:
            return unknown
        remaining = total + change_w[present]
        if (remaining <= 0).any():
            return unknown
        estimates = (theta * total + change[present]) / remaining
        rater_variance += (raters - 1) / raters * float(np.square(estimates - estimates.mean()).sum())
        effective = min(effective, float(labour.sum() ** 2 / np.square(labour).sum()))
    estimate = Estimate(theta, math.sqrt(max(item_variance, rater_variance)), max(1.0, effective - 1))
    upper = math.sqrt(max(0.0, estimate.interval(0.9)[1]))
    return math.sqrt(max(0.0, theta)), upper, estimate.p_above(ITEM_MARGIN**2), n


def _unbiased(counts: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u and its weight V^2 for each item. Both are 0 if a group has a single label."""
    rates = sums / np.maximum(counts, 1)
    enough = (counts >= 2).all(axis=0)
    noise = (rates * (1 - rates) / np.maximum(counts - 1, 1)).sum(axis=0)
    u = np.square(rates[0] - rates[1]) - noise
    weight = np.square(counts[0] * counts[1] / np.maximum(counts.sum(axis=0), 1))
    return np.where(enough, u, 0.0), np.where(enough, weight, 0.0)
