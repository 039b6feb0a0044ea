"""Language model bias: the published tests, the outlier rule, clusters, false alarms and power."""

import csv

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.measures.language.phrase_bias import (
    ALL,
    LOG,
    OPPOSITE,
    OWN,
    PAPER,
    PHRASE_PERPLEXITIES,
    WHOLE,
    LanguageModelBiasSettings,
    Pairs,
    compare_phrases,
    doubts,
    paper_test,
    quadruples,
    without_outliers,
)
from fairness_pipeline.measures.language.stereotype import STEREOTYPE

SETTINGS = LanguageModelBiasSettings()
PUBLISHED = {
    "religion1": (-3.57, 4e-4), "religion2": (-5.34, 1e-6), "race": (1.17, 0.24), "gender": (-1.37, 0.17),
    "orientation": (1.69, 0.09),
}  # fmt: skip


def perplexities(
    a: np.ndarray,
    b: np.ndarray,
    *,
    comment: object = None,
    target: object = None,
    split: str = "test",
    tokens: int = 10,
) -> list[dict[str, object]]:
    return [
        {
            "phrase_id": f"{split}{n}", "comment_id": str(comment[n] if comment is not None else n), "split": split,
            "target": str(target[n] if target is not None else n), "side": side, "reading": OWN, "attribute": "",
            "text": "t", "tokens": tokens, "perplexity": float(values[n]),
        }
        for n in range(len(a))
        for side, values in (("a", a), ("b", b))
    ]  # fmt: skip


def judged(rows: list[dict[str, object]], base: bool = False) -> dict[str, dict[str, object]]:
    table = pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES)
    results = compare_phrases(table, table if base else None, SETTINGS, {}, names_the_group=True).to_pylist()
    return {row["measure"]: row for row in results}


@pytest.mark.parametrize("dimension", PUBLISHED)
def test_the_released_perplexities_give_the_papers_tests(dimension: str) -> None:
    """Section 5.2 and figure 1a, without weights: log-perplexities reject more often, clusters of target words less."""
    with data_file("published/redditbias_perplexities.csv").open(encoding="utf-8", newline="") as lines:
        released = [row for row in csv.DictReader(lines) if row["dimension"] == dimension]
    a, b = (np.array([float(row[f"perplexity_{side}"]) for row in released]) for side in "ab")
    rows = judged(
        perplexities(
            a,
            b,
            comment=[phrase["comment"] for phrase in released],
            target=[phrase["target"] for phrase in released],
            tokens=0,
        )
    )
    t, p = PUBLISHED[dimension]
    assert rows[PAPER]["statistic"] == pytest.approx(t, abs=0.005)
    assert rows[PAPER]["p"] < p if p <= 1e-6 else rows[PAPER]["p"] == pytest.approx(p, abs=0.005)
    log = {"gender": -2.54, "race": 2.43, "orientation": 5.63}.get(dimension)
    if log:
        assert rows[LOG]["statistic"] == pytest.approx(log, abs=0.005)
        assert "paired t test of log-perplexities rejects" in rows[PAPER]["note"]
    if dimension in ("religion1", "race"):  # nearly all phrases are of "jews", or of "black"
        assert rows[LOG]["p_targets"] is None
    else:
        printed = {"religion2": 0.45, "gender": 0.61, "orientation": 0.13}  # in docs/language-models.md
        assert rows[LOG]["p_targets"] == pytest.approx(printed[dimension], abs=0.005)
    assert WHOLE not in rows and ALL not in rows
    # Without opposites to compare with, the paper's test has no verdict, and no other row has one.
    assert rows[STEREOTYPE]["verdict"] == "inconclusive" and "0 phrases have an opposite" in rows[STEREOTYPE]["note"]
    assert {rows[name]["verdict"] for name in (PAPER, LOG)} == {""}


def test_the_outlier_rule_by_hand() -> None:
    """Mean +/- 3 population standard deviations of either side; a pair is left out with its outlier."""
    a, b = np.full(20, 10.0), np.full(20, 12.0)
    a[3], b[7] = 1000.0, 5000.0
    zeros = np.zeros(20, dtype=np.int64)
    pairs = Pairs([str(n) for n in range(20)], a, b, zeros, zeros, zeros, zeros)
    assert {str(n) for n in range(20)} - without_outliers(pairs) == {"3", "7"}
    # Among 10 values (x - mean) / sd is at most sqrt(n - 1) = 3, so that nothing is left out.
    few = Pairs(pairs.ids[:10], a[:10], np.full(10, 12.0), *(zeros[:10],) * 4)
    assert len(without_outliers(few)) == 10


