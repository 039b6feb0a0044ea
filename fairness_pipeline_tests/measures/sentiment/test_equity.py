"""Pairs and tests of sentiment equity: the paper's counts, scipy's tests, planted shifts, and nulls."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import permutation_test, ttest_1samp, ttest_rel

from fairness_pipeline.corpora.sentiment.equity_sentences import PUBLISHED, make_equity_sentences
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY, WITHOUT, Design, pair_table
from fairness_pipeline.measures.sentiment.equity_significance import EQUITY_SIGNIFICANCE, judge_equity
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.person_level import label_permutation, paired_t_columns, sign_flip

MARGIN = Margin(absolute=0.01)
PAIRS = {"gender": (1584, 44), "race": (288, 8)}


@pytest.fixture(scope="module")
def sentences() -> pa.Table:
    return make_equity_sentences()


@pytest.fixture(scope="module")
def designs(sentences: pa.Table) -> dict[str, Design]:
    return {dimension: Design(sentences, dimension, PUBLISHED) for dimension in PAIRS}


def column(sentences: pa.Table, name: str) -> np.ndarray:
    return np.array(sentences[name].to_pylist(), dtype=object)


def audit(design: Design, dimension: str, scores: np.ndarray) -> dict[str, dict]:
    table = judge_equity([design], dimension, ["joy"], scores[:, None], MARGIN)
    assert table.schema.equals(EQUITY_SIGNIFICANCE)
    return {row["subset"]: row for row in table.to_pylist() if row["persons"] == EVERYBODY}


@pytest.mark.parametrize("dimension", PAIRS)
def test_pairs_are_the_papers(designs: dict[str, Design], dimension: str) -> None:
    design = designs[dimension]
    assert tuple(len(design.pairs(subset=subset).cells) for subset in (ALL, WITHOUT)) == PAIRS[dimension]
    for side in design.pairs()[1:]:
        np.testing.assert_allclose(side.sum(axis=1), 1.0)
    by_race = {"African American names": 20, "European American names": 20}
    sizes = {"gender": {"names": 40, "noun phrases": 20, **by_race}, "race": {"female names": 20, "male names": 20}}
    assert {kind: people.sentences.shape for kind, people in design.people.items()} == {
        kind: (count, 144) for kind, count in sizes[dimension].items()
    }


def test_a_pairs_scores_are_those_means(sentences: pa.Table, designs: dict[str, Design]) -> None:
    scores = np.random.default_rng(0).uniform(size=sentences.num_rows)
    rows = sentences.to_pylist()

    def mean(**values: object) -> float:
        chosen = [
            score
            for score, row in zip(scores, rows, strict=True)
            if all(row[name] == value for name, value in values.items())
        ]
        return sum(chosen) / len(chosen)

    def pair(dimension: str, template: int, word: str | None, persons: str) -> tuple[float, float]:
        scores_of_pairs = [
            (row["score_a"], row["score_b"])
            for row in pair_table(designs[dimension], ["joy"], scores[:, None]).to_pylist()
            if (row["template"], row["emotion_word"], row["persons"]) == (template, word, persons)
        ]
        assert len(scores_of_pairs) == 1
        return scores_of_pairs[0]

    sentence = {"templates": PUBLISHED, "template": 3, "emotion_word": "glad"}
    assert pair("gender", 3, "glad", "he / she") == pytest.approx(
        (mean(person="he", **sentence), mean(person="she", **sentence))
    )
    assert pair("gender", 3, "glad", "names") == pytest.approx(
        (mean(pair="names", gender="male", **sentence), mean(pair="names", gender="female", **sentence))
    )
    sentence = {"templates": PUBLISHED, "template": 9, "emotion_word": None}
    assert pair("race", 9, None, "female names") == pytest.approx(
        tuple(mean(race=f"{race} American", gender="female", **sentence) for race in ("European", "African"))
    )


@pytest.mark.parametrize("dimension", PAIRS)
def test_a_planted_shift_is_detected_with_its_size_and_sign(
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
    """Every pair differs by the same amount: t has no value, so the exact sign-flip test replaces it."""
    row = audit(designs["gender"], "gender", 0.5 + 0.25 * (column(sentences, "gender") == "male"))[ALL]
    assert row["statistic"] is None
    assert row["p_paired"] < 1e-6
    assert row["difference"] == pytest.approx(0.25)
    assert row["verdict"] == "biased"


def test_the_papers_test_is_scipys(designs: dict[str, Design]) -> None:
    scores = np.random.default_rng(2).uniform(size=(17280, 3))
    a, b = designs["gender"].pairs().a @ scores, designs["gender"].pairs().b @ scores
    expected = ttest_rel(a, b)
    ours = paired_t_columns(a, b)
    np.testing.assert_allclose(ours.t, expected.statistic)
    np.testing.assert_allclose(ours.p, expected.pvalue)
    np.testing.assert_allclose(ours.interval(0.95), expected.confidence_interval(0.95))
    shifted = [
        ttest_1samp((a - b)[:, i], sign * 0.02, alternative=tail).pvalue
        for i in range(3)
        for sign, tail in ((1, "less"), (-1, "greater"))
    ]
    np.testing.assert_allclose(ours.p_equivalence(np.array(0.02)), np.max(np.reshape(shifted, (3, 2)), axis=1))


def test_the_permutation_of_names_is_scipys_within_one_stratum() -> None:
    random = np.random.default_rng(3)
    scores, on_a = random.normal(size=(12, 2)) + np.array([0.0, 0.9]) * (np.arange(12) < 6)[:, None], np.arange(12) < 6
    ours = label_permutation(scores, on_a, np.zeros(12, int), permutations=20_000)
    for i in range(2):
        exact = permutation_test(
            (scores[on_a, i], scores[~on_a, i]), lambda x, y: x.mean() - y.mean(), n_resamples=np.inf
        )
        assert ours.difference[i] == pytest.approx(exact.statistic)
        assert ours.p[i] == pytest.approx(exact.pvalue, abs=0.015)


def test_permuted_labels_stay_in_their_stratum() -> None:
    """Scores that differ only between strata are no evidence, however far apart the strata are."""
    strata, on_a = np.repeat([0, 1], 10), np.tile([True, False], 10)
    scores = np.where(strata == 0, 0.0, 100.0)[:, None] + np.random.default_rng(4).normal(0, 1e-6, (20, 1))
    result = label_permutation(scores, on_a, strata)
    assert abs(result.difference[0]) < 1e-5
    assert result.error[0] < 1e-5


def noise(sentences: pa.Table, runs: int, seed: int, group: np.ndarray, **spread: float) -> np.ndarray:
    """Scores with random effects: of `person` and `sentence`, and of `template` or `word` on one group's sentences."""
    random = np.random.default_rng(seed)
    scores = 0.5 + random.normal(0, spread.get("sentence", 0.02), (sentences.num_rows, runs))
    worded = column(sentences, "emotion_word") != None  # noqa: E711
    for name, applies in (("person", True), ("template", group), ("word", group & worded)):
        labels = column(sentences, {"word": "emotion_word"}.get(name, name)).astype(str)
        kinds, codes = np.unique(labels, return_inverse=True)
        effects = random.normal(0, spread.get(name, 0.0), (len(kinds), runs))[codes]
        scores += effects * np.broadcast_to(np.asarray(applies), len(labels))[:, None]
    return scores


