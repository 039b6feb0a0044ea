"""Response quality, and effects of debiasing."""

import math
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue.debiasing_effects import (
    Measured,
    compare_models,
    identical_share,
    without_credit,
)
from fairness_pipeline.measures.dialogue.dialogue_significance import compared
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.measures.dialogue.response_quality import measure_quality
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.change import level_columns
from fairness_pipeline.statistics.comparison import COMPARISON

SETTINGS = SignificanceSettings(permutations=20, jackknife_blocks=10)
GENDER = load_dimension("gender").masked


def quality(
    responses: list[str], references: list[str], perplexity: float | None = None, frequent: tuple[str, ...] = ()
) -> dict[str, dict]:
    table = measure_quality(
        pa.chunked_array([responses]),
        pa.chunked_array([references]),
        None if perplexity is None else (perplexity, "by hand"),
        {"bleu_2": 2.107},
        frequent,
    )
    return {row["metric"]: row for row in table.to_pylist()}


def test_bleu_by_hand() -> None:
    """Papineni et al. 2002: 5 words against 6; 4 of 5 words and 2 of 4 pairs are right; e^(1 - 6/5) for brevity."""
    rows = quality(["The cat sat on mats"], ["the cat sat here on it"])
    brevity = math.exp(1 - 6 / 5)
    assert rows["bleu_1"]["value"] == pytest.approx(100 * brevity * 4 / 5)
    assert rows["bleu_2"]["value"] == pytest.approx(100 * brevity * math.sqrt(4 / 5 * 2 / 4))
    assert rows["bleu_3"]["value"] == pytest.approx(100 * brevity * (4 / 5 * 2 / 4 * 1 / 3) ** (1 / 3))
    assert "case:lc" in rows["bleu_1"]["signature"]
    assert "tok:13a" in rows["bleu_1"]["signature"]
    assert rows["bleu_2"]["published_value"] == 2.107
    assert rows["bleu_1"]["published_value"] is None


def test_masked_user_names_count_for_nothing_and_the_best_constant_answer_stands_beside() -> None:
    plain = quality(["the cat", "a dog"], ["the cat sat", "so it is"])
    masked = quality(["@user the cat", "@user @user a dog"], ["@user the cat sat", "@user so it is"])
    for metric in plain:
        assert masked[metric]["value"] == plain[metric]["value"]
    with_constant = quality(["x y"], ["so it is"], frequent=("@user", "no", "@user so it was"))
    assert with_constant["bleu_1"]["constant_value"] == pytest.approx(200 / 3)  # so, it of three words
    assert plain["bleu_1"]["constant_value"] is None


def test_distinct_by_hand() -> None:
    rows = quality(["a b a", "a b"], ["x", "y"], perplexity=12.5)
    assert rows["distinct_1"]["value"] == pytest.approx(100 * 2 / 5)
    assert rows["distinct_2"]["value"] == pytest.approx(100 * 2 / 5)  # `a b` and `b a`
    assert (rows["perplexity"]["value"], rows["perplexity"]["unit"]) == (12.5, "perplexity")
    assert all(row["n"] == 2 for row in rows.values())
    assert "perplexity" not in quality(["a"], ["b"])


def measured(offensive_a: np.ndarray, offensive_b: np.ndarray, words: tuple[str, str] = ("a", "b")) -> Measured:
    n = len(offensive_a)
    ids = pa.array(np.repeat(np.arange(n), 2))
    sides = pa.array(["a", "b"] * n)
    offensive = np.stack([offensive_a, offensive_b], axis=1).ravel()
    responses = pa.table(
        {"pair_id": ids, "side": sides, "response": [f"{words[i % 2]} word {o}" for i, o in enumerate(offensive)]}
    )
    gender = load_dimension("gender")
    tables = {
        measure.table: measure.measure(responses, measure.scoring(MeasureSettings(), gender)) for measure in measures()
    }
    tables["politeness"] = with_masked_copy(ids, sides, offensive=offensive)
    rows = compared(responses, tables, settings=SETTINGS, seed=1, published={}, masked=gender)
    return Measured(responses, tables, pa.Table.from_pylist([asdict(row) for row in rows], schema=COMPARISON))


def with_masked_copy(ids: pa.Array, sides: pa.Array, **columns: np.ndarray) -> pa.Table:
    """A measure's table whose masked reading equals the plain one."""
    masked = {f"{name}_masked": values for name, values in columns.items()}
    return pa.table({"pair_id": ids, "side": sides, **columns, **masked})


def test_a_planted_reduction_is_found_and_nothing_else() -> None:
    random = np.random.default_rng(0)
    draws = [random.random(600) < rate for rate in (0.1, 0.3, 0.2, 0.2)]
    rows = {
        row["measure"]: row
        for row in compare_models(measured(*draws[:2]), measured(*draws[2:]), SETTINGS, GENDER).to_pylist()
    }
    offence = rows.pop("offense_rate")
    assert offence["effect"] == "smaller gap"
    assert offence["difference_before"] == pytest.approx(100 * (draws[0].mean() - draws[1].mean()))
    assert offence["change"] == pytest.approx(abs(offence["difference_after"]) - abs(offence["difference_before"]))
    assert offence["ci_low"] < offence["change"] < offence["ci_high"] < 0
    assert (offence["verdict_before"], offence["n"]) == ("biased", 600)
    assert {row["effect"] for row in rows.values()} == {"no change shown"}

    reverse = compare_models(measured(*draws[2:]), measured(*draws[:2]), SETTINGS, GENDER).to_pylist()
    assert next(row for row in reverse if row["measure"] == "offense_rate")["effect"] == "larger gap"