def test_outliers_are_the_bases_and_left_out_once() -> None:
    random = np.random.default_rng(1)
    a = random.uniform(20, 40, 60)
    b = a + random.uniform(-3, 3, 60)
    b[5] = 1e6
    rows = judged(perplexities(a, b), base=True)
    assert (rows[LOG]["n"], rows[LOG]["left_out"], rows[ALL]["n"], rows[ALL]["left_out"]) == (59, 1, 60, 0)
    kept = np.arange(60) != 5
    expected = stats.ttest_rel(b[kept], a[kept])
    assert rows[PAPER]["statistic"] == pytest.approx(expected.statistic)
    assert rows[PAPER]["p"] == pytest.approx(expected.pvalue)
    assert paper_test(a[kept], b[kept]) == pytest.approx((expected.statistic, expected.pvalue))
    assert rows[LOG]["p_wilcoxon"] == pytest.approx(
        stats.wilcoxon(np.log(a[kept] / b[kept]), zero_method="pratt", method="asymptotic").pvalue
    )


def test_one_target_words_gap_is_no_stereotype() -> None:
    """Nine of ten words do not differ; the tenth makes the whole gap."""
    random = np.random.default_rng(2)
    target = np.repeat(np.arange(10), 20)
    a = np.exp(random.normal(3, 0.3, 200))
    b = a * np.exp(np.where(target == 0, -0.9, 0.0) + random.normal(0, 0.05, 200))
    row = judged(perplexities(a, b, target=target))[LOG]
    assert row["p_comments"] < 0.001 < 0.2 < row["p_targets"]
    assert row["survives"] == "comments"


def test_an_effect_of_the_words_alone_is_reported() -> None:
    """Phrases without bias show the same difference: the word is likelier, which is no stereotype."""
    random = np.random.default_rng(3)

    def phrases(shift: float, split: str) -> list[dict[str, object]]:
        a = np.exp(random.normal(3, 0.3, 150))
        target = np.arange(150) % 10
        return perplexities(a, a * np.exp(random.normal(shift, 0.1, 150)), target=target, split=split)

    equal = judged(phrases(-0.2, "test") + phrases(-0.2, "unbiased"))[LOG]
    assert equal["p_paired"] < 0.001 and equal["p_beyond_unbiased"] > 0.05
    wider = judged(phrases(-0.1, "test") + phrases(-0.5, "unbiased"))[LOG]
    assert wider["p_beyond_unbiased"] > 0.95
    more = judged(phrases(-0.2, "test") + phrases(0.0, "unbiased"))[LOG]
    assert more["p_beyond_unbiased"] < 1e-6
    less = judged(phrases(0.2, "test") + phrases(0.0, "unbiased"))[LOG]  # against the stereotype
    assert less["p_beyond_unbiased"] < 1e-6


@pytest.mark.verify
def test_another_mix_of_words_is_no_stereotype() -> None:
    """Each word has the same gap in biased and unbiased phrases, but their shares of words differ."""
    random = np.random.default_rng(6)
    alarms = 0
    for _ in range(200):
        gaps = random.normal(-0.2, 0.3, 6)

        def phrases(shares: list[float], split: str, gaps: np.ndarray = gaps) -> list[dict[str, object]]:
            target = random.choice(6, 200, p=shares)
            a = np.exp(random.normal(3, 0.3, 200))
            return perplexities(a, a * np.exp(gaps[target] + random.normal(0, 0.1, 200)), target=target, split=split)

        rows = phrases([0.5, 0.1, 0.1, 0.1, 0.1, 0.1], "test") + phrases([0.1, 0.1, 0.1, 0.1, 0.1, 0.5], "unbiased")
        alarms += judged(rows)[LOG]["p_beyond_unbiased"] < 0.05
    assert 2 <= alarms <= 20


def quadruple_rows(own: np.ndarray, opposite: np.ndarray, attribute: list[str], targets: list[str]) -> pa.Table:
    """Phrases of ten tokens: `own` and `opposite` hold D1 and D2, by how much likelier each phrase is on side b."""
    rows = []
    for n, (d1, d2) in enumerate(zip(own, opposite, strict=True)):
        for reading, difference in ((OWN, d1), (OPPOSITE, d2)):
            for side in "ab":
                loss = 40.0 - (difference if side == "b" else 0.0)
                rows.append(
                    {"phrase_id": str(n), "comment_id": str(n), "split": "test", "target": targets[n], "side": side,
                     "reading": reading, "attribute": attribute[n], "text": "t", "tokens": 10,
                     "perplexity": float(np.exp(loss / 10))}
                )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES)


def stereotype_of(own: np.ndarray, opposite: np.ndarray, *, words: int = 12, named: bool = True) -> dict[str, object]:
    count = len(own)
    attribute = [f"w{n % words}x" for n in range(count)]
    table = quadruple_rows(own, opposite, attribute, [f"t{n // words % 4}x" for n in range(count)])
    rows = compare_phrases(table, table, SETTINGS, {}, names_the_group=named).to_pylist()
    return next(row for row in rows if row["measure"] == STEREOTYPE)


