"""Signed outcomes: +1 for the stereotype, -1 for its opposite. Their mean is compared with 0."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.relabelling import FLIPS, below_draws, flipped


class SignedMeans(NamedTuple):
    """The means of all cells and of each group's cells, and the p that each is 0.

    Attributes:
        names: The group of each mean; the first is empty and stands for all cells.
        estimates: The means, with CR2 errors.
        p: The p of each mean, by flipping clusters' signs, and never below that of its t test; the groups' p are
            corrected together.
        clusters: The number of clusters of each mean.
        counts: The number of cells of each mean.
        differing: The number of clusters of each mean whose values do not add up to 0.
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
    """Tests the means by flipping the signs of clusters (docs/outcomes.md).

    Args:
        value: Maps a mask of cells, (n,), to their outcomes: above 0 the stereotype, below 0 its opposite.
        cluster: (n,) the cluster of each cell, numbered from 0.
        group: (n,) the group that each cell is about, numbered from 0.
        groups: The names of the groups; a single group gets no separate mean.
        seed: The seed of the flips.

    Examples:
        >>> outcomes = np.full(16, 0.5)
        >>> signed_means(lambda mask: outcomes[mask], np.arange(16) // 2, np.zeros(16, int), ("old",), seed=0).p
        [0.0078125]
    """
    masks = [np.ones(len(cluster), dtype=bool)]
    masks += [group == number for number in range(len(groups))] if len(groups) > 1 else []
    masks = [mask for mask in masks if mask.any()]
    count, columns = int(cluster.max()) + 1, []
    for mask in masks:
        values = value(mask)
        sums, sizes = np.bincount(cluster[mask], values, count), np.bincount(cluster[mask], minlength=count)
        tolerance = 1e-12 * max(1e-300, float(np.abs(values).max()))
        columns.append(
            (mean_over_clusters(sums, sizes, len(values)), sums / len(values), sizes, np.abs(sums) > tolerance * sizes)
        )
    scores = np.stack([score for _, score, _, _ in columns], axis=1)
    by_sign = [*flipped(scores[:, :1], seed), *(flipped(scores[:, 1:], seed + 1) if len(masks) > 1 else [])]
    p_t = np.array([  # if all clusters are alike, two patterns of signs are as far from 0
        estimate.p_zero() if estimate.error > 0 else 2.0 ** (1 - int((sizes > 0).sum()))
        for estimate, _, sizes, _ in columns
    ])  # fmt: skip
    tail = p_t * np.array([1, *[len(masks) - 1] * (len(masks) - 1)])
    named = [name for number, name in enumerate(groups) if len(groups) > 1 and (group == number).any()]
    return SignedMeans(
        ["", *named],
        [estimate for estimate, *_ in columns],
        np.maximum(below_draws(np.array(by_sign), FLIPS, tail), p_t).tolist(),
        [int((sizes > 0).sum()) for _, _, sizes, _ in columns],
        [int(sizes.sum()) for _, _, sizes, _ in columns],
        [int(differs.sum()) for *_, differs in columns],
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
    rest = 1 - shares
    error = math.sqrt(float((np.square(sums / count - shares * mean) / rest).sum()))
    u, norms = shares / rest, np.square(shares) / rest
    squared = float(np.square(u).sum() - 2 * (u * norms).sum() + norms.sum() ** 2)
    return Estimate(mean, error, round(float(u.sum() - norms.sum()) ** 2 / squared, 9))
