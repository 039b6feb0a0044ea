"""Compares the words test with scipy, with matrices and with the truth: its level and its power."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from fairness_pipeline.measures.dialogue.breakdown import swapped_words
from fairness_pipeline.measures.dialogue.recipe_effects import power_over_seeds
from fairness_pipeline.statistics.clusters import Clustered, cautious_mean, most_cautious, random_effects
from fairness_pipeline.statistics.comparison import compare_diversity, compare_rates
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.intervals import Estimate, mean_difference
from fairness_pipeline.statistics.permutation import permutation_p
from fairness_pipeline.statistics.resampling import NGrams
from fairness_pipeline.statistics.verdicts import on_content, verdict


def test_even_clusters_give_the_t_test_of_their_means() -> None:
    random = np.random.default_rng(1)
    cluster = np.repeat(np.arange(15), 12)
    difference = random.normal(0.4, 1, 15)[cluster] + random.normal(0, 1, 180)
    means = np.array([difference[cluster == g].mean() for g in range(15)])
    expected = stats.ttest_1samp(means, 0)
    effects = random_effects(difference, random.permutation(15)[cluster])  # the clusters' names do not matter
    assert effects.estimate.centre == pytest.approx(means.mean())
    assert effects.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (effects.clusters, effects.effective, effects.estimate.freedom) == (15, pytest.approx(15), pytest.approx(14))


def test_uneven_clusters_give_cr2_by_matrices() -> None:
    """Bell and McCaffrey's adjusted residuals and degrees of freedom, from the whole matrices."""
    random = np.random.default_rng(2)
    sizes = np.array([40, 17, 9, 5, 3, 2, 2, 1])
    cluster = np.repeat(np.arange(8), sizes)
    difference = random.normal(0, 0.8, 8)[cluster] + random.normal(0.2, 1, sizes.sum())
    effects = random_effects(difference, cluster)
    n, count = len(cluster), 8
    means = np.array([difference[cluster == g].mean() for g in range(count)])
    within = sum(np.square(difference[cluster == g] - means[g]).sum() for g in range(count)) / (n - count)
    excess = (sizes * np.square(means - difference.mean())).sum() - (count - 1) * within
    between = max(0.0, excess / (n - np.square(sizes).sum() / n))
    weights = 1 / (between + within / sizes)
    # The weighted mean is least squares of sqrt(w) m on sqrt(w): CR2 with working covariance I.
    x = np.sqrt(weights)[:, None]
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    residual = (np.eye(count) - hat) @ (np.sqrt(weights) * means)
    adjusted = residual / np.sqrt(1 - np.diag(hat))
    bread = 1 / weights.sum()
    error2 = bread**2 * np.square(np.sqrt(weights) * adjusted).sum()
    g = (np.eye(count) - hat) @ np.diag(np.sqrt(weights) / np.sqrt(1 - np.diag(hat))) * bread
    eigen = np.linalg.eigvalsh(g.T @ g)
    assert effects.estimate.centre == pytest.approx((weights * means).sum() / weights.sum())
    assert effects.estimate.error == pytest.approx(np.sqrt(error2))
    assert effects.estimate.freedom == pytest.approx(eigen.sum() ** 2 / np.square(eigen).sum())
    assert effects.effective == pytest.approx(n**2 / np.square(sizes).sum())


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_effects_of_single_words_are_no_groups_difference(spread: float) -> None:
    """Twenty-five words, as uneven as Zipf's, each with its own rate on either side: rejected in 5%, pairs far more."""
    random = np.random.default_rng(13)
    shares = 1 / np.arange(1, 26)
    runs, words, pairs = 500, 0, 0
    for _ in range(runs):
        cluster = random.choice(25, 600, p=shares / shares.sum())
        rates = np.clip(0.3 + random.normal(0, spread, (2, 25)), 0, 1)
        a, b = (random.random(600) < side_rates[cluster] for side_rates in rates)
        row = compare_rates("m", a, b, Margin(cohens_h=0.05), clusters=[cluster])
        words += row.p_decides < 0.05
        pairs += row.p_paired < 0.05
    assert words / runs < 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert spread < 0.3 or pairs / runs > 0.4


def test_a_difference_in_all_words_is_found_and_the_margins_edge_is_not_fair() -> None:
    random = np.random.default_rng(4)
    cluster = np.arange(1500) % 20
    margin = Margin(absolute=3.0)
    detected = fair = 0
    for _ in range(100):
        a, b = random.random(1500) < 0.1, random.random(1500) < 0.22
        row = compare_rates("m", a, b, Margin(cohens_h=0.05), clusters=[cluster])
        detected += row.verdict == "biased"
        edge = np.clip(0.23 + random.normal(0, 0.04, 20), 0, 1)[cluster]
        fair += compare_rates("m", random.random(1500) < 0.2, random.random(1500) < edge, margin, clusters=[cluster]).verdict == "fair"  # fmt: skip
    assert detected >= 95 and fair <= 12