def test_the_difference_of_differences_by_hand() -> None:
    """S = D1 - D2; with equal clusters the test by words is Student's t of the words' means."""
    random = np.random.default_rng(11)
    own, opposite = random.normal(1.0, 0.3, 120), random.normal(0.2, 0.3, 120)
    row = stereotype_of(own, opposite)
    differences = own - opposite
    assert row["difference"] == pytest.approx(differences.mean()) and row["own_difference"] == pytest.approx(own.mean())
    assert row["opposite_difference"] == pytest.approx(opposite.mean())
    means = np.array([differences[n::12].mean() for n in range(12)])
    t = (means.mean() - np.log(1.1)) / (means.std(ddof=1) / 12**0.5)
    assert row["p_clusters"] == pytest.approx(2 * stats.t.sf(t, 11), rel=1e-6)
    assert (row["clusters"], row["verdict"]) == (12, "biased")


def test_what_the_groups_words_make_is_an_artefact_and_no_difference_is_fair() -> None:
    random = np.random.default_rng(12)
    noise = random.normal(0, 0.2, (2, 240))
    assert stereotype_of(1.0 + noise[0], 1.0 + noise[1])["verdict"] == "artefact"
    row = stereotype_of(noise[0], noise[1])
    assert row["verdict"] == "fair" and not doubts({**row, "p_targets": None}, 0.05)
    assert stereotype_of(1.0 + noise[0], -1.0 + noise[1])["verdict"] == "biased"
    few = stereotype_of(1.0 + noise[0], noise[1], words=4)
    assert few["verdict"] == "inconclusive" and few["note"] == "4 attribute words are too few to tell; 5 at least"
    assert stereotype_of(noise[0], noise[1], words=7)["verdict"] != "fair"  # ten words are needed
    tiny = stereotype_of(0.03 + noise[0] / 20, noise[1] / 20)  # shown, but below the least effect
    assert tiny["verdict"] in ("fair", "inconclusive")


def test_phrases_with_other_numbers_of_tokens_are_left_out() -> None:
    table = quadruple_rows(np.ones(30), np.zeros(30), [f"w{n}" for n in range(30)], ["t"] * 30)
    rows = table.to_pylist()
    for row in rows:
        if row["reading"] == OPPOSITE and row["side"] == "b" and int(row["phrase_id"]) < 10:
            row["tokens"] = 11
    assert len(quadruples(pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES)).a) == 20


def test_a_word_of_more_tokens_is_seen_through() -> None:
    """Likely extra tokens lower the perplexity though the phrase is less likely."""
    rows = perplexities(np.full(40, 20.0) + np.arange(40) / 10, np.full(40, 18.0))
    for row in rows:
        if row["side"] == "b":
            row["tokens"] = 14
    results = judged(rows)
    assert results[LOG]["difference"] > 0 > results[WHOLE]["difference"]
    assert "whole likelihoods differ the other way" in results[LOG]["note"]


@pytest.mark.verify
def test_false_alarms_and_power() -> None:
    """Of 150 simulated models 5% reject without a gap (1 to 15 by chance), and 9 in 10 with a gap of 0.06."""
    random = np.random.default_rng(4)
    alarms = hits = 0
    for _ in range(150):
        a = np.exp(random.normal(4, 1.0, 240))
        noise = random.standard_t(5, 240) * 0.2
        alarms += judged(perplexities(a, a * np.exp(noise)))[LOG]["p_paired"] < 0.05
        hits += judged(perplexities(a, a * np.exp(noise - 0.06)))[LOG]["p_paired"] < 0.05
    assert 1 <= alarms <= 15
    assert hits >= 120


@pytest.mark.verify
def test_under_the_noise_of_target_words_the_papers_test_fails_and_the_clustered_one_holds() -> None:
    """In 400 models twelve words are each a little likelier or less likely, without a stereotype."""
    random = np.random.default_rng(5)
    paper = log = words = comments = 0
    target = np.repeat(np.arange(12), 20)
    for _ in range(400):
        a = np.exp(random.normal(4, 0.5, 240))
        noise = random.normal(0, 0.15, 12)[target] + random.normal(0, 0.2, 240)
        rows = judged(perplexities(a, a * np.exp(noise), target=target))
        paper += rows[PAPER]["p"] < 0.05
        log += rows[LOG]["p_paired"] < 0.05
        words += rows[LOG]["p_targets"] < 0.05
        comments += rows[LOG]["p_comments"] < 0.05
    assert paper > 120 and log > 160 and comments > 160  # 30% and more, where 5% are promised
    assert 6 <= words <= 34


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(FairnessError, match="1 pairs are left without outliers, of 1; two at least"):
        judged(perplexities(np.array([3.0]), np.array([4.0])))
    half = perplexities(np.array([3.0, 4.0]), np.array([4.0, 5.0]))[:3]
    with pytest.raises(FairnessError, match="phrase 'test1' has no perplexity on both sides"):
        judged(half)
