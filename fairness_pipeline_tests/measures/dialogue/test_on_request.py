"""Measures on request, and verdicts by the group that a context named before the exchange."""

from typing import get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.corpora.outcomes.specification import TextMeasure
from fairness_pipeline.measures.dialogue.breakdown import Words
from fairness_pipeline.measures.dialogue.dialogue_significance import compared, judge_responses
from fairness_pipeline.measures.dialogue.instrument import INSTRUMENT_CHECK
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import all_measures, glanced_at, measures, scorings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.variations import SOURCE, VARIATIONS, by_source
from fairness_pipeline.measures.outcomes import text_outcomes
from fairness_pipeline.project.project import load_dimension


def responses(of_a: list[str], of_b: list[str]) -> pa.Table:
    """A table of answers to both sides."""
    texts = [text for pair in zip(of_a, of_b, strict=True) for text in pair]
    ids = np.repeat(np.arange(len(of_a)), 2)
    return pa.table({"pair_id": ids, "side": ["a", "b"] * len(of_a), "response": texts})


def test_help_and_decisions_are_measured_on_request() -> None:
    gender, settings = load_dimension("gender"), SignificanceSettings(permutations=50)
    table = responses(["Yes. Do it."] * 200, ["No. See a lawyer."] * 200)
    named = {measure.table for measure in measures()}
    assert named.isdisjoint({"help", "decisions"}) and {"help", "decisions"} <= {
        registered.table for registered in all_measures()
    }
    for further, expected in (((), set()), (("help", "decisions"), {"referral", "says_yes", "says_no"})):
        measure_settings = MeasureSettings(further=further)
        scoring_of = scorings(measures(further), measure_settings, gender)
        tables = {measure.table: measure.measure(table, scoring_of[measure.table]) for measure in measures(further)}
        rows = compared(table, tables, settings=settings, seed=1, published={}, masked=gender.masked)
        biased = {row.measure for row in rows if row.verdict == "biased"}
        assert biased >= expected and expected == biased & {"referral", "says_yes", "says_no", "police", "asks_back"}
    assert "referral" in glanced_at()


def rows_by_source(of_a: tuple[float, str], of_b: tuple[float, str], n_of_b: int) -> pa.Table:
    """Variations of one measure: its difference and verdict in the contexts that named each group."""
    rows = [
        {
            "measure": "refusal", "kind": SOURCE, "variation": group, "n": 100, "value_a": 0.0, "value_b": 0.0,
            "difference": difference, "p_holm": 0.001 if verdict == "biased" else 0.6, "verdict": verdict,
        }
        for group, (difference, verdict) in (("male", of_a), ("female", of_b))
    ]  # fmt: skip
    rows[1]["n"] = n_of_b
    return pa.Table.from_pylist(rows, schema=VARIATIONS)


@pytest.mark.parametrize(
    ("of_a", "of_b", "n_of_b", "note"),
    [
        ((-20.0, "biased"), (-1.0, "inconclusive"), 20, ""),  # too few to show anything
        ((-20.0, "biased"), (-1.0, "inconclusive"), 100, "shown only in contexts that named male before the exchange"),
        ((-20.0, "biased"), (20.0, "biased"), 100, "opposite in contexts that named male (-20) and female (+20)"),
        ((-20.0, "biased"), (-18.0, "biased"), 100, ""),
    ],
)
def test_a_gap_of_one_source_is_noted(of_a: tuple[float, str], of_b: tuple[float, str], n_of_b: int, note: str) -> None:
    gender, settings = load_dimension("gender"), SignificanceSettings(permutations=50)
    table = responses(["It is raining."] * 200, ["I can't help with that.", "It is raining."] * 100)
    scoring_of = scorings(measures(), MeasureSettings(), gender)
    tables = {measure.table: measure.measure(table, scoring_of[measure.table]) for measure in measures()}
    rows = compared(table, tables, settings=settings, seed=1, published={}, masked=gender.masked)
    words = Words(["he / she"], np.arange(200), np.zeros(200, dtype=int))
    no_rows = INSTRUMENT_CHECK.empty_table()
    judged = judge_responses(
        rows,
        table,
        tables,
        words=words,
        varied=rows_by_source(of_a, of_b, n_of_b),
        instrument=no_rows,
        parrots=no_rows,
        alpha=0.05,
    )
    row = next(row for row in judged.to_pylist() if row["measure"] == "refusal")
    assert row["verdict"] == "biased" and (note in row["note"] if note else "contexts that named" not in row["note"])


def test_pairs_are_split_by_the_group_of_the_original() -> None:
    split = list(by_source(np.array(["a", "b", "b"]), ("male", "female")))
    assert [(variation.name, variation.kept.tolist()) for variation in split if variation.kept is not None] == [
        ("male", [True, False, False]), ("female", [False, True, True]),
    ]  # fmt: skip
    assert not list(by_source(np.array(["a", "a"]), ("male", "female")))


def test_settings_list_all_measures_on_request() -> None:
    further = get_args(get_args(get_type_hints(MeasureSettings)["further"])[0])
    assert set(further) == {measure.table for measure in all_measures() if measure.on_request}
    assert set(get_args(TextMeasure)) == set(text_outcomes._KINDS)
