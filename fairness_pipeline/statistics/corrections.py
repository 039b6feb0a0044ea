"""Adjusts p values for the number of measures that are tested."""

import numpy as np
import scipy


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjustment, which bounds the chance of any false rejection. The order is kept.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted.tolist()


def benjamini_hochberg(p_values: list[float]) -> list[float]:
    """Benjamini and Hochberg's adjustment, which bounds the share of false rejections. The order is kept.

    Examples:
        >>> benjamini_hochberg([0.01, 0.04, 0.03])
        [0.03, 0.04, 0.04]
    """
    return scipy.stats.false_discovery_control(p_values, method="bh").tolist() if p_values else []
