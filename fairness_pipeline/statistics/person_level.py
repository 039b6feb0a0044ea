"""Tests whose unit is the person, for scores of sentences that share their persons.

A system that merely likes one name more than another, whatever the group, shifts all pairs with that name at once. A
test over pairs takes those for independent and calls such a system biased far too often; these do not.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit  # Student's t without the cost of a distribution object

_ROUNDING = 1e-9
"""Differences below this are what floating point leaves of equal scores in 0..1."""


class Tests(NamedTuple):
    """A test of each column: two-sided p, and the difference (a - b) with its standard error and degrees of freedom."""

    p: np.ndarray
    difference: np.ndarray
    error: np.ndarray
    freedom: int

    @property
    def t(self) -> np.ndarray:
        """Student's statistic of each column; NaN where nothing varies."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.error > 0, self.difference / self.error, np.nan)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of each difference's central interval at `level`."""
        reach = stdtrit(self.freedom, 0.5 + level / 2) * self.error
        return self.difference - reach, self.difference + reach

    def minimum_detectable(self, alpha: float = 0.05, power: float = 0.8) -> np.ndarray:
        """The true differences that a two-sided Student's t test at `alpha` would find with `power`."""
        return (stdtrit(self.freedom, 1 - alpha / 2) + stdtrit(self.freedom, power)) * self.error

    def p_equivalence(self, margin: np.ndarray) -> np.ndarray:
        """The larger p of the two one-sided tests that each difference lies outside +-`margin` (Schuirmann 1987)."""
        excess = np.abs(self.difference) - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.error > 0, stdtr(self.freedom, excess / self.error), excess > 0)


def paired_t_columns(a: np.ndarray, b: np.ndarray) -> Tests:
    """Student's paired t test of each column of scores (pairs, columns).

    p is 1 where no pair differs; where all differ by the same amount it is that of the exact sign-flip test, 2 / 2^n.
    """
    difference = _rounded(a - b)
    n = len(difference)
    mean, error = _rounded(difference.mean(axis=0)), _rounded(difference.std(axis=0, ddof=1)) / np.sqrt(n)
    tests = Tests(np.where(mean == 0, 1.0, 2.0 ** (1 - n)), mean, error, n - 1)
    return tests._replace(p=np.where(error > 0, 2 * stdtr(n - 1, -np.abs(tests.t)), tests.p))


def pair_means_t(scores: np.ndarray, on_a: np.ndarray, strata: np.ndarray) -> Tests:
    """A paired t test on the pairs' mean scores: of gender's 11 pairs of persons.

    Args:
        scores: Mean score of each person (people, columns); one person a side in each stratum.
        on_a: Who is on side a (people).
        strata: The pair of each (people).
    """
    order = np.argsort(strata, kind="stable")
    a, b = (scores[order[on_a[order] == side]] for side in (True, False))
    return paired_t_columns(a, b)


def label_permutation(
    scores: np.ndarray, on_a: np.ndarray, strata: np.ndarray, permutations: int = 9999, seed: int = 0
) -> Tests:
    """A permutation test of the group labels of names, within strata: of race, among names of one gender.

    The statistic is the mean over strata of mean(a) - mean(b); p = (c + 1) / (permutations + 1), c the number of draws
    at least as far from 0 as what was seen (Phipson and Smyth 2010). The error is Welch's.

    Args:
        scores: Mean score of each name (names, columns).
        on_a: Who is on side a (names).
        strata: Within which labels change places (names).
        permutations: Draws.
        seed: Of the draws; the same for all columns.
    """
    difference = _rounded(_weights(on_a, strata) @ scores)
    drawn = np.abs(_drawn_weights(tuple(on_a.tolist()), tuple(strata.tolist()), permutations, seed) @ scores)
    extreme = (drawn >= np.abs(difference) - _ROUNDING).sum(axis=0)
    groups = [scores[(strata == stratum) & (on_a == side)] for stratum in np.unique(strata) for side in (True, False)]
    variance = sum(group.var(axis=0, ddof=1) / len(group) for group in groups) / len(np.unique(strata)) ** 2
    error = _rounded(np.sqrt(variance))
    return Tests((extreme + 1) / (permutations + 1), difference, error, len(scores) - len(groups))


def _weights(on_a: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """What each person's score counts in the difference: over its side's size, and over the number of strata."""
    weights = np.empty(len(on_a))
    kinds = np.unique(strata)
    for stratum in kinds:
        for side in (True, False):
            members = (strata == stratum) & (on_a == side)
            weights[members] = (1 if side else -1) / (members.sum() * len(kinds))
    return weights


@lru_cache(maxsize=8)
def _drawn_weights(on_a: tuple[bool, ...], strata: tuple[int, ...], permutations: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    weights, kinds = _weights(np.array(on_a), np.array(strata)), np.array(strata)
    drawn = np.tile(weights, (permutations, 1))
    for stratum in np.unique(kinds):
        members = kinds == stratum
        drawn[:, members] = random.permuted(drawn[:, members], axis=1)
    return drawn


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) <= _ROUNDING, 0.0, values)
