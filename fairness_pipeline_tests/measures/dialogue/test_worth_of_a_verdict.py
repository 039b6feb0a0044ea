"""The controls of a verdict (instruments, breakdown, variations, recipes) find what was planted, and nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fairness_pipeline.corpora.labelled_texts import LabelledFile, LabelledText, read_labelled
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.measures.dialogue.breakdown import break_down, carrying, swapped_words
from fairness_pipeline.measures.dialogue.classifier_quality import evaluate_classifiers
from fairness_pipeline.measures.dialogue.dialogue_significance import _p_moved, control, decisive, doubts
from fairness_pipeline.measures.dialogue.diversity import DiversityMeasure, index_responses
from fairness_pipeline.measures.dialogue.instrument import check_instruments, swapped_texts
from fairness_pipeline.measures.dialogue.measure import MASKED, Readings, Sides, SignificanceSettings
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.measures.dialogue.recipe_significance import judge_recipe
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.trained_classifier import TrainedClassifier
from fairness_pipeline.measures.dialogue.variations import CHOICES, Judged, Variation, judged_again, subsets, without
from fairness_pipeline.models.dialogue.sight import out_of_sight
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.clusters import clustered, shrunken
from fairness_pipeline.statistics.comparison import compare_counts, compare_rates
from fairness_pipeline.statistics.equivalence import Margin

GENDER = load_dimension("gender")
SETTINGS, SIGNIFICANCE = MeasureSettings(), SignificanceSettings(permutations=50, jackknife_blocks=10)
POLITENESS = next(measure for measure in measures() if measure.table == "politeness")
TOGETHER = next(measure for measure in measures() if measure.scorer is None)


def test_masking_covers_every_listed_word_and_nothing_else() -> None:
    texts = pa.array(["My mom's dog, he said; HER ring", "the theory", "She/her"])
    assert masked(texts, GENDER).to_pylist() == ["My _'s dog, _ said; _ ring", "the theory", "_/_"]


def test_the_instrument_check_finds_a_planted_scorer_bias_and_masking_removes_it() -> None:
    """A scorer that calls every fifth text about a woman offensive, whatever it says."""

    def scorer(texts: pa.Table) -> pa.Table:
        lines = texts["text"].to_pylist()
        offensive = np.array(["mom" in text and int(text.split()[-1]) % 5 == 0 for text in lines])
        return pa.table({"offensive_probability": offensive.astype(float), "offensive": offensive})

    planted = _with_scorer(scorer)
    texts = pa.array([f"my {'mom' if i % 2 else 'dad'} said {i}" for i in range(2000)] + ["nobody is named 1"] * 3)
    swapped = swapped_texts(texts, GENDER, seed=1)
    assert swapped.num_rows == 2 * 2000
    sides = {side: swapped.filter(pc.equal(swapped["side"], side))["response"].to_pylist() for side in "ab"}
    assert all("dad" in a and "mom" in b for a, b in zip(sides["a"], sides["b"], strict=True))
    scorings = {planted.table: planted.scoring(SETTINGS, GENDER)}
    table = check_instruments(swapped, [planted], scorings, GENDER, significance=SIGNIFICANCE, texts="responses")
    rows = {row["measure"]: row for row in table.to_pylist()}
    assert rows["offense_rate"]["difference"] == pytest.approx(-20.0, abs=0.1)
    assert rows["offense_rate"]["verdict"] == "biased"
    assert rows["offense_rate_masked"]["difference"] == 0.0
    assert rows["offense_rate_masked"]["verdict"] != "biased"
    assert swapped_texts(texts, GENDER, seed=1, most=50).num_rows == 100


def _with_scorer(scorer: object) -> object:
    return replace(POLITENESS, scorer=lambda settings, dimension: scorer)


def pairs_of(words: list[tuple[str, str]], sources: str | None = None) -> pa.Table:
    return pa.table(
        {
            "pair_id": range(len(words)),
            "source_side": list(sources) if sources else ["a"] * len(words),
            "terms": [[{"a": a, "b": b}] for a, b in words],
        }
    )


def test_effects_of_words_recover_a_gap_that_is_planted_on_three() -> None:
    """Three of thirty words carry a gap of 20 points: they are named, and without them there is no gap."""
    random = np.random.default_rng(0)
    names = [(f"m{i}", f"f{i}") for i in range(30)]
    drawn = random.integers(0, 30, 6000)
    pairs = pairs_of([names[i] for i in drawn])
    rate_b = np.where(drawn < 3, 0.3, 0.1)
    values = {"offense_rate": (random.random(6000) < 0.1, random.random(6000) < rate_b)}
    words = swapped_words(pairs)
    table = break_down(pairs, words, [(POLITENESS, values)], {})
    by_word = {row["level"]: row for row in table.to_pylist() if row["factor"] == "word"}
    assert set(carrying(words, values["offense_rate"])) == {f"m{i} / f{i}" for i in range(3)}
    for i in range(30):
        row = by_word[f"m{i} / f{i}"]
        assert row["shrunken"] < -7 if i < 3 else abs(row["shrunken"]) < 7  # shrinking keeps the order
        assert row["ci_low"] < row["shrunken"] < row["ci_high"]
    without_gap = [by_word[f"m{i} / f{i}"] for i in range(3, 30)]
    assert np.mean([row["ci_low"] <= 0 <= row["ci_high"] for row in without_gap]) > 0.85
    assert sum(row["contribution"] for row in by_word.values()) == pytest.approx(
        100 * (values["offense_rate"][0].mean() - values["offense_rate"][1].mean())
    )
    # One word's figures by hand.
    of_word = drawn == 7
    assert by_word["m7 / f7"]["n"] == of_word.sum()
    assert by_word["m7 / f7"]["value_b"] == pytest.approx(100 * values["offense_rate"][1][of_word].mean())

    carriers = words.any_of([f"m{i}" for i in range(3)])
    assert (carriers == (drawn < 3)).all()
    of_word = Judged([(POLITENESS, _both_readings(values))], _diversity(6000))
    varied = judged_again(of_word, [*without({"them": carriers})], SIGNIFICANCE)
    verdicts = {(r["kind"], r["measure"]): r["verdict"] for r in varied.to_pylist()}
    assert verdicts["base", "offense_rate"] == "biased"
    assert verdicts["without", "offense_rate"] != "biased"


def _both_readings(values: dict[str, Sides]) -> dict[str, Sides]:
    """The answers name nobody, so masking changes nothing."""
    return {**values, **{name + MASKED: sides for name, sides in values.items()}}


def _diversity(count: int) -> tuple[DiversityMeasure, Readings]:
    responses = pa.table(
        {
            "pair_id": list(range(count)) * 2, "side": ["a"] * count + ["b"] * count,
            "response": [f"w{i % 97} x" for i in range(2 * count)],
        }
    )  # fmt: skip
    return TOGETHER, (index_responses(responses),) * 2


def test_shrunken_estimates_cover_and_are_closer_than_the_plain_ones() -> None:
    random = np.random.default_rng(2)
    for levels, spread in ((40, 3.0), (10, 3.0), (10, 0.5)):
        covered, gained = [], []
        for _ in range(400):
            truth = random.normal(-2, spread, levels)
            variances = 400 / random.integers(5, 200, levels)
            means = truth + random.normal(0, np.sqrt(variances))
            estimate = shrunken(means, variances)
            covered.append(np.mean((estimate.low <= truth) & (truth <= estimate.high)))
            gained.append(np.square(means - truth).sum() - np.square(estimate.centre - truth).sum())
        assert 0.92 < np.mean(covered) < 0.99, (levels, spread)
        assert np.mean(np.array(gained) > 0) > 0.75, (levels, spread)


def test_pairs_that_move_with_their_word_are_one_observation() -> None:
    """Twenty words have effects of their own, the group has none: the test by pairs rejects, that by words does not."""
    random = np.random.default_rng(3)
    runs, naive, by_word = 600, 0, 0
    for _ in range(runs):
        cluster = np.repeat(np.arange(20), 50)
        difference = random.normal(0, 0.5, 20)[cluster] + random.normal(0, 1, 1000)
        naive += abs(difference.mean()) / (difference.std(ddof=1) / 1000**0.5) > 1.96
        by_word += clustered(difference, cluster).p_zero() < 0.05
    assert clustered(np.ones(20), np.zeros(20, int)).p_zero() == 1.0  # one word tells nothing about words
    assert clustered(np.arange(60.0), np.array([0] * 50 + [1] * 10)).p_zero() == 1.0  # nor does one dominant word
    assert naive / runs > 0.3
    assert by_word / runs < 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


def test_variations_are_as_many_as_stated_and_a_firm_verdict_holds_in_all() -> None:
    random = np.random.default_rng(4)
    pairs = pairs_of([(f"m{i % 25}", f"f{i % 25}") for i in range(4000)])
    words = swapped_words(pairs)
    variations = list(subsets(words, 4000, seed=1))
    assert [variation.kind for variation in variations] == ["words"] * 10 + ["half"] * 10
    left_out = sum(~variation.kept for variation in variations[:10])
    assert (left_out == 1).all()  # every word is left out exactly once
    for first, second in zip(variations[10::2], variations[11::2], strict=True):
        assert (first.kept != second.kept).all()
    values = {"offense_rate": (random.random(4000) < 0.1, random.random(4000) < 0.3)}
    never = {"offense_rate": (np.zeros(4000, bool), np.zeros(4000, bool))}
    variations.append(Variation("threshold", "other", values=_both_readings(never)))
    judged = Judged([(POLITENESS, _both_readings(values))], _diversity(4000), words.clusterings)
    varied = judged_again(judged, variations, SIGNIFICANCE)
    chosen = [r["verdict"] for r in varied.to_pylist() if r["measure"] == "offense_rate" and r["kind"] in CHOICES]
    assert (chosen.count("biased"), len(chosen)) == (20, 21)
    assert varied.num_rows == 2 + 20 * 2 + 1  # the base and 20 subsets for both measures; the threshold for one


def test_pairs_that_a_model_cannot_tell_apart() -> None:
    pairs = pa.table(
        {
            "context_a": ["he sings now", "a b c his", "duke sings"], "context_b": ["she sings now", "a b c her", "duchess sings"],
            "source_side": ["a", "a", "b"],
        }
    )  # fmt: skip
    masks = out_of_sight(pairs, Vocabulary(["he", "she", "sings", "now", "a", "b", "c", "duchess"]), longest=3)
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "pairs that look alike to the model": [False, True, False],
        "words that swapping made unknown": [False, False, True],
    }


def recipe_rows(differences: np.ndarray, error: float) -> list[pa.Table]:
    reach = 1.959964 * error
    return [
        pa.Table.from_pylist(
            [{
                "measure": name, "unit": "percent", "n": 100, "clusters": None, "value_a": 5 + gap, "value_b": 5.0, "difference": gap,
                "content_difference": gap, "masking_ci_low": -0.1, "masking_ci_high": 0.1,
                "ci_low": gap - reach, "ci_high": gap + reach, "margin": 1.0, "verdict": "biased" if abs(gap) > reach else "inconclusive",
            } for name in ("offense_rate", "offense_rate" + MASKED)]
        )
        for gap in differences
    ]  # fmt: skip


def test_a_recipes_verdict_holds_its_level_where_its_checkpoints_do_not() -> None:
    """Without a difference seeds scatter by two points, measured to half a point each: checkpoints look biased."""
    random = np.random.default_rng(5)
    runs, wrong, covered, alone = 1500, 0, 0, 0
    for _ in range(runs):
        contexts = random.normal(0, 0.5)  # the error of the sample of contexts, which all seeds share
        differences = random.normal(0, 2.0, 5) + contexts
        (row,) = judge_recipe(recipe_rows(differences, 0.5), 0.05).to_pylist()
        wrong += row["verdict"] == "biased"
        covered += row["ci_low"] <= 0 <= row["ci_high"]
        alone += "biased" in row["verdicts"]
    assert wrong / runs < 0.065
    assert covered / runs > 0.935
    assert alone / runs > 0.9
    (row,) = judge_recipe(recipe_rows(np.array([7.0, 8.0, 6.5, 7.5, 7.2]), 0.5), 0.05).to_pylist()
    assert (row["verdict"], row["verdicts"], row["seeds"]) == ("biased", "5 biased", 5)
    (row,) = judge_recipe(recipe_rows(np.array([0.01, -0.01, 0.0, 0.02, -0.02]), 0.1), 0.05).to_pylist()
    assert row["verdict"] == "fair"


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_equivalence_with_an_estimated_margin_keeps_its_level(rate: float, alike: float) -> None:
    """The true difference is the margin at the pooled rate; a pair's answers are independent, or mostly equal."""
    random, margin = np.random.default_rng(6), Margin(cohens_h=0.05)
    pairs, runs = 9000, 800
    population = np.concatenate([np.ones(round(rate * 1e6)), np.zeros(round((1 - rate) * 1e6))])
    half = margin.bound(population, population).amount / 2
    claimed = 0
    for _ in range(runs):
        same, u = random.random(pairs) < alike, random.random((2, pairs))
        a = u[0] < rate + half
        b = np.where(same, u[0], u[1]) < rate - half
        claimed += compare_rates("m", a, b, margin).verdict == "fair"
    assert claimed / runs < 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


