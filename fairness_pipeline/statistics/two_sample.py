"""A two-sample test for paired texts in clusters: do the words of a text reveal its side?

A ridge classifier is fitted to the differences of the pairs (b minus a) of all clusters but one fold, and evaluated on
that fold (a classifier two-sample test, Lopez-Paz and Oquab 2017, with clusters). A draw of the null hypothesis swaps
the sides of whole clusters. The classifier's metric does not depend on the sides, so nothing is refitted for a draw,
and the level is exact if the sides of a cluster are exchangeable.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

FOLDS = 5
_FEWEST_PAIRS, _MOST_FEATURES = 4, 20_000
"""A feature is used if the sides differ in it in this many pairs; and the most features that are used. With 4,000 a
harm in 2% of answers of 300 words is missed, with 20,000 it is found."""
_FEWEST_CLUSTERS = 6
"""A feature is tested by itself if it occurs in this many clusters: with fewer no sign pattern is rare enough."""
_AT_ONCE, _DRAWS = 4000, 1000
"""Features and draws that are processed together."""
_MORE, _MOST_WORK = (9_999, 99_999), 10**10
"""Larger numbers of draws, if no draw reaches the statistic; and the most draws times clusters times features."""
_ALL_PATTERNS = 10
"""Up to this many clusters, every sign pattern is tried."""


class PairedSums(NamedTuple):
    """The sums over pairs that the test needs.

    Attributes:
        features: (clusters, features) the sum over a cluster's pairs of side b's presence minus side a's.
        differing: (features,) the number of pairs in which only one side has the feature.
        sizes: (clusters,) the number of pairs.
        templates: (clusters, clusters) the sum over templates of the inner products of two clusters' sums, 0 on the
            diagonal. It finds differences that agree within a template but cancel over all templates.
    """

    features: sparse.csr_array
    differing: np.ndarray
    sizes: np.ndarray
    templates: np.ndarray


class TwoSampleResult(NamedTuple):
    """The result of `distinguish_sides`.

    Attributes:
        p: The p of "the sides are exchangeable": the smallest p of three statistics (classifier, single feature,
            templates), calibrated in the same draws.
        p_beyond: The p of the statistics that a difference by the clusters' `direction` cannot raise.
        kept: The features that were used.
        p_features: (kept,) the p of each of them, adjusted over all (family-wise).
        statistics: (kept,) how much more often side b has each feature, in standard deviations.
        weights: (kept, folds) the classifier that is evaluated on each fold.
        folds: (clusters,) the fold of each cluster.
    """

    p: float
    p_beyond: float
    kept: np.ndarray
    p_features: np.ndarray
    statistics: np.ndarray
    weights: np.ndarray
    folds: np.ndarray


def distinguish_sides(sums: PairedSums, direction: np.ndarray, *, draws: int = 999, seed: int = 0) -> TwoSampleResult:
    """Tests whether side a and side b can be told apart.

    If no draw reaches the observed statistic, more are made: a floor of p would never pass a correction over many
    audits.

    With S_u the scaled sum of cluster u, M_k = sum over u outside fold k of S_u S_u' / n_u + lambda I, lambda the mean
    of the sum's diagonal, and H_uv = S_u' M_k^-1 S_v for u in fold k and v outside it, the statistic is T(s) = s' H s,
    s = 1 observed, s in {-1, 1} drawn.

    Args:
        sums: The pairs.
        direction: (clusters,) a property in which the sides of a cluster differ besides the group: 1 if side b has more
            of it (a longer word), -1 if side a has, 0 if both are alike, NaN if it is unknown. An effect of this
            property alone has opposite signs in clusters of direction 1 and -1 and none in those of 0; an effect of
            the group has the same sign in all. So `p_beyond` learns from clusters of one direction and is evaluated on
            those of the other; clusters of direction 0 are used among themselves.
        draws: The number of random sign patterns, to begin with; with ten clusters or fewer every pattern is tried.
        seed: The seed of the patterns and folds.

    Examples:
        >>> features = sparse.csr_array(np.ones((8, 1)))
        >>> sums = PairedSums(features, np.array([8]), np.ones(8), np.zeros((8, 8)))
        >>> result = distinguish_sides(sums, np.zeros(8))
        >>> result.p, result.p_beyond  # all eight clusters agree: one of 2^7 patterns
        (0.0078125, 0.0078125)
    """
    clusters = len(sums.sizes)
    kept = np.flatnonzero(sums.differing >= _FEWEST_PAIRS)
    if len(kept) > _MOST_FEATURES:
        kept = np.sort(kept[np.argsort(-sums.differing[kept], kind="stable")[:_MOST_FEATURES]])
    folds = np.random.default_rng(seed).permutation(np.arange(clusters) % FOLDS)
    if clusters < 2 or not len(kept):
        empty = np.zeros(len(kept))
        return TwoSampleResult(1.0, 1.0, kept, empty + 1, empty, np.zeros((len(kept), FOLDS)), folds)
    counts = sums.features[:, kept].toarray()
    scaled = counts / np.sqrt(sums.differing[kept])
    across, weights = _cross_fitted(scaled, sums.sizes, folds)
    tested = (counts != 0).sum(axis=0) >= _FEWEST_CLUSTERS
    up, down, level = direction > 0, direction < 0, direction == 0
    beyond = np.outer(up, down) | np.outer(down, up) | np.outer(level, level)
    overall, *kinds = (_standardised(counts, chosen) for chosen in (np.full(clusters, True), up, down))

    def test_with(draws: int) -> TwoSampleResult:
        signs = _signs(clusters, draws, seed)
        parts = [signs[start : start + _DRAWS] for start in range(0, len(signs), _DRAWS)]
        largest, against = np.concatenate([_largest(part, overall, kinds, tested) for part in parts], axis=1)
        return TwoSampleResult(
            p=smallest([_quadratic(across, signs), largest, _quadratic(sums.templates, signs)]),
            p_beyond=smallest([_quadratic(across * beyond, signs), against]),
            kept=kept,
            p_features=np.where(tested, reached(largest, np.abs(overall.sum(axis=0))), 1.0),
            statistics=overall.sum(axis=0),
            weights=weights / np.sqrt(sums.differing[kept])[:, None],
            folds=folds,
        )

    result = test_with(draws)
    for more_draws in _MORE:
        unreached = clusters > _ALL_PATTERNS and min(result.p, result.p_beyond) < 2 / (draws + 1)
        if not unreached or more_draws * clusters * len(kept) > _MOST_WORK:
            break
        draws, result = more_draws, test_with(more_draws)
    return result


def _largest(signs: np.ndarray, overall: np.ndarray, kinds: list[np.ndarray], tested: np.ndarray) -> np.ndarray:
    """(2, draws) the largest feature of each draw, and the largest with the same sign in both directions."""
    largest, against = np.zeros((2, len(signs)))
    for start in range(0, overall.shape[1], _AT_ONCE):
        chunk = slice(start, start + _AT_ONCE)
        if not tested[chunk].any():
            continue
        in_all, in_up, in_down = (
            signs @ standardised[:, chunk][:, tested[chunk]] for standardised in (overall, *kinds)
        )
        largest = np.maximum(largest, np.abs(in_all).max(axis=1))
        agreeing = np.where(in_up * in_down > 0, np.minimum(np.abs(in_up), np.abs(in_down)), 0.0)
        against = np.maximum(against, agreeing.max(axis=1))
    return np.stack([largest, against])


def _signs(clusters: int, draws: int, seed: int) -> np.ndarray:
    """(draws, clusters) which clusters keep their sides (1) or change them (-1); the first draw is the observed one."""
    if clusters <= _ALL_PATTERNS:  # the last cluster keeps its sides: changing all clusters changes nothing
        return 1.0 - 2.0 * (np.arange(2 ** (clusters - 1))[:, None] >> np.arange(clusters) & 1)
    drawn = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (draws, clusters))
    return np.vstack([np.ones(clusters), drawn])


def _cross_fitted(scaled: np.ndarray, sizes: np.ndarray, folds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H, and the classifier of each fold. Both are computed from the clusters' inner products, which are few."""
    clusters, features = scaled.shape
    products, root = scaled @ scaled.T, np.sqrt(sizes)
    ridge = float((np.square(scaled) / sizes[:, None]).sum()) / features
    across, weights = np.zeros((clusters, clusters)), np.zeros((features, FOLDS))
    if ridge == 0:  # all differences of a cluster cancel
        return across, weights
    for fold in range(FOLDS):
        inside, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        among = products[np.ix_(others, others)]
        inner = ridge * np.eye(len(others)) + among / np.outer(root[others], root[others])
        # Woodbury: M^-1 = (I - A' (lambda I + A A')^-1 A) / lambda, with the rows S_v / sqrt(n_v) in A.
        solved = np.linalg.solve(inner, among / root[others][:, None])
        coefficients = (np.eye(len(others)) - solved / root[others][:, None]) / ridge
        across[np.ix_(inside, others)] = products[np.ix_(inside, others)] @ coefficients
        weights[:, fold] = scaled[others].T @ coefficients.sum(axis=1)
    return across, weights


def _standardised(counts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen clusters' counts, so that a draw's sum of each feature has variance 1; 0 for the other clusters."""
    kept = np.where(chosen[:, None], counts, 0.0)
    return kept / np.sqrt(np.maximum(np.square(kept).sum(axis=0), 1e-12))


def _quadratic(matrix: np.ndarray, signs: np.ndarray) -> np.ndarray:
    return np.asarray(((signs @ matrix) * signs).sum(axis=1))


def reached(values: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The share of values that reach each limit. Rounding differences count as equal.

    Args:
        values: (draws,) statistics under the null hypothesis; the first is the observed one.
        limits: Any number of limits.
    """
    ordered = np.sort(values)
    return (len(values) - np.searchsorted(ordered, limits - 1e-9 * np.maximum(np.abs(limits), 1e-3))) / len(values)


def smallest(statistics: list[np.ndarray]) -> float:
    """The p of the first draw's smallest p over several statistics, calibrated over the draws.

    Args:
        statistics: (draws,) each; the first draw is the observed one.
    """
    smallest_p = np.min([reached(values, values) for values in statistics], axis=0)
    return float((smallest_p <= smallest_p[0] + 1e-12).mean())
