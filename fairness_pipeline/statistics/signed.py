"""Outcomes that have a side of their own: +1 for the stereotype, -1 for its opposite. Their mean is compared with 0."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.relabelling import FLIPS, below_draws, flipped


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
    value: Callable[[np.ndarray], np.ndarray],
    cluster: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    seed: int,
) -> SignedMeans:
    """The means, over clusters whose signs are flipped (docs/outcomes.md).

    Args:
        value: Of chosen cells, (n,) yes or no, their outcomes: above 0 the stereotype, below 0 its opposite.
        cluster: (n,) the cluster of each, numbered from 0.
        group: (n,) the group that each is about, numbered from 0.
        groups: The names of the groups; one alone gets no mean of its own.
        seed: The seed of the flips.

    Examples:
        >>> outcomes = np.full(16, 0.5)
        >>> signed_means(lambda chosen: outcomes[chosen], np.arange(16) // 2, np.zeros(16, int), ("old",), seed=0).p
        [0.0078125]
    """
    kinds = [np.ones(len(cluster), dtype=bool)]
    kinds += [group == place for place in range(len(groups))] if len(groups) > 1 else []
    kinds = [chosen for chosen in kinds if chosen.any()]
    count, columns = int(cluster.max()) + 1, []
    for chosen in kinds:
        own = value(chosen)
        sums, sizes = np.bincount(cluster[chosen], own, count), np.bincount(cluster[chosen], minlength=count)
        least = 1e-12 * max(1e-300, float(np.abs(own).max()))
        columns.append(
            (mean_over_clusters(sums, sizes, len(own)), sums / len(own), sizes, np.abs(sums) > least * sizes)
        )
    scores = np.stack([score for _, score, _, _ in columns], axis=1)
    by_sign = [*flipped(scores[:, :1], seed), *(flipped(scores[:, 1:], seed + 1) if len(kinds) > 1 else [])]
    single = np.array([  # where all clusters are alike, half of all patterns of signs would be as far from 0
        estimate.p_zero() if estimate.error > 0 else 2.0 ** (1 - int((sizes > 0).sum()))
        for estimate, _, sizes, _ in columns
    ])  # fmt: skip
    tail = single * np.array([1, *[len(kinds) - 1] * (len(kinds) - 1)])
    named = [name for place, name in enumerate(groups) if len(groups) > 1 and (group == place).any()]
    return SignedMeans(
        ["", *named],
        [estimate for estimate, *_ in columns],
        np.maximum(below_draws(np.array(by_sign), FLIPS, tail), single).tolist(),
        [int((sizes > 0).sum()) for _, _, sizes, _ in columns],
        [int(sizes.sum()) for _, _, sizes, _ in columns],
        [int(leans.sum()) for *_, leans in columns],
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