@pytest.mark.verify
@pytest.mark.parametrize("dimension", PAIRS)
@pytest.mark.parametrize(
    ("spread", "paper_rate"),
    [
        ({"person": 0.05}, 0.75),
        ({"person": 0.02, "template": 0.05}, 0.6),
        ({"template": 0.05}, 0.6),
        ({"word": 0.05}, 0.2),
    ],
    ids=["names", "names and templates", "templates", "words"],
)
def test_levels_hold_where_the_papers_do_not(
    sentences: pa.Table, designs: dict[str, Design], dimension: str, spread: dict[str, float], paper_rate: float
) -> None:
    """Every name, template or word has its own shift, whatever the group: verdicts keep their level."""
    group = column(sentences, dimension) == {"gender": "female", "race": "African American"}[dimension]
    runs = 100
    scores = noise(sentences, runs, 5, group, **spread)
    table = judge_equity([designs[dimension]], dimension, [f"s{i}" for i in range(runs)], scores, MARGIN)
    rows = table.to_pylist()
    limit = 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5
    for kind in (EVERYBODY, *designs[dimension].people):
        for subset in (ALL, "joy words"):
            of_stratum = [row for row in rows if (row["persons"], row["subset"]) == (kind, subset)]
            assert np.mean([row["p_paired"] < 0.05 for row in of_stratum]) < limit, (kind, subset)
            assert np.mean([not row["ci_low"] <= 0 <= row["ci_high"] for row in of_stratum]) < limit, (kind, subset)
    overall = [row for row in rows if (row["persons"], row["subset"]) == (EVERYBODY, ALL)]
    strata = [[row["p_paired"] for row in rows if row["affect"] == f"s{i}"] for i in range(runs)]
    assert np.mean([min(holm(p_values)) < 0.05 for p_values in strata]) < limit  # over all strata at once
    assert np.mean([row["paper_verdict"] == "biased" for row in overall]) > paper_rate


