"""Compares the two-sample test with its formula written out, and tries it on data of known truth."""

import numpy as np
import pytest
from scipy import sparse

from fairness_pipeline.statistics import two_sample
from fairness_pipeline.statistics.two_sample import FOLDS, PairedSums, distinguish_sides

SIZES = np.array([60, 44, 31, 25, 20, 18, 15, 12, 11, 9, 8, 7, 6, 6, 5, 4, 4, 3, 2, 2])
"""Pairs of a word, as uneven as those of real contexts."""
DIRECTION = np.array([1, -1, 0, 1, 1, -1, 1, -1, 0, 1, -1, 1, 1, -1, 0, 1, -1, 1, -1, 1], dtype=float)


def drawn(
    seed: int, effect: float = 0.0, direction: np.ndarray | float = 0.0, of_word: float = 1.0, features: int = 40
) -> PairedSums:
    """Pairs whose sides differ by chance, by their word, and perhaps by the group or by the words' direction."""
    random = np.random.default_rng(seed)
    shift = of_word * random.normal(size=(len(SIZES), features)) * 0.4
    shift[:, 0] += effect + direction
    sums, differing = np.zeros((len(SIZES), features)), np.zeros(features, dtype=int)
    for cluster, size in enumerate(SIZES):
        differs = random.random((size, features)) < 0.3
        signs = np.where(random.random((size, features)) < 1 / (1 + np.exp(-2 * shift[cluster])), 1, -1) * differs
        sums[cluster] += signs.sum(axis=0)
        differing += differs.sum(axis=0)
    return PairedSums(sparse.csr_array(sums), differing, SIZES, np.zeros((len(SIZES), len(SIZES))))


def test_the_classifier_is_the_ridge_of_the_formula() -> None:
    sums = drawn(1)
    scaled = sums.features.toarray() / np.sqrt(sums.differing)
    folds = np.arange(len(SIZES)) % FOLDS
    across, weights = two_sample._cross_fitted(scaled, SIZES, folds)
    of_clusters = np.square(scaled) / SIZES[:, None]
    ridge = of_clusters.sum() / scaled.shape[1]
    for fold in range(FOLDS):
        others = folds != fold
        metric = (scaled[others] / SIZES[others, None]).T @ scaled[others] + ridge * np.eye(scaled.shape[1])
        inverse = np.linalg.inv(metric)
        expected = scaled[folds == fold] @ inverse @ scaled[others].T
        np.testing.assert_allclose(across[np.ix_(folds == fold, others)], expected, atol=1e-10)
        np.testing.assert_allclose(weights[:, fold], inverse @ scaled[others].sum(axis=0), atol=1e-10)
        assert not across[np.ix_(folds == fold, folds == fold)].any()  # no word is scored by a fit that saw it


def test_it_holds_its_level_where_words_have_effects_of_their_own() -> None:
    draws = [distinguish_sides(drawn(seed), DIRECTION, draws=199, seed=seed) for seed in range(200)]
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(draws))
    assert np.mean([result.p < 0.05 for result in draws]) <= allowed
    assert np.mean([result.p_beyond < 0.05 for result in draws]) <= allowed
    assert np.mean([(result.p_features < 0.05).any() for result in draws]) <= allowed  # family-wise


def test_it_finds_a_difference_and_its_feature() -> None:
    draws = [
        distinguish_sides(drawn(seed, effect=2.0, of_word=0.3), DIRECTION, draws=199, seed=seed) for seed in range(20)
    ]
    assert sum(result.p < 0.05 for result in draws) >= 18
    assert sum(result.p < 0.05 and result.p_beyond < 0.05 for result in draws) >= 14
    assert sum(result.kept[np.argmin(result.p_features)] == 0 for result in draws) >= 18
    assert all(result.statistics[0] > 2 for result in draws)


def test_what_depends_on_the_direction_alone_is_not_beyond_it() -> None:
    """A system that treats the longer word differently, where side b nearly always has it."""
    longer = np.where(np.arange(len(SIZES)) < 15, 1.0, -1.0)
    draws = [
        distinguish_sides(drawn(seed, direction=1.5 * longer, of_word=0.3), longer, draws=199, seed=seed)
        for seed in range(20)
    ]
    assert sum(result.p < 0.05 for result in draws) >= 15
    assert sum(result.p < 0.05 and result.p_beyond < 0.05 for result in draws) <= 2


def test_no_word_of_the_other_direction_shows_nothing_beyond_it() -> None:
    """Words of equal length are no stand-in for words that lean the other way."""
    never = np.where(np.arange(len(SIZES)) % 4 == 1, 0.0, 1.0)
    draws = [
        distinguish_sides(drawn(seed, direction=1.5 * never, of_word=0.3), never, draws=199, seed=seed)
        for seed in range(40)
    ]
    assert sum(result.p < 0.05 for result in draws) >= 20
    assert sum(result.p < 0.05 and result.p_beyond < 0.05 for result in draws) <= 6  # 5%, and chance


def test_without_a_direction_nothing_is_shown_beyond_it() -> None:
    result = distinguish_sides(drawn(3, effect=2.0, of_word=0.3), np.full(len(SIZES), np.nan))
    assert result.p < 0.01
    assert result.p_beyond == 1.0


@pytest.mark.parametrize("count", [0, 1])
def test_too_little_shows_nothing(count: int) -> None:
    nothing = PairedSums(sparse.csr_array((count, 5)), np.zeros(5, dtype=int), np.ones(count), np.zeros((count, count)))
    assert distinguish_sides(nothing, np.zeros(count)).p == 1.0


def test_p_has_no_floor_that_many_audits_would_meet() -> None:
    """Where none of 999 draws reaches it, more are made; the same seed gives the same p; chance needs no more draws."""
    first, again = (
        distinguish_sides(drawn(3, 3.0, of_word=0, features=5), np.zeros(len(SIZES)), seed=1) for _ in range(2)
    )
    assert first.p == again.p < 1 / 9_999
    by_chance = [distinguish_sides(drawn(seed, effect=0.0), np.zeros(len(SIZES)), seed=seed).p for seed in range(40)]
    assert sum(p < 0.05 for p in by_chance) <= 6
