"""Pairs and tests of study 3: the paper's counts, scipy's tests, planted shifts, and nulls."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import permutation_test, ttest_1samp, ttest_rel

from fairness_pipeline.corpora.equity_sentences import PUBLISHED, equity_sentences
from fairness_pipeline.measures.equity_pairs import ALL, WITHOUT, Design, pair_table
from fairness_pipeline.measures.equity_significance import EQUITY_SIGNIFICANCE, equity_significance
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.person_level import label_permutation, pair_means_t, paired_t_columns

MARGIN = Margin(absolute=0.01)
PAIRS = {"gender": (1584, 44), "race": (288, 8)}


@pytest.fixture(scope="module")
def sentences() -> pa.Table:
    return equity_sentences()


@pytest.fixture(scope="module")
def designs(sentences: pa.Table) -> dict[str, Design]:
    return {dimension: Design(sentences, dimension, PUBLISHED) for dimension in PAIRS}


def column(sentences: pa.Table, name: str) -> np.ndarray:
    return np.array(sentences[name].to_pylist(), dtype=object)


def audit(design: Design, dimension: str, scores: np.ndarray) -> dict[str, dict]:
    table = equity_significance([design], dimension, ["joy"], scores[:, None], MARGIN)
    assert table.schema.equals(EQUITY_SIGNIFICANCE)
    return {row["subset"]: row for row in table.to_pylist()}


@pytest.mark.parametrize("dimension", PAIRS)
def test_pairs_are_the_papers(designs: dict[str, Design], dimension: str) -> None:
    design = designs[dimension]
    assert tuple(len(design.pairs[subset].cells) for subset in (ALL, WITHOUT)) == PAIRS[dimension]
    for side in design.pairs[ALL][1:]:
        np.testing.assert_allclose(side.sum(axis=1), 1.0)
    assert len(design.people[ALL].on_a) == {"gender": 22, "race": 40}[dimension]


def test_a_pairs_scores_are_those_means(sentences: pa.Table, designs: dict[str, Design]) -> None:
    scores = np.random.default_rng(0).uniform(size=sentences.num_rows)
    rows = sentences.to_pylist()

    def mean(**wanted: object) -> float:
        chosen = [s for s, row in zip(scores, rows, strict=True) if all(row[k] == v for k, v in wanted.items())]
        return sum(chosen) / len(chosen)

    def pair(dimension: str, template: int, word: str | None, persons: str) -> tuple[float, float]:
        found = [
            (row["score_a"], row["score_b"])
            for row in pair_table(designs[dimension], ["joy"], scores[:, None]).to_pylist()
            if (row["template"], row["emotion_word"], row["persons"]) == (template, word, persons)
        ]
        assert len(found) == 1
        return found[0]

    place = {"templates": PUBLISHED, "template": 3, "emotion_word": "glad"}
    assert pair("gender", 3, "glad", "he / she") == pytest.approx(
        (mean(person="he", **place), mean(person="she", **place))
    )
    assert pair("gender", 3, "glad", "names") == pytest.approx(
        (mean(pair="names", gender="male", **place), mean(pair="names", gender="female", **place))
    )
    place = {"templates": PUBLISHED, "template": 9, "emotion_word": None}
    assert pair("race", 9, None, "female names") == pytest.approx(
        tuple(mean(race=f"{race} American", gender="female", **place) for race in ("European", "African"))
    )


@pytest.mark.parametrize("dimension", PAIRS)
def test_a_planted_shift_is_found_with_its_size_and_sign(
    sentences: pa.Table, designs: dict[str, Design], dimension: str
) -> None:
    group = {"gender": "female", "race": "African American"}[dimension]
    noise = np.random.default_rng(1).normal(0, 0.01, sentences.num_rows)
    rows = audit(designs[dimension], dimension, 0.5 + noise + 0.05 * (column(sentences, dimension) == group))
    for subset in (ALL, WITHOUT):
        row = rows[subset]
        assert row["verdict"] == "biased"
        assert row["difference"] == pytest.approx(-0.05, abs=0.01)
        assert row["ci_low"] < -0.05 < row["ci_high"]
        assert row["p"] < 1e-4


@pytest.mark.parametrize("dimension", PAIRS)
def test_a_system_that_ignores_the_person_shows_none(
    sentences: pa.Table, designs: dict[str, Design], dimension: str
) -> None:
    words = column(sentences, "emotion_word")
    scores = np.array([len(str(word)) / 20 for word in words]) + column(sentences, "template").astype(float) / 100
    for row in audit(designs[dimension], dimension, scores).values():
        assert (row["difference"], row["p"], row["p_paired"], row["statistic"]) == (0.0, 1.0, 1.0, None)
        assert row["verdict"] == "fair"


def test_all_equal_shifts_have_a_p(sentences: pa.Table, designs: dict[str, Design]) -> None:
    """Every pair differs by the same amount: t has no value, and the exact sign-flip test stands in."""
    row = audit(designs["gender"], "gender", 0.5 + 0.25 * (column(sentences, "gender") == "male"))[ALL]
    assert (row["statistic"], row["p_paired"]) == (None, 2.0**-10)
    assert row["difference"] == pytest.approx(0.25)
    assert row["verdict"] == "biased"


def test_the_papers_test_is_scipys(designs: dict[str, Design]) -> None:
    scores = np.random.default_rng(2).uniform(size=(17280, 3))
    a, b = designs["gender"].pairs[ALL].a @ scores, designs["gender"].pairs[ALL].b @ scores
    expected = ttest_rel(a, b)
    found = paired_t_columns(a, b)
    np.testing.assert_allclose(found.t, expected.statistic)
    np.testing.assert_allclose(found.p, expected.pvalue)
    np.testing.assert_allclose(found.interval(0.95), expected.confidence_interval(0.95))
    shifted = [
        ttest_1samp((a - b)[:, i], s * 0.02, alternative=k).pvalue
        for i in range(3)
        for s, k in ((1, "less"), (-1, "greater"))
    ]
    np.testing.assert_allclose(found.p_equivalence(np.array(0.02)), np.max(np.reshape(shifted, (3, 2)), axis=1))


def test_the_permutation_of_names_is_scipys_within_one_stratum() -> None:
    random = np.random.default_rng(3)
    scores, on_a = random.normal(size=(12, 2)) + np.array([0.0, 0.9]) * (np.arange(12) < 6)[:, None], np.arange(12) < 6
    found = label_permutation(scores, on_a, np.zeros(12, int), permutations=20_000)
    for i in range(2):
        exact = permutation_test(
            (scores[on_a, i], scores[~on_a, i]), lambda x, y: x.mean() - y.mean(), n_resamples=np.inf
        )
        assert found.difference[i] == pytest.approx(exact.statistic)
        assert found.p[i] == pytest.approx(exact.pvalue, abs=0.015)


def test_permuted_labels_stay_in_their_stratum() -> None:
    """Scores that differ between strata only are no evidence, however far apart the strata are."""
    strata, on_a = np.repeat([0, 1], 10), np.tile([True, False], 10)
    scores = np.where(strata == 0, 0.0, 100.0)[:, None] + np.random.default_rng(4).normal(0, 1e-6, (20, 1))
    found = label_permutation(scores, on_a, strata)
    assert abs(found.difference[0]) < 1e-5
    assert found.error[0] < 1e-5


def test_person_level_tests_hold_their_level_where_the_papers_does_not(
    sentences: pa.Table, designs: dict[str, Design]
) -> None:
    """Pure noise by person: every name and noun phrase has its own shift, whatever its group."""
    random = np.random.default_rng(5)
    persons, which = np.unique(column(sentences, "person").astype(str), return_inverse=True)
    runs = 2000
    scores = random.normal(0, 0.05, (len(persons), runs))[which] + random.normal(0, 0.02, (sentences.num_rows, runs))
    for dimension, test in (("gender", pair_means_t), ("race", label_permutation)):
        design = designs[dimension]
        means, on_a, strata = design.people[ALL]
        rejected = (test(means @ scores, on_a, strata).p < 0.05).mean()
        assert 0.035 < rejected < 0.065, dimension
        paper = (paired_t_columns(design.pairs[ALL].a @ scores, design.pairs[ALL].b @ scores).p < 0.05).mean()
        assert paper > 0.8, dimension