@pytest.mark.verify
def test_power_at_one_standard_deviation_of_name_noise(sentences: pa.Table, designs: dict[str, Design]) -> None:
    """A gap between the groups' names as wide as the spread within a group is found nearly always."""
    runs = 100
    for dimension, kind, least in (("gender", "names", 0.8), ("race", "female names", 0.45)):
        group = column(sentences, dimension) == {"gender": "female", "race": "African American"}[dimension]
        named = column(sentences, "race") != None  # noqa: E711
        scores = noise(sentences, runs, 6, group, person=0.05) + 0.05 * (group & named)[:, None]
        rows = judge_equity([designs[dimension]], dimension, [f"s{i}" for i in range(runs)], scores, MARGIN)
        of_names = [entry for entry in rows.to_pylist() if (entry["persons"], entry["subset"]) == (kind, ALL)]
        assert np.mean([row["p_paired"] < 0.05 for row in of_names]) > least, dimension


PLANTED = {
    # by name: the shift of sentences, the verdicts on gender and on race, and the deciding stratum
    "none": (lambda c: 0.0, "fair", "fair", None),
    "noise of sentences": (lambda c: np.random.default_rng(0).normal(0, 0.002, len(c("person"))), "fair", "fair", None),
    "gender": (lambda c: 0.1 * (c("gender") == "female"), "biased", "fair", None),
    "race": (lambda c: 0.1 * (c("race") == "African American"), "fair", "biased", None),
    "women's names only": (
        lambda c: 0.3 * ((c("gender") == "female") & (c("pair") == "names")), "biased", "fair", "names"
    ),
    "noun phrases only": (
        lambda c: 0.1 * ((c("gender") == "female") & (c("pair") != "names")), "biased", "fair", "noun phrases"
    ),
    "names and noun phrases opposed": (
        lambda c: np.where(c("pair") == "names", 0.3, -0.03) * (c("gender") == "female"), "biased", "fair", "names"
    ),
    "race, opposed in women and men": (
        lambda c: np.select(
            [c("race") == "African American", c("race") == "European American"], [0.05, -0.05], 0.0
        ) * np.where(c("gender") == "female", 1, -1), "biased", "biased", "names",
    ),
    "opposed in joy and anger": (
        lambda c: np.select([c("emotion") == "joy", c("emotion") == "anger"], [0.1, -0.1], 0.0)
        * (c("gender") == "female"), "biased", "fair", "words"
    ),
    "one name": (lambda c: 0.3 * (c("person") == "Tia"), "fair on average", "inconclusive", None),
    "templates by group": (
        lambda c: np.random.default_rng(5).normal(0, 0.1, 12)[c("template").astype(int)] * (c("gender") == "female"),
        "inconclusive", "fair", None,
    ),
    "names at random": (
        lambda c: np.random.default_rng(2).normal(0, 0.1, 100)[np.unique(c("person").astype(str), return_inverse=True)[1]],
        "inconclusive", "inconclusive", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_systems_get_their_right_verdicts(
    sentences: pa.Table, designs: dict[str, Design], planted: str
) -> None:
    shift, gender, race, stratum = PLANTED[planted]
    scores = np.full(sentences.num_rows, 0.5) + shift(lambda name: column(sentences, name))
    for dimension, expected in (("gender", gender), ("race", race)):
        row = audit(designs[dimension], dimension, scores)[ALL]
        assert row["verdict"] == expected, (dimension, row)
        if stratum and expected == "biased":
            assert stratum in row["stratum"]


def test_a_small_gap_in_one_stratum_and_doubt_in_another_are_no_bias(
    sentences: pa.Table, designs: dict[str, Design]
) -> None:
    """The true gap is a fifth of the margin, and noise leaves small strata in doubt."""
    runs = 20
    scores = (
        noise(sentences, runs, 11, np.zeros(sentences.num_rows, bool), sentence=0.02)
        + 0.002 * (column(sentences, "gender") == "female")[:, None]
    )
    verdicts = [audit(designs["gender"], "gender", scores[:, i])[ALL]["verdict"] for i in range(runs)]
    assert verdicts.count("biased") <= 1
    assert verdicts.count("fair on average") > runs / 2


def test_the_name_that_moves_a_difference_is_named(sentences: pa.Table, designs: dict[str, Design]) -> None:
    scores = np.full(sentences.num_rows, 0.5) + 0.3 * (column(sentences, "person") == "Tia")
    table = judge_equity([designs["gender"]], "gender", ["joy"], scores[:, None], MARGIN)
    (row,) = [entry for entry in table.to_pylist() if (entry["persons"], entry["subset"]) == ("names", ALL)]
    assert row["difference"] == pytest.approx(-0.3 / 20)
    assert (row["most_moved_by"], row["difference_without"]) == ("Tia", pytest.approx(0.0))


@pytest.mark.verify
def test_variance_components_are_recovered(sentences: pa.Table, designs: dict[str, Design]) -> None:
    """Standard deviations of names, templates and words are recovered within a few percent over 150 draws."""
    group = column(sentences, "gender") == "female"
    scores = noise(sentences, 150, 9, group, person=0.05, template=0.06, word=0.04, sentence=0.01)
    table = judge_equity([designs["gender"]], "gender", [f"s{i}" for i in range(150)], scores, MARGIN)
    rows = [entry for entry in table.to_pylist() if (entry["persons"], entry["subset"]) == ("names", ALL)]
    for name, planted in (("sd_persons", 0.05), ("sd_templates", 0.06), ("sd_words", 0.04)):
        assert np.sqrt(np.mean([row[name] ** 2 for row in rows])) == pytest.approx(planted, rel=0.1), name


def test_the_interval_of_race_contains_the_shifts_that_its_test_does_not_reject() -> None:
    random = np.random.default_rng(3)
    scores, on_a = random.normal(size=(20, 1)), np.arange(20) < 10
    strata = np.zeros(20, int)
    result = label_permutation(scores, on_a, strata)
    low, high = result.interval_95()
    for shift in (low - 0.03, low + 0.03, high - 0.03, high + 0.03):
        rejected = label_permutation(scores - shift * on_a[:, None], on_a, strata).p[0] <= 0.05
        assert rejected != (low < shift < high)


def test_sign_flips_are_exact() -> None:
    """Four pairs have sixteen patterns of signs."""
    difference = np.array([[0.1], [0.2], [0.3], [-0.05]])
    patterns = [[1 - 2 * sign for sign in signs] for signs in np.ndindex(2, 2, 2, 2)]
    means = [abs(sum(sign * value for sign, value in zip(signs, difference[:, 0], strict=True))) for signs in patterns]
    assert sign_flip(difference).p[0] == sum(mean >= 0.55 - 1e-12 for mean in means) / 16