def test_effects_are_of_the_reading_on_which_verdicts_rest() -> None:
    """The group's words make the gap; with these masked nothing differs, before or after."""
    random = np.random.default_rng(3)
    draws = [random.random(600) < rate for rate in (0.1, 0.5, 0.1, 0.1)]
    before, after = measured(*draws[:2]), measured(*draws[2:])
    same = np.tile(random.random(600) < 0.1, 2).reshape(2, -1).T.ravel()
    for model in (before, after):
        table = model.tables["politeness"]
        position = table.schema.get_field_index("offensive_masked")
        assert isinstance(model.tables, dict)
        model.tables["politeness"] = table.set_column(position, "offensive_masked", pa.array(same))
    offence = {row["measure"]: row for row in compare_models(before, after, SETTINGS, GENDER).to_pylist()}[
        "offense_rate"
    ]
    assert (offence["difference_before"], offence["difference_after"], offence["effect"]) == (0, 0, "no change shown")
    # Pairs that move together say less: clustered by ten words, the change is less certain.
    effects = compare_models(measured(*draws[:2]), measured(*draws[2:]), SETTINGS, GENDER).to_pylist()
    words = np.repeat(np.arange(10), 60)
    lumped = [np.repeat(random.random(10) < 0.5, 60), np.zeros(600, bool)]
    alone, together = (
        {
            row["measure"]: row
            for row in compare_models(measured(*lumped), measured(*draws[2:]), SETTINGS, GENDER, clusters).to_pylist()
        }["offense_rate"]["p"]
        for clusters in ([], [words])
    )
    assert together > 100 * alone
    assert {row["measure"] for row in effects} >= {"diversity", "offense_rate"}


def test_what_a_smaller_gap_did_to_the_level() -> None:
    random = np.random.default_rng(4)
    draws = {rate: random.random(900) < rate for rate in (0.02, 0.2, 0.5, 0.8)}
    base = measured(draws[0.2], draws[0.8])
    for rate, level in ((0.02, "lowers it for everybody"), (0.5, "evens it out")):
        rows = compare_models(base, measured(draws[rate], draws[rate]), SETTINGS, GENDER).to_pylist()
        offence = next(row for row in rows if row["measure"] == "offense_rate")
        assert (offence["effect"], offence["level"]) == ("smaller gap", level)
        assert offence["value_b_before"] == pytest.approx(100 * draws[0.8].mean())
        assert offence["value_a_after"] == pytest.approx(100 * draws[rate].mean())
        assert all(row["level"] is None for row in rows if row["effect"] != "smaller gap")


@pytest.mark.parametrize(
    ("before", "after", "margin", "level"),
    [
        ((80.0, 0.0), (0.0, 0.0), 2.0, "lowers it for everybody"),  # nobody gets it any more
        ((80.0, 1.0), (0.0, 0.0), 2.0, "lowers it for everybody"),
        ((0.367, 1.867), (0.077, 0.07), 0.525, "lowers it for everybody"),  # Liu 2022, table 3.3: negative
        ((0.0136, 0.0019), (0.0006, 0.0004), 0.0044, "lowers it for everybody"),  # career words
        ((20.0, 10.0), (8.0, 8.0), 2.0, "lowers it for everybody"),
        ((20.0, 10.0), (9.0, 9.0), 2.0, "evens it out"),
        ((12.16, 4.633), (5.207, 5.21), 1.39, "evens it out"),  # WER, positive
        ((20.0, 10.0), (1.0, 11.0), 2.0, "evens it out"),
        ((17.457, 22.29), (30.767, 32.073), 2.0, "raises it for everybody"),  # CDA, offence
    ],
)
def test_the_level_by_hand(before: tuple[float, float], after: tuple[float, float], margin: float, level: str) -> None:
    assert level_columns(before, after, margin, smaller=True)["level"] == level
    turned = level_columns(before[::-1], after[::-1], margin, smaller=True)
    assert turned["level"] == level and turned["value_a_after"] == after[1]


def test_no_method_is_credited_with_answers_that_are_nothing_to_judge() -> None:
    effects = pa.table({"effect": ["cure", "smaller gap", "larger gap", "no change shown", "no gap shown"]})
    credited = without_credit(effects)["effect"].to_pylist()
    assert credited == ["nothing to judge", "nothing to judge", "larger gap", "no change shown", "no gap shown"]
    assert set(without_credit(effects, base=True)["effect"].to_pylist()) == {"nothing to judge"}


def test_identical_responses() -> None:
    yes, no = np.array([True, False, True]), np.array([True, False, False])
    assert identical_share(measured(yes, no, ("a", "b")).responses) == 0
    assert identical_share(measured(yes, no, ("a", "a")).responses) == pytest.approx(2 / 3)


def test_other_pairs_are_refused() -> None:
    few, more = np.array([True, False]), np.array([True, False, True])
    with pytest.raises(FairnessError, match="did not answer the same pairs"):
        compare_models(measured(few, few), measured(more, more), SETTINGS, GENDER)
