"""Pairs that move together: a test that takes each cluster for one observation, and estimates that borrow strength."""

import math
from typing import NamedTuple

import numpy as np

from fairness_pipeline.statistics.intervals import Estimate


def clustered(difference: np.ndarray, cluster: np.ndarray) -> Estimate:
    """The mean difference with an error that takes clusters, not pairs, for independent.

    error^2 = G / (G - 1) * sum over clusters (sum of d_i - mean d)^2 / n^2, with Student's t of G - 1 degrees of
    freedom (Liang and Zeger 1986). G = n^2 / sum of n_g^2 is the number of clusters of equal size that weigh as much:
    one word that makes most of the pairs leaves little to tell it from. Nothing is known where G is below 2.

    Args:
        difference: Side a minus side b, one number a pair.
        cluster: To which each pair belongs, numbered from 0.
    """
    centre = float(difference.mean())
    sizes = np.bincount(cluster)
    count = len(cluster) ** 2 / float(np.square(sizes).sum())
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


def shrunken(means: np.ndarray, own: np.ndarray) -> Shrunken:
    """Empirical Bayes estimates of the levels' means (Morris 1983): what one level lacks in pairs it takes from all.

    mean_j ~ N(theta_j, v_j), theta_j ~ N(mu, tau^2); tau^2 by the method of moments (DerSimonian and Laird 1986).
    theta_j = B_j mean_j + (1 - B_j) mu, B_j = tau^2 / (tau^2 + v_j); its variance is B_j v_j + (1 - B_j)^2 var(mu), and
    2 / (J - 3) (1 - B_j)^2 (mean_j - mu)^2 for B_j being an estimate, of J levels (Morris 1983, 1.17). The intervals
    hold for levels on the whole, not for one that was chosen because it is far from the others.

    Args:
        means: Of each level.
        own: The variance of each mean.
    """
    own = np.maximum(own, 1e-12)
    weights = 1 / own
    fixed = float((weights * means).sum() / weights.sum())
    excess = float((weights * np.square(means - fixed)).sum()) - (len(means) - 1)
    scale = float(weights.sum() - np.square(weights).sum() / weights.sum())
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    total = 1 / (between + own)
    centre = float((total * means).sum() / total.sum())
    kept = between / (between + own)
    estimate = kept * means + (1 - kept) * centre
    unsure = 2 / max(1, len(means) - 3) * np.square((1 - kept) * (means - centre))
    reach = 1.959964 * np.sqrt(kept * own + np.square(1 - kept) / total.sum() + unsure)
    return Shrunken(estimate, estimate - reach, estimate + reach)
