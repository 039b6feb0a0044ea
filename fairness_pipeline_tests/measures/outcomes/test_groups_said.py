"""Groups against unmarked rows, and groups told apart by words: checked by direct computation and planted truth."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

from fairness_pipeline.corpora.outcomes.specification import Kind, Outcome, OutcomeTable
from fairness_pipeline.corpora.outcomes.table_files import text_columns
from fairness_pipeline.corpora.outcomes.trials import read_trials
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import validate
from fairness_pipeline.measures.dialogue.help import HelpScorer
from fairness_pipeline.measures.outcomes.cells import OutcomeCells, cell_table
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.group_words import group_words, word_rows
from fairness_pipeline.measures.outcomes.outcome_significance import judge_outcomes
from fairness_pipeline.measures.outcomes.rates import ALL_GROUPS, UNKNOWN_GROUP, rates_by_group
from fairness_pipeline.measures.outcomes.rows import NOTHING, OMNIBUS, OTHERS, SAID

NOT_SAID = "not said"


def spec(**more: object) -> OutcomeTable:
    """The specification of a table of towns with an unmarked arm."""
    document = {
        "item": "item",
        "group": ["town"],
        "unmarked": NOT_SAID,
        "outcomes": {"score": {"kind": "number"}},
        **more,
    }
    return validate(OutcomeTable, {"file": {"path": "towns.csv"}, **document}, Path("towns.yaml"))


def towns(random: np.random.Generator, effects: dict[str, float], items: int = 60) -> pa.Table:
    """A score for each item and arm."""
    rows = [
        {"item": f"i{item}", "town": town, "score": str(base + effect + random.normal())}
        for item, base in enumerate(random.normal(0, 2, items))
        for town, effect in effects.items()
    ]
    return text_columns(pa.Table.from_pylist(rows))


def _judging(kind: Kind) -> Judging:
    outcomes = {"score": Outcome(kind=kind)}
    return Judging(outcomes=outcomes, columns=("town",), alpha=0.05, seed=1, unmarked=NOT_SAID)


def rows_of(table: pa.Table, specification: OutcomeTable) -> list[dict[str, object]]:
    """All rows of verdicts on a table."""
    judging = _judging("number")
    return judge_outcomes(cell_table(read_trials(table, specification), "all"), judging).to_pylist()


def test_unmarked_rows_are_paired_differences_over_the_same_items() -> None:
    table = towns(np.random.default_rng(3), {"North": 0.0, "South": 0.0, NOT_SAID: 1.5})
    rows = rows_of(table, spec())
    wide = table.to_pandas().astype({"score": float}).pivot(index="item", columns="town", values="score")
    (said_row,) = [row for row in rows if row["contrast"] == SAID]
    gap = wide[NOT_SAID] - wide[["North", "South"]].mean(axis=1)
    assert (
        said_row["difference"] == pytest.approx(gap.mean())
        and said_row["group"] == NOT_SAID
        and said_row["verdict"] == "biased"
    )
    assert (
        said_row["p_paired"] == pytest.approx(scipy.stats.ttest_1samp(gap, 0).pvalue, rel=0.5)
        or said_row["p_paired"] <= 2e-4
    )
    singles = {row["group"]: row["difference"] for row in rows if row["contrast"] == NOTHING}
    assert singles == pytest.approx({town: (wide[town] - wide[NOT_SAID]).mean() for town in ("North", "South")})
    (omnibus,) = [row for row in rows if row["contrast"] == OMNIBUS]
    assert {omnibus["group"], omnibus["against"]} == {"North", "South"} and omnibus["verdict"] != "biased"
    assert not [row for row in rows if row["contrast"] == OTHERS and NOT_SAID in (row["group"], row["against"])]


@pytest.mark.verify
def test_verdicts_keep_their_level_where_nothing_differs() -> None:
    rejections = {SAID: 0, OMNIBUS: 0}
    for draw in range(60):
        for row in rows_of(
            towns(np.random.default_rng([4, draw]), dict.fromkeys(("A", "B", "C", NOT_SAID), 0.0), 40), spec()
        ):
            if row["contrast"] in rejections:
                rejections[row["contrast"]] += row["verdict"] == "biased"
    assert max(rejections.values()) <= 60 * (0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)), rejections


def test_cells_without_a_level_keep_everything_else() -> None:
    specification = spec()
    cells = OutcomeCells.of(
        cell_table(read_trials(towns(np.random.default_rng(5), {"A": 0, "B": 0, NOT_SAID: 0}), specification), "all"),
        "score",
        ("town",),
    )
    marked = cells.without(NOT_SAID)
    assert marked.groups["town"].names == ("A", "B") and len(marked.value) == 120
    assert cells.without(None) is cells and cells.without("nowhere") is cells
    mentioned_or_not = cells.mentioned_or_not("town", NOT_SAID)
    assert mentioned_or_not.groups["town"].names == (NOT_SAID, "town said") and np.bincount(
        mentioned_or_not.groups["town"].code
    ).tolist() == [
        60,
        120,
    ]


def test_a_rare_outcome_stops_no_other_column() -> None:
    rows = [
        {"item": f"i{item}", "town": town, "street": street, "score": "1" if street == "a" or town == "East" else ""}
        for item in range(30)
        for town, street in (("East", "a"), ("West", "b"), ("East", "b"))
    ]
    specification = spec(group=["town", "street"])
    table = cell_table(read_trials(text_columns(pa.Table.from_pylist(rows)), specification), "all")
    outcomes = {"score": Outcome(kind="number")}
    judging = Judging(outcomes=outcomes, columns=("town", "street"), alpha=0.05, seed=1, fair_here=True)
    by_measure = {
        row["measure"]: row for row in judge_outcomes(table, judging).to_pylist() if row["contrast"] == OMNIBUS
    }
    assert "too few to tell" in by_measure["score by town"]["note"] and by_measure["score by street"]["n"] == 30
    with pytest.raises(FairnessError, match="no group of 'town' shares an item"):
        judge_outcomes(table, replace(judging, fair_here=None))


def test_unmarked_rows_have_no_rate_of_their_own() -> None:
    rows = towns(np.random.default_rng(1), {"East": 0.0, "West": 0.0, NOT_SAID: 9.0}).to_pylist()
    yes_or_no = [{**row, "score": str(int(float(row["score"]) > 0))} for row in rows]
    specification = spec(outcomes={"score": {"kind": "yes_no"}})
    trials = read_trials(text_columns(pa.Table.from_pylist(yes_or_no)), specification)
    table = rates_by_group(trials, "all", specification.outcomes, specification.unmarked).to_pylist()
    assert [row["group"] for row in table] == ["East", "West", UNKNOWN_GROUP, ALL_GROUPS]
    assert next(row for row in table if row["group"] == UNKNOWN_GROUP)["ratio"] is None


def test_the_note_says_that_bundles_are_too_few() -> None:
    random = np.random.default_rng(3)
    rows = [
        {"item": f"i{item}", "town": town, "span": f"{town} {item % 6}", "said": random.choice(["one", "two", "three"])}
        for item in range(60)
        for town in ("East", "West")
    ]
    specification = spec(name="span", unmarked=None, outcomes={"said": {"kind": "text"}})
    table = group_words(read_trials(text_columns(pa.Table.from_pylist(rows)), specification), "said", None, 1)
    assert table["smallest_p"][0].as_py() == pytest.approx(2 / 2**6)
    (row,) = list(word_rows(table, None))
    assert row.row.note.startswith("exchanging 6 bundles of spans can show no p below 0.031")


def test_words_that_tell_a_group_are_named() -> None:
    random, rows = np.random.default_rng(6), []
    for item in range(80):
        for town in ("North", "South", "East"):
            words = random.choice(["one", "two", "three", "four", "five", "six"], 4, replace=False).tolist()
            words += ["Call the police."] if town == "East" and random.random() < 0.3 else []
            rows.append({"item": f"i{item}", "town": town, "span": f"{town} {item % 8}", "said": " ".join(words)})
    specification = spec(name="span", outcomes={"said": {"kind": "text"}})
    table = group_words(read_trials(text_columns(pa.Table.from_pylist(rows)), specification), "said", NOT_SAID, 1)
    first = table.to_pylist()[0]
    assert first["p"] < 0.01 and first["group"] == "East" and "police" in " ".join(table["sentence"].to_pylist())
    assert first["share"] == pytest.approx(30, abs=15) and first["share_of_others"] == 0
    (row,) = list(word_rows(table, NOT_SAID))
    assert row.differs and row.enough_data and not row.fair and row.row.value_a == first["share"]


def test_equal_rates_have_a_valid_p() -> None:
    """Rounding to below 0 once gave no p at all."""
    rows = [
        {"item": f"i{i}", "town": town, "score": str(i % 3 == 0)} for i in range(33) for town in ("A", "B", NOT_SAID)
    ]
    specification = spec(outcomes={"score": {"kind": "yes_no"}})
    judging = _judging("yes_no")
    table = judge_outcomes(
        cell_table(read_trials(text_columns(pa.Table.from_pylist(rows)), specification), "all"), judging
    )
    assert all(0 <= p <= 1 for p in table["p"].to_pylist() if p is not None)


@pytest.mark.parametrize(
    ("text", "steps", "asks", "referral", "police"),
    [
        ("1. Call your landlord.\n2. Ask a lawyer.", 2, False, True, False),
        ("- Save money\n- Sell the car\n\nDoes that help?", 2, True, False, False),
        ("You should see a doctor about this.", 0, False, True, False),
        ("Please seek immediate medical attention.", 0, False, True, False),
        ("Contact a tenants' union or the local housing authority.", 0, False, True, False),
        ("If it happens again, call the police.", 0, False, False, True),
        ("File a police report and tell the manager.", 0, False, False, True),
        ("Talk to your neighbor first; he may not know.", 0, False, False, False),
        ("The doctor says that lawyers and police officers like tea.", 0, False, False, False),
    ],
)
def test_kinds_of_help(text: str, steps: int, asks: bool, referral: bool, police: bool) -> None:
    row = HelpScorer()(pa.table({"text": [text]})).to_pylist()[0]
    assert (row["steps"], row["asks_back"], row["referral"], row["police"]) == (steps, asks, referral, police)


def test_the_language_level_follows_the_published_formula() -> None:
    """Senter and Smith 1967: 4.71 characters a word + 0.5 words a sentence - 21.43."""
    text = "The landlord must answer within thirty days. You can write to the office of the city."
    letters = sum(not letter.isspace() for letter in text)
    row = HelpScorer()(pa.table({"text": [text]})).to_pylist()[0]
    assert row["level"] == pytest.approx(4.71 * letters / 16 + 0.5 * 16 / 2 - 21.43, abs=1e-6)
