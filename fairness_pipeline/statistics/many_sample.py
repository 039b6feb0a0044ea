"""A test for texts about any number of groups: do the words of a text reveal which group it is about?

A group is named by several *bundles* of spans. The bundles of one stratum are asked in the same items, one for each
group, and change groups as wholes under the null hypothesis: an effect of a span (its letters, a rare name) is no
difference between groups. (Exchanging any spans, tried first, rejects in up to 40% of null draws: texts are compared
with the mean of their item, so the spans of one item are negatively correlated.)
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from fairness_pipeline.statistics.two_sample import reached, smallest

_ROUNDING = 1e-12
_SKETCH = 256
"""The dimension to which a text's features are projected for the distance between groups."""
_MOST_FEATURES, _FEWEST_TEXTS, _FEWEST_SPANS = 20_000, 4, 6
"""The most features that are used, the most frequent ones; and the fewest texts and spans with such a feature."""
_AT_ONCE = 2_000
"""Features that are processed together."""
DRAWS, _MORE = 999, 4_999
_MOST_WORK = 2 * 10**10
"""The most draws times spans times groups times features for which more are drawn."""


class Texts(NamedTuple):
    """The texts, as the test needs them.

    Attributes:
        present: (texts, features) whether a text has a feature.
        item: (texts,) the item, numbered from 0.
        span: (texts,) the bundle of its span, numbered from 0.
        group: (bundles,) the group of each bundle, numbered from 0.
        stratum: (bundles,) the stratum of each bundle. The bundles of a stratum are asked in the same items and change
            groups among themselves.
    """

    present: sparse.csr_array
    item: np.ndarray
    span: np.ndarray
    group: np.ndarray
    stratum: np.ndarray


class ManySampleResult(NamedTuple):
    """The result of `distinguish_groups`.

    Attributes:
        p: The p of "spans may change groups": the smaller p of two statistics (the distance of one group from the
            others, a single feature), calibrated in the same draws.
        kept: The features that were used.
        p_features: (groups, kept) the p of each in each group, adjusted over all (family-wise).
        statistics: (groups, kept) how much more often a group has each feature than others, in standard deviations.
    """

    p: float
    kept: np.ndarray
    p_features: np.ndarray
    statistics: np.ndarray


def distinguish_groups(texts: Texts, *, draws: int = DRAWS, seed: int = 0) -> ManySampleResult:
    """Tests whether texts about the groups can be told apart.

    With r_s the mean of a span's texts, each minus the mean of its item, and d_g the mean over group g minus that over
    the others, the first statistic is the largest d_g' M^-1 d_g over groups, standardised over the draws, with M the
    inner product of the texts' features (scaled, projected) plus a ridge; the second the largest |d_gj| over groups and
    features in standard deviations over spans.

    Args:
        texts: The texts.
        draws: The number of draws; more if no draw reaches the observed statistic, if that is cheap.
        seed: The seed of the draws and of the projection.

    Examples:
        >>> group = np.repeat(np.arange(2), 8)
        >>> present = sparse.csr_array(np.tile((group == 1).astype(np.float32), 5)[:, None])
        >>> item, span = np.repeat(np.arange(5), 16), np.tile(np.arange(16), 5)
        >>> distinguish_groups(Texts(present, item, span, group, group * 0)).p < 0.002
        True
    """
    groups = int(texts.group.max(initial=-1)) + 1
    counts = np.asarray(texts.present.sum(axis=0)).ravel()
    count = texts.present.shape[0]
    kept = np.flatnonzero((counts >= _FEWEST_TEXTS) & (counts < count))
    if len(kept) > _MOST_FEATURES:
        kept = np.sort(kept[np.argsort(-counts[kept], kind="stable")[:_MOST_FEATURES]])
    if not len(kept) or groups < 2:
        return ManySampleResult(1.0, kept, np.ones((groups, len(kept))), np.zeros((groups, len(kept))))
    chosen = texts.present[:, kept]
    sizes = np.bincount(texts.span, minlength=len(texts.group)).astype(float)
    sums, tested = _span_sums(chosen, texts)
    whitened = _whitened(chosen / np.sqrt(counts[kept]), texts, seed)
    scaled = (sums / np.sqrt(np.maximum(np.square(sums / np.sqrt(sizes)[:, None]).sum(axis=0), 1e-12))).astype(
        np.float32
    )
    labels = _relabelled(texts, draws, seed)
    result = _statistics(labels, groups, sizes, scaled, whitened, tested, kept)
    if result.p < 2 / (draws + 1) and _MORE * scaled.size * groups <= _MOST_WORK and draws < _MORE:
        result = _statistics(_relabelled(texts, _MORE, seed), groups, sizes, scaled, whitened, tested, kept)
    return result


