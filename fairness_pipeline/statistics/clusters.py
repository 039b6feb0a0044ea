"""Pairs that move together: tests that treat each cluster as one observation, and estimates that borrow strength."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from fairness_pipeline.statistics.intervals import Estimate

FEWEST_TO_TELL = 8
"""With fewer clusters no verdict is drawn: they are too few to tell a group from a few words."""
FEWEST_FOR_FAIR = 10
"""With fewer clusters nothing is called fair. With six, random differences between words came out fair in 9 to 11%
of draws."""


class Clustered(NamedTuple):
    """The difference when the clusters, not the pairs, are the sample.

    Attributes:
        estimate: The difference, its standard error and degrees of freedom.
        p: The two-sided p of no difference.
        clusters: The number of clusters.
        effective: The number of clusters of equal size that would weigh as much: n^2 / sum of n_g^2.
        between: The part of the estimate's variance that comes from the clusters. It does not shrink with more pairs
            per cluster.
        within: The variance of a single pair within its cluster.
    """

    estimate: Estimate
    p: float
    clusters: int
    effective: float
    between: float = 0.0
    within: float = 0.0

    def scaled(self, factor: float) -> Self:
        """The same in another unit."""
        return self._replace(
            estimate=self.estimate.scaled(factor),
            between=self.between * factor**2,
            within=self.within * factor**2,
        )


def random_effects(difference: np.ndarray, cluster: np.ndarray) -> Clustered:
    """The mean difference, with the clusters as a random sample: a few pairs of many words tell more than many of one.

    Each cluster's mean m_g varies around the common mean with variance tau^2 + s^2 / n_g (tau^2: DerSimonian and Laird
    1986), and has weight w_g = 1 / (tau^2 + s^2 / n_g). The error is the cluster-robust CR2 error, with Satterthwaite's
    degrees of freedom (Bell and McCaffrey 2002): V = sum of v_g^2 (m_g - mu)^2 / (1 - v_g), v_g = w_g / sum of w; df =
    (tr M)^2 / sum of M_gh^2, M = diag(a_g^2 / w_g) - a a' / sum of w, a_g = v_g / sqrt(1 - v_g). One pair that differs
    each way is added to s^2, as in `rate_difference`. If all clusters have the same size, this is Student's t test of
    their means.

    Args:
        difference: Side a minus side b, one number per pair: a difference of yes (1) and no (0), or of counts.
        cluster: The cluster of each pair: any integers.

    Examples:
        >>> result = random_effects(np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1, 2, 2]))
        >>> result.clusters, round(result.estimate.centre, 3), round(result.estimate.freedom, 3)
        (3, 0.667, 2.0)
    """
    _, numbers, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    n, count = len(difference), len(sizes)
    effective = n**2 / float(np.square(sizes).sum())
    if count < 2:
        return Clustered(Estimate(float(difference.mean()), math.inf), 1.0, count, effective)
    means = np.bincount(numbers, difference) / sizes
    overall = float(difference.mean())
    squares = float(np.square(difference - means[numbers]).sum())
    within = max(squares / (n - count) if n > count else 0.0, 2 / (n + 2))
    excess = float((sizes * np.square(means - overall)).sum()) - (count - 1) * within
    between = max(0.0, excess / (n - float(np.square(sizes).sum()) / n))
    weights = 1 / (between + within / sizes)
    total = float(weights.sum())
    shares = weights / total
    centre = float((shares * means).sum())
    error = math.sqrt(float((np.square(shares * (means - centre)) / (1 - shares)).sum()))
    # sum of M_gh^2 without the matrix: M = diag(u) - a a' / total.
    a = shares / np.sqrt(1 - shares)
    u = np.square(a) / weights
    trace = float((u - np.square(a) / total).sum())
    squared = float((np.square(u) - 2 * u * np.square(a) / total).sum()) + (float(np.square(a).sum()) / total) ** 2
    estimate = Estimate(centre, error, trace**2 / squared)
    return Clustered(estimate, estimate.p_zero(), count, effective, between * float(np.square(shares).sum()), within)


def most_cautious(results: Sequence[Clustered]) -> Clustered | None:
    """Combines several clusterings of the same pairs: the largest p, the estimate farthest from 0, the largest
    error."""
    if not results:
        return None
    widest = max(results, key=lambda result: result.estimate.error)
    farthest = max((result.estimate.centre for result in results), key=abs)
    return widest._replace(
        estimate=widest.estimate._replace(centre=farthest),
        p=max(result.p for result in results),
        clusters=min(result.clusters for result in results),
        effective=min(result.effective for result in results),
    )


def cautious_mean(difference: np.ndarray, clusterings: Sequence[np.ndarray], estimate: Estimate) -> Estimate:
    """The mean difference with the largest of its errors: over pairs, and over the clusters of each clustering
    (`clustered`). (The error of `random_effects` belongs to another mean, in which all words weigh alike: if one word
    makes up 40% of the pairs, mixing both rejected in 32% of null draws.)

    Args:
        difference: One number per pair.
        clusterings: Ways in which pairs move together.
        estimate: The estimate over pairs.
    """
    for clustering in clusterings:
        over_clusters = clustered(difference, np.unique(clustering, return_inverse=True)[1])
        error, freedom = max(estimate.error, over_clusters.error), min(estimate.freedom, over_clusters.freedom)
        estimate = estimate._replace(error=error, freedom=freedom)
    return estimate


def crossed_error(difference: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """The error of the mean difference if both clusterings are crossed samples: the variances of both minus that of
    their cells (Cameron, Gelbach and Miller 2011).

    Args:
        difference: One number per pair.
        one: The cluster of each pair.
        other: The same by the other clustering.

    Examples:
        >>> d = np.array([0.0, 1.0, 1.0, 2.0])  # a row adds 1, and so does a column
        >>> rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
        >>> errors = [clustered(d, clustering).error for clustering in (rows, columns)]
        >>> errors, round(crossed_error(d, rows, columns), 3)
        ([0.5, 0.5], 0.577)
    """
    numbers = [np.unique(clustering, return_inverse=True)[1] for clustering in (one, other)]
    cells = np.unique(numbers[0] * (numbers[1].max() + 1) + numbers[1], return_inverse=True)[1]
    first, second, both = (clustered(difference, clustering).error ** 2 for clustering in (*numbers, cells))
    return math.sqrt(max(first, second, first + second - both)) if math.isfinite(first + second) else math.inf


def clustered(difference: np.ndarray, cluster: np.ndarray) -> Estimate:
    """The mean difference, with an error that treats the clusters, not the pairs, as independent.

    error^2 = G / (G - 1) * sum over clusters (sum of d_i - mean d)^2 / n^2, with Student's t of G - 1 degrees of
    freedom (Liang and Zeger 1986). G = n^2 / sum of n_g^2 is the number of clusters of equal size that weigh as much:
    if one word makes up most of the pairs, G is small. If G is below 2, nothing is known.

    Args:
        difference: Side a minus side b, one number per pair.
        cluster: The cluster of each pair, numbered from 0.

    Examples:
        >>> estimate = clustered(np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1]))
        >>> estimate.centre, estimate.error, estimate.freedom
        (0.5, 0.5, 1.0)
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
    """Each level's estimate, drawn towards the overall mean, with its 95% interval."""

    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray


def shrunken(means: np.ndarray, variances: np.ndarray) -> Shrunken:
    """Empirical Bayes estimates of the levels' means (Morris 1983). Levels with few pairs borrow strength from the
    others.

    mean_j ~ N(theta_j, v_j), theta_j ~ N(mu, tau^2); tau^2 by the method of moments (DerSimonian and Laird 1986).
    theta_j = B_j mean_j + (1 - B_j) mu, B_j = tau^2 / (tau^2 + v_j). Its variance is B_j v_j + (1 - B_j)^2 var(mu),
    plus 2 / (J - 3) (1 - B_j)^2 (mean_j - mu)^2 because B_j is itself an estimate from J levels (Morris 1983, 1.17).
    The intervals hold for the levels as a whole, not for a level that was picked because it is far from the others.

    Args:
        means: The mean of each level.
        variances: The variance of each mean.

    Examples:
        >>> result = shrunken(np.array([0.0, 1.0, 2.0, 9.0]), np.ones(4))
        >>> result.centre.round(2).tolist()
        [0.18, 1.12, 2.06, 8.64]
    """
    variances = np.maximum(variances, 1e-12)
    weights = 1 / variances
    fixed = float((weights * means).sum() / weights.sum())
    excess = float((weights * np.square(means - fixed)).sum()) - (len(means) - 1)
    scale = float(weights.sum() - np.square(weights).sum() / weights.sum())
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    total = 1 / (between + variances)
    centre = float((total * means).sum() / total.sum())
    kept = between / (between + variances)
    estimate = kept * means + (1 - kept) * centre
    uncertainty = 2 / max(1, len(means) - 3) * np.square((1 - kept) * (means - centre))
    reach = 1.959964 * np.sqrt(kept * variances + np.square(1 - kept) / total.sum() + uncertainty)
    return Shrunken(estimate, estimate - reach, estimate + reach)
