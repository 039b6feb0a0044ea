"""The paper's test: Z of two means, as if the responses of the two sides were independent."""

import math
from typing import NamedTuple

import numpy as np
import scipy


class ZTest(NamedTuple):
    """Z, its two-sided p, and a note on special cases."""

    statistic: float
    p: float
    note: str = ""

    @property
    def name(self) -> str:
        """The name, as in the paper's tables."""
        return "Z"


def z_test(a: np.ndarray, b: np.ndarray) -> ZTest:
    """Z = (mean_a - mean_b) / sqrt(S_a^2 / n + S_b^2 / n) (Liu et al. 2020, section 2.2), with sample variances.

    The test keeps its level for independent responses and is conservative for the correlated responses of pairs.

    Args:
        a: One number per response of side a.
        b: The same for side b.

    Examples:
        >>> test = z_test(np.array([1.0, 0.0] * 50), np.array([1.0, 0.0, 0.0, 0.0] * 25))
        >>> round(test.statistic, 2), round(test.p, 4)
        (3.76, 0.0002)
    """
    if len(a) < 2 or len(b) < 2:
        return ZTest(0.0, 1.0, "one response a side has no variance: not tested")
    return z_from_moments(a.mean(), b.mean(), a.var(ddof=1), b.var(ddof=1), len(a))


def z_from_moments(mean_a: float, mean_b: float, variance_a: float, variance_b: float, n: int) -> ZTest:
    """The same test, from means, sample variances and the number of pairs.

    If neither side has any variance, Z is 0 for equal means. For different means Z is infinite and p is 0.
    """
    error = math.sqrt((variance_a + variance_b) / n)
    if error == 0:
        if mean_a == mean_b:
            return ZTest(0.0, 1.0, "all responses score alike")
        return ZTest(math.copysign(math.inf, mean_a - mean_b), 0.0, "no variance on either side")
    z = (mean_a - mean_b) / error
    return ZTest(float(z), float(2 * scipy.special.ndtr(-abs(z))))


def z_from_rates(rate_a: float, rate_b: float, n: int) -> ZTest:
    """The same test, for two rates in [0, 1] over `n` pairs.

    Examples:
        >>> round(z_from_rates(0.5, 0.25, n=100).p, 4)
        0.0002
    """
    variance_a, variance_b = (rate * (1 - rate) * n / (n - 1) for rate in (rate_a, rate_b))
    return z_from_moments(rate_a, rate_b, variance_a, variance_b, n)