def _span_sums(chosen: sparse.csr_array, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """(spans, features) the sum over a span's texts of presence minus the item's mean; and which features occur in
    enough spans to be tested."""
    span_texts, item_texts = _indicator(texts.span, len(texts.group)), _indicator(texts.item, int(texts.item.max()) + 1)
    by_span = (span_texts @ chosen).toarray()
    shares = span_texts @ item_texts.T  # (spans, items) how many texts
    means = (
        (item_texts @ chosen).multiply(1 / np.maximum(np.asarray(item_texts.sum(axis=1)).ravel(), 1)[:, None]).tocsr()
    )
    return by_span - (shares @ means).toarray(), (by_span > 0).sum(axis=0) >= _FEWEST_SPANS


def _whitened(scaled: sparse.csr_array, texts: Texts, seed: int) -> np.ndarray:
    """(spans, sketch) the sums of a span's texts, projected and whitened: squared distances are those of M^-1."""
    random = np.random.default_rng([seed, 2])
    features = scaled.shape[1]
    signs = random.choice([-1.0, 1.0], features)
    projection = sparse.csr_array(
        (signs, (np.arange(features), random.integers(_SKETCH, size=features))), (features, _SKETCH)
    )
    sketch = (scaled @ projection).toarray()
    item_texts = _indicator(texts.item, int(texts.item.max()) + 1)
    means = (item_texts @ sketch) / np.maximum(np.asarray(item_texts.sum(axis=1)).ravel(), 1)[:, None]
    total = np.square(sketch).sum()
    sketch = sketch - means[texts.item]
    metric = sketch.T @ sketch
    if np.trace(metric) <= _ROUNDING * total:  # nothing differs within an item
        return np.zeros((len(texts.group), _SKETCH))
    metric += np.trace(metric) / _SKETCH * np.eye(_SKETCH)
    whiten = np.linalg.inv(np.linalg.cholesky(metric)).T
    return np.asarray(_indicator(texts.span, len(texts.group)) @ sketch @ whiten)


def _indicator(codes: np.ndarray, count: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), (count, len(codes)))


def _relabelled(texts: Texts, draws: int, seed: int) -> np.ndarray:
    """(draws + 1, spans) the groups of the spans, permuted within strata; the first row is the observed one."""
    random = np.random.default_rng([seed, 1])
    drawn = np.tile(texts.group, (draws + 1, 1))
    for stratum in np.unique(texts.stratum):
        members = np.flatnonzero(texts.stratum == stratum)
        drawn[1:, members] = random.permuted(np.tile(texts.group[members], (draws, 1)), axis=1)
    return drawn


def _statistics(
    labels: np.ndarray,
    groups: int,
    sizes: np.ndarray,
    scaled: np.ndarray,
    whitened: np.ndarray,
    tested: np.ndarray,
    kept: np.ndarray,
) -> ManySampleResult:
    draws = len(labels)
    weights = np.stack([labels == group for group in range(groups)], axis=1)  # (draws, groups, spans)
    group_sizes = np.maximum(weights @ sizes, 1e-12)
    other_sizes = np.maximum(sizes.sum() - group_sizes, 1e-12)

    def difference(sums: np.ndarray, part: np.ndarray) -> np.ndarray:
        """(part, groups, features) each group's mean minus that of the others, in a part of the draws."""
        group_sums = weights[part].reshape(len(part) * groups, -1).astype(sums.dtype) @ sums
        group_sums = group_sums.reshape(len(part), groups, -1)
        return (
            group_sums / group_sizes[part][..., None] - (sums.sum(axis=0) - group_sums) / other_sizes[part][..., None]
        )

    distances = np.square(difference(whitened, np.arange(draws))).sum(axis=2)
    spread = np.maximum(distances.std(axis=0), 1e-12)
    distance = ((distances - distances.mean(axis=0)) / spread).max(axis=1)
    largest, observed = np.zeros(draws), np.zeros((groups, scaled.shape[1]))
    unit = np.sqrt(1 / group_sizes + 1 / other_sizes)[..., None]
    for start in range(0, scaled.shape[1], _AT_ONCE):
        chunk = slice(start, start + _AT_ONCE)
        for part in np.array_split(np.arange(draws), max(1, draws // 250)):
            gaps = difference(scaled[:, chunk], part) / unit[part]
            if part[0] == 0:
                observed[:, chunk] = gaps[0]
            if tested[chunk].any():
                largest[part] = np.maximum(largest[part], np.abs(gaps[..., tested[chunk]]).max(axis=(1, 2)))
    p_features = np.where(tested, reached(largest, np.abs(observed)), 1.0)
    return ManySampleResult(smallest([distance, largest]), kept, p_features, observed)
