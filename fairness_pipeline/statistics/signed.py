"""Outcomes that have a side of their own: +1 for the stereotype, -1 for its opposite. Their mean is compared with 0."""

import math
from typing import NamedTuple

import numpy as np

from fairness_pipeline.statistics.groups import sum_by
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.relabelling import flipped


class SignedMeans(NamedTuple):
    """The means of all cells and of each group's, and the p that each is 0.

    Attributes:
        names: Of each mean; the first, empty, is that of all.
        estimates: The means, with CR2 errors.
        p: Of each, by the clusters' signs, and never below its own t test; the groups' are corrected together.
        clusters: The number of clusters of each.
        counts: The number of cells of each.
        differing: The number of clusters of each whose mean is not 0.
    """

    names: list[str]
    estimates: list[Estimate]
    p: list[float]
    clusters: list[int]
    counts: list[int]
    differing: list[int]


def signed_means(
    value: np.ndarray, cluster: np.ndarray, group: np.ndarray, groups: tuple[str, ...], seed: int
) -> SignedMeans:
    """The means, over clusters whose signs are flipped (docs/outcomes.md).

    Args:
        value: (n,) outcomes: above 0 the stereotype, below 0 its opposite.
        cluster: (n,) the cluster of each, numbered from 0.
        group: (n,) the group that each is about, numbered from 0.
        groups: The names of the groups; one alone gets no mean of its own.
        seed: The seed of the flips.

    Examples:
        >>> signed_means(np.full(16, 0.5), np.arange(16) // 2, np.zeros(16, int), ("old",), seed=0).p
        [0.0078125]
    """
    kinds = [np.ones(len(value), dtype=bool)]
    kinds += [group == place for place in range(len(groups))] if len(groups) > 1 else []
    count = int(cluster.max()) + 1
    chosen = np.stack(kinds, axis=1)
    sizes = chosen.sum(axis=0)
    sums = sum_by(cluster, chosen * value[:, None], count)
    weights = sum_by(cluster, chosen.astype(float), count)
    estimates = [mean_over_clusters(own, of, n) for own, of, n in zip(sums.T, weights.T, sizes, strict=True)]
    scores = sums / sizes
    by_sign = [*flipped(scores[:, :1], seed), *(flipped(scores[:, 1:], seed + 1) if len(kinds) > 1 else [])]
    own = [estimate.p_zero() if estimate.error > 0 else 0.0 for estimate in estimates]
    return SignedMeans(
        ["", *groups[: len(kinds) - 1]],
        estimates,
        [max(float(p), single) for p, single in zip(by_sign, own, strict=True)],
        (weights > 0).sum(axis=0).tolist(),
        sizes.tolist(),
        (np.abs(sums) > 1e-12).sum(axis=0).tolist(),
    )


def mean_over_clusters(sums: np.ndarray, sizes: np.ndarray, count: int) -> Estimate:
    """A mean with the clusters as the sample: CR2 with Satterthwaite's degrees of freedom (Bell and McCaffrey 2002).

    Args:
        sums: (clusters,) the sum of the values in each cluster.
        sizes: (clusters,) the number of its values.
        count: The number of all values.

    Examples:
        >>> mean_over_clusters(np.array([1.0, 2.0, 6.0]), np.ones(3), 3).freedom
        2.0
    """
    kept = sizes > 0
    sums, shares = sums[kept], sizes[kept] / count
    mean = float(sums.sum() / count)
    if len(sums) < 2:
        return Estimate(mean, math.inf)
    left = 1 - shares
    error = math.sqrt(float((np.square(sums / count - shares * mean) / left).sum()))
    u, norms = shares / left, np.square(shares) / left
    squared = float(np.square(u).sum() - 2 * (u * norms).sum() + norms.sum() ** 2)
    return Estimate(mean, error, round(float(u.sum() - norms.sum()) ** 2 / squared, 9))