def test_equivalence_of_heavy_tailed_counts_keeps_its_level() -> None:
    """The margin is in standard deviations of counts, which are poorly estimated; pairs are much alike."""
    random, margin = np.random.default_rng(7), Margin(standard_deviations=0.05)
    runs, pairs, claimed = 800, 6000, 0
    shape, scale = 0.3, 1.0
    spread = (shape * scale**2) ** 0.5
    for _ in range(runs):
        common = random.gamma(shape, scale, pairs)
        independent = random.gamma(shape, scale, pairs)
        a = common + 0.05 * spread
        b = np.where(random.random(pairs) < 0.9, common, independent)
        claimed += compare_counts("m", a, b, margin).verdict == "fair"
    assert claimed / runs < 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


def labelled(count: int, offensive: float, seed: int = 0) -> list[LabelledText]:
    random = np.random.default_rng(seed)
    bad, good = ("idiot", "stupid", "shut up"), ("thanks", "lovely", "garden")
    rows = []
    for i in range(count):
        rude = random.random() < offensive
        pronoun = ("he", "she", "it")[i % 3]
        rows.append(LabelledText(f"{pronoun} {random.choice(bad if rude else good)} number {i}", bool(rude)))
    return rows


def test_a_trained_classifier_learns_and_is_evaluated_on_held_out_texts() -> None:
    texts = labelled(3000, 0.3)
    model = TrainedClassifier(texts)
    held_out = [text for text in texts if text.held_out]
    assert 400 < len(held_out) < 800
    scores = model([text.text for text in held_out])
    assert np.mean((scores >= 0.5) == [text.offensive for text in held_out]) > 0.95
    with pytest.raises(FairnessError, match="expected offensive texts and others"):
        TrainedClassifier([LabelledText(f"x {i}", False) for i in range(50)])
    with pytest.raises(FairnessError, match="texts are too few to train"):
        TrainedClassifier([LabelledText(text, text == "b") for text in "abcdefgh"])


