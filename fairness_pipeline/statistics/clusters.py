"""Pairs that move together: a test that takes each cluster for one observation, and estimates that borrow strength."""

import math
from typing import NamedTuple

import numpy as np

from fairness_pipeline.statistics.intervals import Estimate


def clustered(difference: np.ndarray, cluster: np.ndarray) -> Estimate:
    """The mean difference with an error that takes clusters, not pairs, for independent.

    error^2 = G / (G - 1) * sum over clusters (sum of d_i - mean d)^2 / n^2, with Student's t of G - 1 degrees of
    freedom (Liang and Zeger 1986, with the usual correction for few clusters); nothing is known from one cluster.

    Args:
        difference: Side a minus side b, one number a pair.
        cluster: To which each pair belongs, numbered from 0.
    """
    centre = float(difference.mean())
    count = len(np.unique(cluster))
    if count < 2:
        return Estimate(centre, math.inf)
    sums = np.bincount(cluster, difference - centre)
    error = math.sqrt(count / (count - 1) * float(np.square(sums).sum())) / len(difference)
    return Estimate(centre, error, count - 1)


class Shrunken(NamedTuple):
    """Each level's estimate drawn towards the mean of all, with its 95% interval."""

    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray


def shrunken(means: np.ndarray, counts: np.ndarray, variance: float) -> Shrunken:
    """Empirical Bayes estimates of the levels' means (Morris 1983): what one level lacks in pairs it takes from all.

    mean_j ~ N(theta_j, variance / n_j), theta_j ~ N(mu, tau^2); tau^2 by the method of moments (DerSimonian and Laird
    1986). theta_j = B_j mean_j + (1 - B_j) mu, B_j = tau^2 / (tau^2 + variance / n_j); its variance is
    B_j variance / n_j + (1 - B_j)^2 var(mu).

    Args:
        means: Of each level.
        counts: Pairs of each level.
        variance: Of one pair within a level.
    """
    own = np.maximum(variance, 1e-12) / counts
    weights = 1 / own
    fixed = float((weights * means).sum() / weights.sum())
    excess = float((weights * np.square(means - fixed)).sum()) - (len(means) - 1)
    scale = float(weights.sum() - np.square(weights).sum() / weights.sum())
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    total = 1 / (between + own)
    centre = float((total * means).sum() / total.sum())
    kept = between / (between + own)
    estimate = kept * means + (1 - kept) * centre
    reach = 1.959964 * np.sqrt(kept * own + np.square(1 - kept) / total.sum())
    return Shrunken(estimate, estimate - reach, estimate + reach)