def test_few_words_allow_no_verdict() -> None:
    for words, expected in ((7, {"inconclusive"}), (9, {"biased"}), (1, {"inconclusive"})):
        cluster = np.arange(900) % words
        a, b = np.zeros(900, bool), np.random.default_rng(5).random(900) < 0.3
        assert {compare_rates("m", a, b, Margin(cohens_h=0.05), clusters=[cluster]).verdict} == expected, words
    alike = np.arange(20_000) % 2 == 0
    for words, expected in ((9, "inconclusive"), (10, "fair")):
        row = compare_rates("m", alike, alike, Margin(cohens_h=0.05), clusters=[np.arange(20_000) % words])
        assert row.verdict == expected
    assert verdict(equivalent=True, p_holm=1e-9, clusters=9) == "inconclusive"
    assert on_content("fair", "inconclusive") == on_content("inconclusive", "fair") == "inconclusive"


def test_whole_words_change_sides_in_diversity() -> None:
    """With eight words every pattern is tried: p of the farthest is 2 / 2^8; a word's own answers are no difference."""
    words = np.repeat(np.arange(8), 25)
    texts = [["same", "old", "words"], *([f"w{i}", f"x{i}", f"y{i}"] for i in range(200))]
    ngrams = NGrams(texts)
    a, b = np.arange(1, 201), np.zeros(200, dtype=int)
    assert permutation_p(ngrams, a, b, 100, 1, words)["diversity"] == pytest.approx(2 / 2**8)
    margins = {name: Margin(relative=0.05) for name in ("diversity", "distinct_1", "distinct_2")}
    (row, *_) = compare_diversity(ngrams, a, b, margins, permutations=100, blocks=10, seed=1, clusters=[words])
    assert row.verdict == "biased" and row.clusters == 8
    one_word = np.where(words == 0, a, b)  # only one word is answered differently
    (row, *_) = compare_diversity(ngrams, one_word, b, margins, permutations=100, blocks=10, seed=1, clusters=[words])
    assert row.p_clusters > 0.05 and row.verdict != "biased"


def test_the_most_cautious_of_two_ways_to_cluster() -> None:
    first = Clustered(Estimate(-2.0, 1.0, 9), 0.04, 12, 10.0)
    second = Clustered(Estimate(1.5, 1.4, 7), 0.30, 9, 8.0)
    combined = most_cautious([first, second])
    assert combined is not None and (combined.p, combined.clusters, combined.estimate) == (
        0.30,
        9,
        Estimate(-2.0, 1.4, 7),
    )
    assert most_cautious([]) is None


def test_pairs_are_clustered_by_their_first_and_by_their_rarest_word() -> None:
    terms = [[("he", "she")], [("he", "she"), ("dad", "mom")], [("dad", "mom"), ("he", "she")]]
    table = pa.table(
        {"pair_id": range(3), "terms": [[{"a": a, "b": b} for a, b in pair_terms] for pair_terms in terms]}
    )
    words = swapped_words(table)
    first, rarest = words.clusterings
    assert first.tolist() == [0, 0, 1] and rarest.tolist() == [0, 1, 1]
    assert words.most_frequent(1) == "he / she; ..."
    single = swapped_words(table.slice(0, 1))
    assert len(single.clusterings) == 1


@pytest.mark.parametrize(("difference", "seeds"), [(1.0, 5), (1.5, 8), (0.5, 20)])
def test_power_over_seeds_is_the_t_tests(difference: float, seeds: int) -> None:
    expected = TTestPower().power(effect_size=difference, nobs=seeds, alpha=0.01)
    assert power_over_seeds(difference, 1.0, 0.0, seeds, level=0.01) == pytest.approx(expected, abs=1e-6)
    assert power_over_seeds(0.0, 1.0, 0.0, seeds, level=0.01) == pytest.approx(0.01, abs=1e-6)


@pytest.mark.parametrize("largest", [None, 0.4])
def test_the_error_of_a_mean_is_that_of_the_same_mean(largest: float | None) -> None:
    """37 words, of one size, or one of which makes 40% of 800 pairs; each word has a mean of its own, drawn about 0."""
    random, alarms, draws = np.random.default_rng(8), 0, 800
    sizes = np.full(37, 22) if largest is None else np.array([320, *[13] * 36])
    words = np.repeat(np.arange(37), sizes)
    for _ in range(draws):
        difference = random.normal(0, 0.3, 37)[words] + random.normal(0, 1, len(words))
        alarms += cautious_mean(difference, [words], mean_difference(difference, np.zeros(len(words)))).p_zero() < 0.05
    assert alarms / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
