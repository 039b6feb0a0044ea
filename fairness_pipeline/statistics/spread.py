"""Tests whether a mean hides differences: the gap may vary between the units of an audit, such as templates.

Half of the templates may favour one group and half the other, with a mean gap of 0. The statistic is the variance of
the units' mean differences; its null distribution exchanges the labels of the groups. All pairs of a cluster (of one
exchanged word) are exchanged together, so different answers to a word and its counterpart do not count as spread.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy
from scipy import sparse

from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL

DRAWS = 20_000
_LEAST, _ENOUGH = 1_000, 20
"""Draws that are always made, for the bound; and how many draws must reach the statistic until no more are needed."""
_AT_ONCE = 500
LEVEL = 0.2
"""The share of an audit's level that is kept for spread: a mean and a spread are two chances of a false alarm."""
LARGE = 3
"""A typical gap of single units below this many margins of the mean does not matter."""


class Spread(NamedTuple):
    """How far the difference between the sides varies between units.

    Attributes:
        p: The p of units that differ by chance alone.
        typical: The standard deviation of the units' true differences, beyond chance.
        upper: Its upper 95% bound.
        units: The number of units that two clusters or more share; the test rests on these.
        towards_a: How many of these have a larger value on side a.
        towards_b: How many have a larger one on side b.
    """

    p: float
    typical: float
    upper: float
    units: int
    towards_a: int
    towards_b: int


def upper_bound(between: float, chance: float, units: int) -> float:
    """The upper 95% bound of a standard deviation between units that are a sample: their variance is a chi squared.

    Args:
        between: The observed variance between units.
        chance: The variance that chance alone explains.
        units: The number of units.
    """
    freedom = units - 1
    return math.sqrt(max(0.0, between * freedom / float(scipy.special.chdtri(freedom, 0.95)) - chance))


def spread_between(difference: np.ndarray, unit: np.ndarray, cluster: np.ndarray, seed: int) -> Spread | None:
    """Tests whether a difference varies between units. None if units share too few clusters to tell.

    T = sum_u m_u^2 / n_u - (sum_u m_u)^2 / n, with m_u the sum over a unit's pairs. In a draw all pairs of a cluster
    keep or change their sign together. T minus its mean over the draws, in relation to the pairs of different clusters
    within units, estimates the variance of the units' differences. The mean is subtracted first: with flipped signs
    it would add variance.

    Args:
        difference: (pairs,) side a minus side b.
        unit: (pairs,) the unit of each pair, such as its template.
        cluster: (pairs,) the cluster of each pair.
        seed: The seed of the draws.

    Examples:
        >>> unit, cluster = np.repeat(np.arange(40), 20), np.tile(np.arange(20), 40)
        >>> opposite = np.where(unit % 2, 1.0, -1.0)
        >>> spread = spread_between(opposite, unit, cluster, seed=1)
        >>> spread.p < 0.001, round(spread.typical, 1), spread.towards_a, spread.towards_b
        (True, 1.0, 20, 20)
    """
    if not len(difference) or not np.isfinite(difference).all():
        return None
    _, unit = np.unique(unit, return_inverse=True)
    _, cluster = np.unique(cluster, return_inverse=True)
    counts = _sums(np.ones(len(unit)), unit, cluster)
    shared = np.flatnonzero(np.diff(counts.indptr) > 1)
    if len(shared) < 2 or len(np.unique(counts[shared].indices)) < FEWEST_TO_TELL:
        return None
    inside = np.isin(unit, shared)
    centred = difference - difference[inside].mean()
    raw, sums, counts = (
        matrix[shared] for matrix in (_sums(difference, unit, cluster), _sums(centred, unit, cluster), counts)
    )
    n_unit = np.asarray(counts.sum(axis=1)).ravel()
    n = float(n_unit.sum())
    unit_sums, raw_unit_sums = (np.asarray(matrix.sum(axis=1)).ravel() for matrix in (sums, raw))
    observed = float(_between(unit_sums[:, None], n_unit)[0])
    threshold = observed - 1e-9 * max(1.0, abs(observed))
    random = np.random.default_rng(seed)
    drawn: list[np.ndarray] = []
    reached = made = 0
    while made < DRAWS and (made < _LEAST or reached < _ENOUGH):
        signs = random.choice((-1.0, 1.0), (sums.shape[1], _AT_ONCE))
        drawn.append(_between(sums @ signs, n_unit))
        reached, made = reached + int((drawn[-1] >= threshold).sum()), made + _AT_ONCE
    chance = np.concatenate(drawn)
    squared_counts = np.asarray(counts.multiply(counts).sum(axis=1)).ravel()
    pairs = n - np.square(n_unit).sum() / n - (squared_counts / n_unit).sum() + squared_counts.sum() / n
    between, by_chance = observed / pairs, float(chance.mean()) / pairs
    return Spread(
        (1 + reached) / (made + 1),
        math.sqrt(max(0.0, between - by_chance)),
        upper_bound(between, by_chance, len(shared)),
        len(shared),
        int((raw_unit_sums > 0).sum()),
        int((raw_unit_sums < 0).sum()),
    )


def _sums(values: np.ndarray, unit: np.ndarray, cluster: np.ndarray) -> sparse.csr_matrix:
    """(units, clusters) sums over pairs."""
    return sparse.csr_matrix((values, (unit, cluster)))


def _between(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(draws,) the variance between units, from (units, draws) sums."""
    variance: np.ndarray = (np.square(sums) / counts[:, None]).sum(axis=0) - np.square(sums.sum(axis=0)) / counts.sum()
    return variance
