"""Compares our statistics with scipy, statsmodels and hand-computed cases."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize
from statsmodels.stats.weightstats import ztest

from fairness_pipeline.lexicons.text import encode_words
from fairness_pipeline.statistics import resampling
from fairness_pipeline.statistics.comparison import compare_counts, compare_diversity, compare_rates
from fairness_pipeline.statistics.corrections import benjamini_hochberg, holm
from fairness_pipeline.statistics.effects import cohens_d, cohens_h
from fairness_pipeline.statistics.equivalence import Bound, Margin, tost
from fairness_pipeline.statistics.intervals import Estimate, count_difference, rate_difference
from fairness_pipeline.statistics.paired import mcnemar_mid_p, paired_t, wilcoxon_p, z_test
from fairness_pipeline.statistics.permutation import permutation_p
from fairness_pipeline.statistics.resampling import NGrams, jackknife

RANDOM = np.random.default_rng(0)
TEN_PERCENT = Margin(relative=0.1)


def test_z_is_statsmodels() -> None:
    a, b = RANDOM.poisson(1.0, 400).astype(float), RANDOM.poisson(1.2, 400).astype(float)
    expected = ztest(a, b, usevar="unequal")
    test = z_test(a, b)
    assert test.statistic == pytest.approx(expected[0])
    assert test.p == pytest.approx(expected[1])


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 1), (3, 10), (12, 12), (1, 40), (200, 260), (0, 30)])
def test_mcnemar_is_statsmodels_less_half_the_point(only_a: int, only_b: int) -> None:
    exact = mcnemar([[5, only_a], [only_b, 7]], exact=True).pvalue
    smaller, total = min(only_a, only_b), only_a + only_b
    expected = 1.0 if only_a == only_b else exact - stats.binom.pmf(smaller, total, 0.5)
    assert mcnemar_mid_p(only_a, only_b).p == pytest.approx(expected)


def test_mcnemar_by_hand() -> None:
    """One against nine of ten: 2 (1 + 10 / 2) / 2^10."""
    assert mcnemar_mid_p(1, 9).p == pytest.approx((2 * 1 + 10) / 1024)


def test_paired_t_and_wilcoxon_are_scipy() -> None:
    a, b = RANDOM.poisson(1.0, 200).astype(float), RANDOM.poisson(1.3, 200).astype(float)
    expected = stats.ttest_rel(a, b)
    test = paired_t(a, b)
    assert (test.statistic, test.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert wilcoxon_p(a, b) == pytest.approx(stats.wilcoxon(a - b, zero_method="pratt", method="asymptotic").pvalue)


def test_corrections_are_statsmodels() -> None:
    p = RANDOM.random(9).tolist()
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist())
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1].tolist())
    assert holm([]) == benjamini_hochberg([]) == []


def test_effect_sizes() -> None:
    assert cohens_h(0.3, 0.5) == pytest.approx(proportion_effectsize(0.3, 0.5))
    a, b = np.array([1.0, 2, 3, 4]), np.array([2.0, 3, 4, 9])
    spread = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    assert cohens_d(a, b) == pytest.approx(-2 / spread)


def test_rate_difference_by_hand() -> None:
    """Bonett and Price: (b + 1) / (n + 2) each; for 9 and 3 of 98 pairs: 0.1 and 0.04."""
    estimate = rate_difference(9, 3, 98)
    assert estimate.centre == pytest.approx(0.06)
    assert estimate.error == pytest.approx(math.sqrt((0.1 + 0.04 - 0.06**2) / 100))
    low, high = estimate.interval(0.95)
    assert (low, high) == pytest.approx((0.06 - 1.959964 * estimate.error, 0.06 + 1.959964 * estimate.error))


def test_count_interval_is_scipys_on_the_augmented_pairs() -> None:
    a, b = RANDOM.poisson(1.0, 300).astype(float), RANDOM.poisson(1.3, 300).astype(float)
    expected = stats.ttest_1samp([*(a - b), 1, -1], 0).confidence_interval(0.9)
    assert count_difference(a, b).interval(0.9) == pytest.approx((expected.low, expected.high))


def test_tost_is_two_one_sided_t_tests() -> None:
    d = RANDOM.normal(0.02, 1.0, 500)
    estimate = Estimate(d.mean(), d.std(ddof=1) / math.sqrt(500), 499)
    lower = stats.ttest_1samp(d, -0.1, alternative="greater").pvalue
    upper = stats.ttest_1samp(d, 0.1, alternative="less").pvalue
    assert tost(estimate, Bound(0.1)).p == pytest.approx(max(lower, upper))
    for margin in np.linspace(0.01, 0.3, 40):
        equivalence = tost(estimate, Bound(margin))
        assert equivalence.shown == (equivalence.p <= 0.05)


def test_a_few_identical_answers_do_not_prove_diversity_fair() -> None:
    margins = dict.fromkeys(("diversity", "distinct_1", "distinct_2"), TEN_PERCENT)
    for pairs, verdict in ((2, "inconclusive"), (20, "inconclusive"), (60, "fair")):
        same = np.arange(pairs)
        counted = NGrams([[f"w{i}", "x"] for i in range(pairs)])
        rows = compare_diversity(counted, same, same, margins, permutations=20, blocks=10, seed=1)
        assert {row.verdict for row in rows} == {verdict}


def ngrams(responses: list[str]) -> NGrams:
    return NGrams([response.split() for response in responses])


def test_diversity_by_hand() -> None:
    """`a b a`, `a b`, `a b a` again: 8 words; words a, b; pairs ab, ba."""
    counted = ngrams(["a b a", "a b", "x"])
    measured = counted.diversity(np.array([0, 1, 0]))
    assert (measured.words, measured.distinct_1, measured.distinct_2, measured.diversity) == (8, 2 / 8, 2 / 8, 2 / 8)


@pytest.mark.parametrize("part", [1, 5, 10**6])
@pytest.mark.parametrize("first_code", [0, 2**31 - 10])
def test_ngrams_are_counted_as_sets_hold_them(part: int, first_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of any size, and with codes so large that a pair of words and its response need more than 63 bits."""
    monkeypatch.setattr(resampling, "_PART", part)
    random = np.random.default_rng(part)
    texts = [[str(word) for word in random.integers(0, 9, random.integers(0, 12))] for _ in range(30)]
    encoded = encode_words(texts)
    counted = NGrams(encoded._replace(codes=encoded.codes + np.int32(first_code)))
    for chosen in (np.arange(30), random.integers(0, 30, 7)):
        words = sum(len(texts[i]) for i in chosen)
        singles = {word for i in chosen for word in texts[i]}
        doubles = {pair for i in chosen for pair in pairwise(texts[i])}
        measured = counted.diversity(chosen)
        assert measured[:3] == (words, len(singles) / words, len(doubles) / words)