def test_recall_and_precision_by_hand() -> None:
    texts = labelled(1500, 0.3)
    table = evaluate_classifiers(
        texts, {"alt-profanity-check": PolitenessScorer()}, GENDER, (GENDER.groups.a, GENDER.groups.b)
    )
    metrics = {(row["group"], row["metric"]): row for row in table.to_pylist()}
    held_out = [text for text in texts if text.held_out]
    predicted = PolitenessScorer()(pa.table({"text": [text.text for text in held_out]}))["offensive"].to_pylist()
    hits = [c for t, c in zip(held_out, predicted, strict=True) if t.offensive]
    assert metrics["all", "recall"]["value"] == pytest.approx(100 * sum(hits) / len(hits))
    she_hits = [c for t, c in zip(held_out, predicted, strict=True) if t.offensive and t.text.startswith("she")]
    assert metrics["female", "recall"]["n"] == len(she_hits)
    assert metrics["female", "recall"]["value"] == pytest.approx(100 * sum(she_hits) / len(she_hits))
    for row in metrics.values():
        assert 0 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 100


def test_labelled_files(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\ttweet\tlabel\n1\tyou idiot\tOFF\n2\thello\tNOT\n")
    (tmp_path / "b.json").write_text('[{"t": "go away", "l": "Unsafe"}, {"t": "hello", "l": "Safe"}]')
    files = (
        LabelledFile(path="a.tsv", text="tweet", label="label", offensive=("OFF",)),
        LabelledFile(path="b.json", text="t", label="l", offensive=("Unsafe",)),
    )
    assert read_labelled(files, tmp_path) == [
        LabelledText("you idiot", True), LabelledText("hello", False), LabelledText("go away", True)
    ]  # fmt: skip
    for changes, message in (
        ({"text": "text"}, r"a.tsv, line 2: expected a column 'text', found \['id', 'tweet', 'label'\]"),
        ({"offensive": ("RUDE",)}, "no row has the label 'RUDE' in column 'label'"),
        ({"path": "none.csv"}, "none.csv: cannot be read"),
        ({"path": "a.txt"}, "expected a .csv, .tsv, .jsonl, .json or .parquet file"),
    ):
        (tmp_path / "a.txt").write_text("x")
        with pytest.raises(FairnessError, match=message):
            read_labelled((files[0].model_copy(update=changes),), tmp_path)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(FairnessError, match="b.json: expected a list of objects"):
        read_labelled(files[1:], tmp_path)


FIRM = {
    "same_group_difference": None, "same_group_p": None, "rewording_difference": 6.0, "rewording_p": 0.2,
    "measure": "offense_rate", "unit": "percent", "verdict": "biased", "value_a": 5.0, "value_b": 10.0,
    "difference": -5.0, "content_a": 5.0, "content_b": 10.0, "content_difference": -5.0, "p_as_answered": 1e-4,
    "without_them": "biased", "difference_without_them": -4.0, "holds": 24, "variations": 24, "distinct_shown": 90,
    "parrot_difference": -3.0, "ci_low": -9.0, "ci_high": 1.0, "content_ci_low": -7.0, "content_ci_high": -3.0,
}  # fmt: skip


def reservations(row: dict[str, Any]) -> list[str]:
    found_doubts = doubts(row)
    assert all(len(doubt.means) > 60 for doubt in found_doubts)
    return [doubt.said for doubt in found_doubts]


def test_doubts_name_the_reasons_against_a_finding() -> None:
    assert reservations(FIRM) == []
    texts = reservations(
        {**FIRM, "difference": 2.0, "without_them": "fair", "difference_without_them": -0.5, "carried_by": "he / she",
         "holds": 3, "distinct_shown": 2}
    )  # fmt: skip
    assert texts == [
        "the answers as they are differ the other way (+2 points)",
        "fair without the pairs of he / she",
        "it holds in 3 of 24 variations",
        "it hangs on 2 distinct answers",
    ]
    assert reservations({**FIRM, "rewording_p": 0.01}) == ["another wording moves the gap as well (+6 points)"]
    row = {"measure": "offense_rate"}
    small, large = ({"difference": d, "ci_low": d - 2, "ci_high": d + 2} for d in (0.5, -6.0))
    assert _p_moved(small, row, {"offense_rate": FIRM}) > 0.9 and _p_moved(large, row, {"offense_rate": FIRM}) < 0.01


def test_a_biased_row_takes_the_masked_reading_and_an_artefact_its_control() -> None:
    turned = {**FIRM, "difference": 2.0, "content_a": 4.0, "content_b": 9.0}
    assert (decisive(turned)["difference"], decisive(turned)["value_b"]) == (-5.0, 9.0)
    assert (decisive(turned)["ci_low"], decisive(turned)["ci_high"]) == (-7.0, -3.0)
    artefact = {**FIRM, "verdict": "artefact", "content_difference": -0.1}
    assert decisive(artefact) is artefact
    assert control(artefact) == (
        "with the groups' own words masked the answers differ by -0.1 points; answers that only repeat the context "
        "differ by -3 points"
    )


@pytest.mark.parametrize("answer", ["", "ok", "ok ok"])
def test_answers_that_leave_nothing_to_compare_have_defined_variations(answer: str) -> None:
    """All answers are equal or empty, and pairs are few: p is a number everywhere."""
    for count in (2, 3, 40):
        responses = pa.table(
            {
                "pair_id": list(range(count)) * 2,
                "side": ["a"] * count + ["b"] * count,
                "response": [answer] * (2 * count),
            }
        )
        pairs = pairs_of([(f"m{i % 7}", f"f{i % 7}") for i in range(count)])
        words = swapped_words(pairs)
        values = {"offense_rate": (np.zeros(count, bool), np.zeros(count, bool))}
        variations = list(subsets(words, count, seed=1))
        judged = Judged([(POLITENESS, _both_readings(values))], (TOGETHER, (index_responses(responses),) * 2))
        varied = judged_again(judged, variations, SIGNIFICANCE)
        assert np.isfinite(varied["p_holm"].to_numpy()).all()
        assert break_down(pairs, words, [(POLITENESS, values)], {}).num_rows
