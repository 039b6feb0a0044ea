"""Effect sizes: how large a difference is, independent of the number of pairs."""

import math

import numpy as np


def cohens_h(rate_a: float, rate_b: float) -> float:
    """h = 2 asin sqrt(rate_a) - 2 asin sqrt(rate_b), for rates in [0, 1] (Cohen 1988, 6.2).

    Examples:
        >>> round(cohens_h(0.5, 0.25), 4)
        0.5236
    """
    return 2 * math.asin(math.sqrt(rate_a)) - 2 * math.asin(math.sqrt(rate_b))


def cohens_d(a: np.ndarray, b: np.ndarray) -> float | None:
    """d = (mean_a - mean_b) / sqrt((S_a^2 + S_b^2) / 2). It is 0 for equal means, and None if the means differ without
    any spread.

    Examples:
        >>> cohens_d(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]))
        1.0
    """
    difference = float(a.mean() - b.mean())
    if difference == 0:
        return 0.0
    if len(a) < 2:
        return None
    spread = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    return difference / spread if spread else None
