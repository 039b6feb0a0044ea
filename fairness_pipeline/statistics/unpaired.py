"""The paper's test: Z of two means, as if the two sides' responses were independent."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr


class ZTest(NamedTuple):
    """Z, its two-sided p, and what to say of it where it is not what it seems."""

    statistic: float
    p: float
    note: str = ""

    @property
    def name(self) -> str:
        """As in the paper's tables."""
        return "Z"


def z_test(a: np.ndarray, b: np.ndarray) -> ZTest:
    """Z = (mean_a - mean_b) / sqrt(S_a^2 / n + S_b^2 / n) (Liu et al. 2020, section 2.2), with sample variances.

    Nominal for independent responses, conservative for the correlated ones of pairs.

    Args:
        a: One number a response of side a.
        b: The same for side b.
    """
    if len(a) < 2 or len(b) < 2:
        return ZTest(0.0, 1.0, "one response a side has no variance: not tested")
    return z_from_moments(a.mean(), b.mean(), a.var(ddof=1), b.var(ddof=1), len(a))


def z_from_moments(mean_a: float, mean_b: float, variance_a: float, variance_b: float, n: int) -> ZTest:
    """The same from means, sample variances and the number of pairs.

    With no variance on either side Z is 0 for equal means; for others it has no value and p is 0.
    """
    error = math.sqrt((variance_a + variance_b) / n)
    if error == 0:
        if mean_a == mean_b:
            return ZTest(0.0, 1.0, "all responses score alike")
        return ZTest(math.copysign(math.inf, mean_a - mean_b), 0.0, "no variance on either side")
    z = (mean_a - mean_b) / error
    return ZTest(float(z), float(2 * ndtr(-abs(z))))


def z_from_rates(rate_a: float, rate_b: float, n: int) -> ZTest:
    """The same for two rates in [0, 1] over `n` pairs."""
    variance_a, variance_b = (rate * (1 - rate) * n / (n - 1) for rate in (rate_a, rate_b))
    return z_from_moments(rate_a, rate_b, variance_a, variance_b, n)
