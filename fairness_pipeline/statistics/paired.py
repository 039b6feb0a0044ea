"""Paired tests: each pair is its own control, so effects that its contexts share cancel out; and the paper's Z test."""

import math
from typing import NamedTuple

import numpy as np
import scipy

_ROUNDING = 1e-12
"""The difference that floating point leaves between equal values, as a share of the values."""


class PairedTest(NamedTuple):
    """A test's name, its statistic (None if it has none), its two-sided p, and a note on special cases."""

    name: str
    statistic: float | None
    p: float
    note: str = ""


def z_test(a: np.ndarray, b: np.ndarray) -> PairedTest:
    """Z = (mean_a - mean_b) / sqrt(S_a^2 / n + S_b^2 / n) (Liu et al. 2020, section 2.2), with sample variances, as if
    the responses of the two sides were independent.

    The test keeps its level for independent responses and is conservative for the correlated responses of pairs.

    Args:
        a: One number per response of side a.
        b: The same for side b.

    Examples:
        >>> test = z_test(np.array([1.0, 0.0] * 50), np.array([1.0, 0.0, 0.0, 0.0] * 25))
        >>> round(test.statistic, 2), round(test.p, 4)
        (3.76, 0.0002)
    """
    return z_from_moments(a.mean(), b.mean(), a.var(ddof=1), b.var(ddof=1), len(a))


def z_from_moments(mean_a: float, mean_b: float, variance_a: float, variance_b: float, n: int) -> PairedTest:
    """The same test, from means, sample variances and the number of pairs.

    If neither side has any variance, Z is 0 for equal means. For different means Z is infinite and p is 0.
    """
    error = math.sqrt((variance_a + variance_b) / n)
    if error == 0:
        if mean_a == mean_b:
            return PairedTest("Z", 0.0, 1.0, "all responses score alike")
        return PairedTest("Z", math.copysign(math.inf, mean_a - mean_b), 0.0, "no variance on either side")
    z = (mean_a - mean_b) / error
    return PairedTest("Z", float(z), float(2 * scipy.special.ndtr(-abs(z))))


def mcnemar_mid_p(only_a: int, only_b: int) -> PairedTest:
    """McNemar's mid-p test of a yes/no measure.

    p = 2 P(X < m) + P(X = m), X ~ Binomial(only_a + only_b, 1/2), where m is the smaller count (Fagerland et al. 2013).

    Args:
        only_a: Pairs in which only the response to side a has the property.
        only_b: Pairs in which only the response to side b has the property.

    Examples:
        >>> round(mcnemar_mid_p(only_a=8, only_b=1).p, 4)
        0.0215
    """
    name = "McNemar mid-p"
    discordant = only_a + only_b
    if discordant == 0:
        return PairedTest(name, 0.0, 1.0, "no pair differs")
    smaller = min(only_a, only_b)
    if only_a == only_b:
        return PairedTest(name, float(smaller), 1.0)
    upto, below = (
        scipy.special.bdtr(smaller, discordant, 0.5),
        scipy.special.bdtr(smaller - 1, discordant, 0.5) if smaller else 0.0,
    )
    p = 2 * upto - (upto - below)
    return PairedTest(name, float(smaller), float(min(p, 1.0)))


def paired_t(a: np.ndarray, b: np.ndarray) -> PairedTest:
    """Student's paired t test of counts or scores, one number per pair and side.

    If every pair differs by the same amount, t has no value. The exact sign-flip test (p = 2 / 2^n) then replaces it.

    Examples:
        >>> test = paired_t(np.array([3.0, 1.0, 4.0, 2.0]), np.array([1.0, 1.0, 2.0, 1.0]))
        >>> round(test.statistic, 3), round(test.p, 4)
        (2.611, 0.0796)
    """
    name = "paired t"
    difference = a - b
    if len(difference) < 2:
        return PairedTest(name, None, 1.0, "one pair has no variance: not tested")
    rounding = _ROUNDING * max(1.0, float(np.abs(a).max()), float(np.abs(b).max()))
    if np.ptp(difference) <= rounding:
        if abs(difference[0]) <= rounding:
            return PairedTest(name, 0.0, 1.0, "no pair differs")
        return PairedTest(
            "sign flip", None, float(2.0 ** (1 - len(difference))), "every pair differs by the same amount"
        )
    result = scipy.stats.ttest_rel(a, b)
    return PairedTest(name, float(result.statistic), float(result.pvalue))


def wilcoxon_p(a: np.ndarray, b: np.ndarray) -> float:
    """The p of Wilcoxon's signed-rank test (Pratt's zeros, normal approximation). It is 1 if no pair differs."""
    difference = a - b
    if not difference.any():
        return 1.0
    return float(scipy.stats.wilcoxon(difference, zero_method="pratt", method="asymptotic").pvalue)