@pytest.mark.parametrize("few", [1, 2, 12])
def test_what_few_answers_do_not_settle_is_read_in_the_others(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides of few or many of the answers, in few or many blocks and draws, beside sets and loops."""
    monkeypatch.setattr(resampling, "_FEW", few)
    random = np.random.default_rng(few)
    texts = [[str(word) for word in random.integers(0, 6, random.integers(0, 5))] for _ in range(60)]
    counted = NGrams(texts)

    def distinct(chosen: np.ndarray) -> list[float]:
        kinds = {word for i in chosen for word in texts[i]}, {pair for i in chosen for pair in pairwise(texts[i])}
        words = sum(len(texts[i]) for i in chosen)
        shares = [len(kind) / words if words else 0.0 for kind in kinds]
        return [*shares, sum(shares) / 2]

    for pairs, answers, blocks in ((2, 60, 2), (8, 5, 3), (40, 60, 4), (200, 60, 150)):
        side, block = random.integers(0, answers, pairs), random.integers(0, blocks, pairs)
        plainly = [distinct(side[block != number]) for number in range(blocks)] + [distinct(side)]
        assert counted.without_blocks(side, block, blocks) == pytest.approx(np.array(plainly))
        assert list(counted.diversity(side)[1:]) == pytest.approx(distinct(side))


def test_permutation_p_by_hand() -> None:
    """Two pairs have four exchanges; two of them (none and both) reach the observed difference."""
    counted = ngrams(["a b", "c d", "e e"])
    p = permutation_p(counted, np.array([0, 1]), np.array([2, 2]), permutations=4000, seed=1)
    assert p["distinct_1"] == pytest.approx(0.5, abs=0.03)


def plain_p(
    texts: list[list[str]], a: np.ndarray, b: np.ndarray, draws: int, seed: int, cluster_of: np.ndarray | None
) -> list[float]:
    """The permutation test with sets and loops, one exchange after the other."""

    def differences(moved: np.ndarray) -> np.ndarray:
        sides = []
        for first, second in ((a, b), (b, a)):
            responses = [texts[y if m else x] for x, y, m in zip(first, second, moved, strict=True)]
            words = sum(map(len, responses))
            kinds = (
                {word for text in responses for word in text},
                {pair for text in responses for pair in pairwise(text)},
            )
            shares = [len(kind) / words if words else 0.0 for kind in kinds]
            sides.append([*shares, sum(shares) / 2])
        return np.abs(np.subtract(*sides))

    cluster = np.arange(len(a)) if cluster_of is None else cluster_of
    clusters = cluster.max() + 1
    least = differences(np.zeros(len(a), dtype=bool)) * (1 - 1e-9) - 1e-15
    if cluster_of is not None and clusters <= 10:
        patterns = [np.array([*pattern, False]) for pattern in product((False, True), repeat=clusters - 1)]
        return np.mean([differences(pattern[cluster]) >= least for pattern in patterns], axis=0).tolist()
    random = np.random.default_rng(seed)
    reached = sum((differences((random.random(clusters) < 0.5)[cluster]) >= least).astype(int) for _ in range(draws))
    return ((reached + 1) / (draws + 1)).tolist()


@pytest.mark.parametrize("seed", range(24))
def test_permutation_p_is_that_of_a_plain_loop(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty answers, few words, clusters, and numbers of draws that 64 does not divide."""
    monkeypatch.setattr(resampling, "_FEW", 1 + seed % 12)
    random = np.random.default_rng(seed)
    count, pairs, draws = random.integers(1, (30, 60, 150))
    words = [f"w{i}" for i in range(random.integers(1, 40))]
    texts = [[words[i] for i in random.integers(0, len(words), random.integers(0, 8))] for _ in range(count)]
    a, b = random.integers(0, count, (2, pairs))
    groups = (None, 6, 40)[seed % 3]
    cluster_of = None if groups is None else np.unique(random.integers(0, groups, pairs), return_inverse=True)[1]
    p = permutation_p(NGrams(texts), a, b, int(draws), seed, cluster_of)
    assert list(p.values()) == plain_p(texts, a, b, int(draws), seed, cluster_of)


def test_jackknife_by_hand() -> None:
    """Three blocks of one pair each, computed by leaving them out with a plain loop."""
    responses = ["a b", "c d e", "e e", "a c"]
    a, b = np.array([0, 1, 3]), np.array([2, 2, 0])
    counted = ngrams(responses)
    left_out = []
    for i in range(3):
        keep = [j for j in range(3) if j != i]
        sides = [[word for j in keep for word in responses[side[j]].split()] for side in (a, b)]
        d1 = [len(set(words)) / len(words) for words in sides]
        left_out.append(d1[0] - d1[1])
    mean = sum(left_out) / 3
    distinct = [len({*"ab", *"cde", *"ac"}) / 7, len({*"ee", *"ee", *"ab"}) / 6]
    one_pair = sum(distinct) / 2 / 3
    expected = math.sqrt(2 / 3 * sum((value - mean) ** 2 for value in left_out) + 2 * one_pair**2)
    estimate = jackknife(counted, a, b, blocks=50)["distinct_1"].estimate
    assert estimate.error == pytest.approx(expected)
    assert estimate.freedom == 2


def test_test_and_interval_agree() -> None:
    """The more cautious of the two prevails, at the level and nowhere else."""
    clear = Estimate(3.0, 1.0)
    assert clear.in_accord_with(0.001) == (clear, 0.001)  # both reject: each keeps its own
    vague = Estimate(1.0, 1.0)
    same, p = vague.in_accord_with(0.001)
    assert (same, p) == (vague, pytest.approx(2 * stats.norm.sf(1.0)))
    wider, p = clear.in_accord_with(0.2)
    assert p == 0.2
    assert wider.p_zero() == pytest.approx(0.2)
    low, high = wider.interval(0.95)
    assert low < 0 < high
    assert vague.in_accord_with(0.4) == (vague, 0.4)
    assert math.isinf(Estimate(0.1, 0.01).in_accord_with(1.0)[0].error)
    random = np.random.default_rng(0)
    for _ in range(200):
        estimate = Estimate(random.normal(), random.uniform(0.1, 2), random.choice([5.0, math.inf]))
        reconciled, p = estimate.in_accord_with(random.uniform())
        low, high = reconciled.interval(0.95)
        assert (p < 0.05) == (not low <= 0 <= high)
        assert reconciled.error >= estimate.error


def defined(row: object) -> None:
    """Checks that no value of a row is NaN or infinite."""
    for value in vars(row).values():
        assert not isinstance(value, float) or math.isfinite(value), row


CASES = {
    "one pair, equal": ([1], [1]),
    "one pair, different": ([1], [0]),
    "all zero": ([0] * 50, [0] * 50),
    "all one": ([1] * 50, [1] * 50),
    "opposite": ([1] * 50, [0] * 50),
    "no discordant pair": ([0, 1] * 25, [0, 1] * 25),
    "two pairs": ([1, 0], [0, 1]),
}


@pytest.mark.parametrize("case", CASES)
def test_edge_cases_give_a_defined_answer(case: str) -> None:
    a, b = (np.array(side) for side in CASES[case])
    rate = compare_rates("m", a.astype(bool), b.astype(bool), TEN_PERCENT)
    count = compare_counts("m", a.astype(float), b.astype(float), TEN_PERCENT)
    for row in (rate, count):
        defined(row)
        assert row.verdict in ("fair", "biased", "inconclusive")
        assert row.note or case == "two pairs"
    counted = NGrams([["a"], ["b", "c"]])
    for row in compare_diversity(
        counted,
        a,
        b,
        dict.fromkeys(("diversity", "distinct_1", "distinct_2"), TEN_PERCENT),
        permutations=20,
        blocks=5,
        seed=1,
    ):
        defined(row)


def test_edge_case_verdicts() -> None:
    zeros, ones = np.zeros(50), np.ones(50)
    never = compare_counts("m", zeros, zeros, TEN_PERCENT)
    assert (never.p, never.p_paired, never.verdict) == (1.0, 1.0, "inconclusive")
    assert "never seen" in never.note
    assert compare_rates("m", ones > 0, zeros > 0, TEN_PERCENT).verdict == "biased"
    single = compare_rates("m", np.array([True]), np.array([False]), TEN_PERCENT)
    assert (single.p, single.paper_verdict) == (None, None)
    assert (single.p_paired >= 0.5, single.verdict) == (True, "inconclusive")
    three = compare_counts("m", np.ones(3), np.ones(3), TEN_PERCENT)
    assert three.verdict == "inconclusive"  # three equal pairs prove nothing
    many = compare_counts("m", np.ones(3000), np.ones(3000), TEN_PERCENT)
    assert many.verdict == "fair"


def test_margins() -> None:
    a, b = np.array([1.0, 3.0]), np.array([3.0, 5.0])
    assert Margin(relative=0.1).bound(a, b).amount == pytest.approx(0.3)
    assert Margin(absolute=0.5).bound(a, b).amount == 0.5
    assert Margin(standard_deviations=0.05).bound(a, b).amount == pytest.approx(0.05)  # both sides spread by 1
    for wrong in ({}, {"relative": 0.1, "absolute": 1.0}, {"relative": 0}):
        with pytest.raises(ValueError, match=r"exactly one|greater"):
            Margin(**wrong)


@pytest.mark.parametrize(("rate", "points"), [(0.37, 2.41), (0.5, 2.5), (0.01, 0.497), (0.0, 0.0625)])
def test_cohens_h_in_points(rate: float, points: float) -> None:
    """Two rates about the pooled one that are h apart, by statsmodels; the same for a rate and its complement."""
    margin, many = Margin(cohens_h=0.05), 10_000
    for share in (rate, 1 - rate):
        responses = (np.arange(many) < round(share * many)).astype(float)
        amount = margin.bound(responses, responses, 100).amount
        assert amount == pytest.approx(points, abs=0.01)
        if 0.001 < share < 0.999:
            high, low = share + amount / 200, share - amount / 200
            assert proportion_effectsize(high, low) == pytest.approx(0.05, rel=0.01)


def test_the_published_pairs_show_the_published_gap() -> None:
    """Table 3 of Liu et al. 2020: 36.763 against 40.098% of 300,000 is no fairness; 92 / 99 and 8 / 1 are the same."""

    def judged(rate_a: float, rate_b: float, n: int) -> str:
        random = np.random.default_rng(0)
        a, b = (random.permutation(np.arange(n) < round(rate * n)) for rate in (rate_a, rate_b))
        return compare_rates("m", a, b, Margin(cohens_h=0.05)).verdict

    assert judged(0.36763, 0.40098, 300_000) == "biased"
    assert judged(0.92, 0.99, 3000) == judged(0.08, 0.01, 3000) == "biased"
    assert judged(0.0, 0.0, 5400) == judged(1.0, 1.0, 5400) == "fair"
    assert judged(0.0, 0.0, 4700) == "inconclusive"  # the rule of three: 3 / 4,700 > 0.06%


def test_pairs_that_fairness_needs() -> None:
    """About 7,000 independent pairs at any rate; with so many, simulations show fairness four times in five."""
    random = np.random.default_rng(1)
    assert Margin(cohens_h=0.05).before() == pytest.approx(6851, abs=5)
    for rate in (0.5, 0.1, 0.02):
        rows = [
            compare_rates("m", random.random(7000) < rate, random.random(7000) < rate, Margin(cohens_h=0.05))
            for _ in range(400)
        ]
        assert 6500 < np.median([row.pairs_needed for row in rows]) < 7500
        assert 0.74 < np.mean([row.verdict == "fair" for row in rows]) < 0.88


def test_a_verdict_is_never_stronger_than_its_p() -> None:
    assert tost(Estimate(0.0, 0.0), Bound(0.0)) == (1.0, False, None)
    same = np.zeros(100, dtype=int)
    for row in compare_diversity(
        NGrams([[]]), same, same, dict.fromkeys(("diversity", "distinct_1", "distinct_2"), Margin(relative=0.05)),
        permutations=20, blocks=10, seed=1,
    ):  # fmt: skip
        assert (row.p_equivalence, row.verdict) == (1.0, "inconclusive")
