"""Changes of answers: similarity, the one-sided test, length, and diversity of answers of equal length."""

import numpy as np
import pyarrow as pa
import pytest
from sacrebleu import sentence_chrf

from fairness_pipeline.lexicons.no_effect import GROUP, REWORDING
from fairness_pipeline.measures.dialogue.answer_changes import (
    compare_changes,
    differences_without_effect,
    measure_changes,
    similarities,
)
from fairness_pipeline.measures.dialogue.diversity import index_responses
from fairness_pipeline.measures.dialogue.length import MEASURE as LENGTH
from fairness_pipeline.measures.dialogue.length import LengthScorer
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.project.project import load_dimension

GENDER = load_dimension("gender")


def changes(rates: dict[str, float], count: int, seed: int = 0) -> pa.Table:
    """Answers of which a share stays the same; `rates` gives the share for each kind of change."""
    random = np.random.default_rng(seed)
    rows = [
        {"pair_id": pair, "side": "a", "change": change, "unchanged": bool(same), "similarity": 100.0 if same else 20.0}
        for change, rate in rates.items()
        for pair, same in enumerate(random.random(count) < rate)
    ]
    for row in rows:
        row["distance"] = None
    return pa.Table.from_pylist(rows)


def test_similarity_is_sacrebleus() -> None:
    first, second = "Take your time and ask a neighbour.", "Take some time and ask the neighbours."
    assert similarities([(first, second)]) == [pytest.approx(sentence_chrf(first, [second], beta=1).score)]
    assert similarities([("", ""), ("a b", "a b")]) == [100, 100]


def test_answers_are_compared_with_the_groups_words_masked() -> None:
    responses = pa.table(
        {"pair_id": [0, 0], "side": ["a", "b"], "response": ["Your uncle is nice.", "Your aunt is nice."]}
    )
    others = pa.table({"pair_id": [0], "side": ["a"], "change": [REWORDING], "response": ["Quite another thing."]})
    by_change = {row["change"]: row for row in measure_changes(responses, others, GENDER).to_pylist()}
    assert (by_change[GROUP]["unchanged"], by_change[GROUP]["similarity"]) == (True, 100)
    assert by_change[REWORDING]["similarity"] < 50


@pytest.mark.parametrize(
    ("group", "rewording", "verdict"), [(0.3, 0.8, "biased"), (0.6, 0.6, "fair"), (0.9, 0.5, "fair")]
)
def test_only_more_changes_by_the_group_are_a_bias(group: float, rewording: float, verdict: str) -> None:
    table = changes({GROUP: group, REWORDING: rewording}, 4000)
    rows = {row.measure: row for row in compare_changes(table, SignificanceSettings())}
    assert rows["similarity"].verdict == verdict
    assert rows["unchanged"].value_b == pytest.approx(100 * group, abs=3)
    assert "distance" not in rows


def test_chance_alone_is_seldom_biased() -> None:
    """A null simulation: any change changes 40% of the answers."""
    verdicts = [
        compare_changes(changes({GROUP: 0.6, REWORDING: 0.6}, 80, seed), SignificanceSettings())[0].verdict
        for seed in range(300)
    ]
    assert verdicts.count("biased") <= 0.05 * 300 + 3 * (300 * 0.05 * 0.95) ** 0.5


def test_words_are_counted_and_a_mask_is_one_word() -> None:
    texts = ["", "one", "It's two-fold, isn't it?", "_ said 3.5 things…", "naïve café"]
    assert LengthScorer()(pa.table({"text": texts}))["words"].to_pylist() == [0, 1, 4, 4, 2]


def test_answers_of_equal_length_have_as_many_words_on_both_sides() -> None:
    rows = [
        ("a", "one two three four"),
        ("b", "five six"),
        ("a", "seven"),
        ("b", "eight nine ten"),
        ("a", "x y"),
        ("b", ""),
    ]
    responses = pa.table(
        {"pair_id": [0, 0, 1, 1, 2, 2], "side": [side for side, _ in rows], "response": [text for _, text in rows]}
    )
    plain, equal = index_responses(responses), index_responses(responses, equal_length=True)
    assert plain.ngrams.diversity(plain.a).words == 7
    of_a, of_b = equal.ngrams.diversity(equal.a), equal.ngrams.diversity(equal.b)
    assert of_a.words == of_b.words == 3
    assert (of_a.distinct_1, of_a.distinct_2) == (1.0, 1 / 3)  # one two | seven


def test_shorter_answers_of_one_law_are_not_more_diverse_at_equal_length() -> None:
    random = np.random.default_rng(1)
    words = [f"w{number}" for number in range(20)]

    def random_answer(length: int) -> str:
        return " ".join(random.choice(words, length))

    rows = [(pair, side, random_answer(12 if side == "a" else 4)) for pair in range(500) for side in "ab"]
    responses = pa.table(
        {"pair_id": [r[0] for r in rows], "side": [r[1] for r in rows], "response": [r[2] for r in rows]}
    )
    plain, equal = index_responses(responses), index_responses(responses, equal_length=True)
    gap = [
        indexed.ngrams.diversity(indexed.a).diversity - indexed.ngrams.diversity(indexed.b).diversity
        for indexed in (plain, equal)
    ]
    assert gap[0] < -0.05  # counted as in the papers, the side with short answers is more diverse
    assert abs(gap[1]) < 0.02


def _moved(of_a: int, of_b: int) -> dict[str, float]:
    """How another wording that adds `of_a` and `of_b` words to a bot's answers moves the gap in length."""
    random = np.random.default_rng(4)
    words = random.integers(3, 12, 200)
    sides = ["a", "b"] * 100
    answers = {("a", pair): "so " * words[pair] for pair in range(200)} | {
        ("b", pair): "so " * 4 for pair in range(200)
    }
    responses = pa.table(
        {
            "pair_id": [*range(200), *range(200)],
            "side": ["a"] * 200 + ["b"] * 200,
            "response": [answers[side, pair] for side in "ab" for pair in range(200)],
            "kind": ["answer"] * 400,
        }
    )
    added = {"a": "so " * of_a, "b": "so " * of_b}
    others = pa.table(
        {
            "pair_id": range(200),
            "side": sides,
            "change": [REWORDING] * 200,
            "response": [answers[side, pair] + added[side] for pair, side in enumerate(sides)],
            "kind": ["answer"] * 200,
        }
    )
    scorings = {LENGTH.table: LENGTH.scoring(MeasureSettings(), GENDER)}
    clusters = [np.arange(200) // 10]
    (row,) = differences_without_effect(responses, others, [LENGTH], scorings, clusters).slice(0, 1).to_pylist()
    return {name: row[name] for name in ("gap_original", "gap_changed", "difference", "ci_low", "ci_high")}


def test_a_bot_that_greets_back_has_the_same_gap_either_way() -> None:
    """Another wording is compared by the gaps: a shift that both sides share counts for nothing."""
    greets, unsteady = _moved(2, 2), _moved(3, 0)
    assert greets["difference"] == pytest.approx(0, abs=1e-9) and greets["ci_low"] < 0 < greets["ci_high"] < 0.3
    assert greets["gap_original"] == pytest.approx(greets["gap_changed"]) and greets["gap_changed"] > 2
    assert unsteady["difference"] == pytest.approx(3) and unsteady["ci_low"] > 2.5
