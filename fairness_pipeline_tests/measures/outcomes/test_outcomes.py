"""Verdicts on tables: published answers to the digit, planted gaps, floors, controls, rates of all rows, changes."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.stats

import fairness_pipeline as fp
from fairness_pipeline.corpora.outcomes.specification import Outcome, OutcomeTable
from fairness_pipeline.corpora.outcomes.table_files import text_columns
from fairness_pipeline.corpora.outcomes.trials import Trials, read_trials
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import validate
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.outcomes.cells import cell_table
from fairness_pipeline.measures.outcomes.changes import changes_between
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.outcome_significance import judge_outcomes
from fairness_pipeline.measures.outcomes.rates import rates_by_group
from fairness_pipeline.measures.outcomes.rows import BEYOND, GATED, OMNIBUS, OTHERS, REFERENCE
from fairness_pipeline.measures.outcomes.text_outcomes import TextScorers, expanded, scored
from fairness_pipeline_tests.measures.outcomes.planted import PLANTED, sample_table

ROOT = Path(__file__).parents[3]


def trials_of(frame: pd.DataFrame, **columns: Any) -> tuple[Trials, OutcomeTable]:
    """The trials in a data frame."""
    spec = validate(OutcomeTable, {"file": {"path": "t"}, **columns}, Path("t"))
    return read_trials(text_columns(pa.Table.from_pandas(frame, preserve_index=False)), spec), spec


def test_the_table_that_ships_is_generated() -> None:
    assert (ROOT / "data" / "tables" / "requests_sample.csv").read_text(encoding="utf-8") == sample_table()


def test_what_is_planted_is_found_and_nothing_else() -> None:
    found = fp.audit(
        ROOT / "data" / "tables" / "requests_sample.csv", item="request", cluster="topic", group=["town", "age"],
        draw="draw", condition="prompt", outcome=["approved", "words"], margins={"words": {"absolute": 3}},
    )  # fmt: skip
    plain = found[found.condition == "plain"]
    whole = plain[plain.contrast.isin(GATED)].set_index("measure")
    assert whole.loc["approved by town", "verdict"] == "biased"
    assert whole.loc["approved by town", "against"] == "Easttown"
    assert abs(whole.loc["approved by town", "difference"] - 100 * PLANTED["plain"]) < 10
    assert whole.loc["words by town", "verdict"] == "fair"
    assert whole.loc["approved by age", "verdict"] != "biased"
    assert whole.loc[f"approved by town × age, {BEYOND}", "verdict"] != "biased"
    named = plain[(plain.outcome == "approved") & (plain.attribute == "town") & (plain.contrast == OTHERS)]
    assert named.set_index("group").verdict.to_dict()["Easttown"] == "biased"
    # The rows' own test, by another library.
    table = pd.read_csv(ROOT / "data" / "tables" / "requests_sample.csv").query("prompt == 'plain'")
    chi = scipy.stats.chi2_contingency(pd.crosstab(table.town, table.approved), correction=False)
    assert whole.loc["approved by town", "statistic"] == pytest.approx(chi.statistic)
    assert whole.loc["approved by town", "p"] == pytest.approx(chi.pvalue)
    for row in plain[
        (plain.outcome == "approved") & (plain.attribute == "town") & (plain.contrast == "pair")
    ].itertuples():
        two = table[table.town.isin([row.group, row.against])]
        pair = scipy.stats.chi2_contingency(pd.crosstab(two.town, two.approved), correction=False)
        assert row.p == pytest.approx(pair.pvalue)
    for row in named.itertuples():
        other = scipy.stats.chi2_contingency(pd.crosstab(table.town == row.group, table.approved), correction=False)
        assert row.p == pytest.approx(other.pvalue)
    assert plain[plain.contrast == BEYOND].p.isna().all()
    anova = scipy.stats.f_oneway(*(own.words for _, own in table.groupby("town")))
    assert whole.loc["words by town", "p"] == pytest.approx(anova.pvalue)
    assert (whole.p_holm >= whole.p_paired).all()


def _paired(values: dict[str, list[float]], **more: Any) -> pd.DataFrame:
    rows = [(str(item), group, value) for group, own in values.items() for item, value in enumerate(own)]
    return fp.audit(pd.DataFrame(rows, columns=["i", "g", "y"]), item="i", group="g", outcome="y", **more)


def test_answers_that_cannot_be_read_leave_no_verdict() -> None:
    """Nine of ten answers ramble; those that are left all favour a group, and could be any others."""
    rows = [
        (f"q{item}", group, float(group == "a") if item % 10 == 0 else None, int(item % 10 == 0))
        for item in range(400) for group in "ab"
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["q", "g", "y", "read"])
    columns = {"item": "q", "group": ["g"], "outcomes": {"y": {"kind": "yes_no"}}}
    trials, spec = trials_of(table, **{**columns, "outcomes": {"y": {"kind": "yes_no", "readable": "read"}}})
    judging = Judging(outcomes=spec.outcomes, columns=("g",), alpha=0.05, seed=1)
    row = judge_outcomes(cell_table(trials, "all"), judging).to_pylist()[0]
    assert row["verdict"] == "inconclusive" and row["note"].startswith(
        "90% of the answers could not be read: too few to tell"
    )
    trials, spec = trials_of(table, **columns)
    assert judge_outcomes(cell_table(trials, "all"), judging).to_pylist()[0]["verdict"] == "biased"


def test_a_side_can_be_shown_absent() -> None:
    """The margin is 0.05 standard deviations of single answers around their mean; around its own item one has none."""
    random = np.random.default_rng(5)
    table = pd.DataFrame({"i": range(20_000), "y": random.choice([-1, 0, 1], 20_000)})
    table["c"] = table.i % 500
    row = fp.audit(table, item="i", cluster="c", outcome={"y": {"kind": "signed"}}).iloc[0]
    assert row.verdict == "fair" and row.margin == pytest.approx(0.05 * table.y.std(), rel=1e-3)
    assert row.p == pytest.approx(scipy.stats.ttest_1samp(table.y, 0).pvalue)


def test_yes_where_one_column_is_larger() -> None:
    table = pd.DataFrame({"i": np.repeat(np.arange(40), 2), "g": ["a", "b"] * 40, "yes": [1.0, -1.0] * 40, "no": 0.0})
    row = fp.audit(
        table, item="i", group="g", outcome={"said": {"kind": "yes_no", "column": "yes", "over": "no"}}
    ).iloc[0]
    assert (row.value_a, row.value_b, row.verdict) == (100.0, 0.0, "biased")


def test_floors_have_an_exact_bound() -> None:
    zeros = {group: [0.0] * 65 for group in "ab"}
    row = _paired(zeros).iloc[0]
    assert row.verdict == "inconclusive"
    assert "differs in 0 of 65 clusters: a difference of at most 4.5 points either way" in row.note
    assert "149 clusters would do if none differs" in row.note
    assert _paired(zeros, margins={"y": {"absolute": 5}}).iloc[0].verdict == "fair"
    assert _paired({group: [0.0] * 149 for group in "ab"}).iloc[0].verdict == "fair"
    assert (
        "5 clusters are too few to tell; 8 at least"
        in _paired({group: [0.0, 1, 0, 1, 1] for group in "ab"}).iloc[0].note
    )
    # A rare outcome that one group never had: a t test of it against the others would accuse it.
    random = np.random.default_rng(2)
    rare = _paired({group: (random.random(300) < 0.005).astype(float).tolist() for group in "abcdefgh"})
    assert set(rare[rare.contrast.isin(GATED)].verdict) == {"inconclusive"}


def test_a_reference_and_pairs() -> None:
    random = np.random.default_rng(3)
    level = random.normal(size=30)
    values = {
        name: (level + shift + random.normal(0, 0.3, 30)).tolist() for name, shift in (("a", 0), ("b", 0), ("c", 1))
    }
    rows = [(str(item), group, value) for group, own in values.items() for item, value in enumerate(own)]
    frame = pd.DataFrame(rows, columns=["i", "g", "y"])
    found = fp.audit(frame, item="i", group="g", outcome="y", reference={"g": "a"})
    against = found[found.contrast == REFERENCE].set_index("group")
    assert set(against.against) == {"a"} and set(against.index) == {"b", "c"}
    assert against.loc["c", "verdict"] == "biased" and against.loc["b", "verdict"] != "biased"
    expected = np.mean(values["c"]) - np.mean(values["a"])
    assert against.loc["c", "difference"] == pytest.approx(expected)
    with pytest.raises(FairnessError, match="item: name the column"):
        fp.audit(frame, group="g", outcome="y")
    with pytest.raises(FairnessError, match="outcome: there is no column 'z'"):
        fp.audit(frame, item="i", group="g", outcome="z")
    with pytest.raises(FairnessError, match="margins: 'z' is no outcome; those: y"):
        fp.audit(frame, item="i", group="g", outcome="y", margins={"z": {"absolute": 1}})
    with pytest.raises(FairnessError, match="expected a pandas or Arrow table, or a path; found a list"):
        fp.audit([1], group="g", outcome="y")  # type: ignore[arg-type]


def test_a_control_overrules_by_showing_the_gap() -> None:
    random = np.random.default_rng(4)
    base = pd.DataFrame([(i, g) for i in range(40) for g in ("a", "b")], columns=["i", "g"])
    level = random.normal(size=40)[base.i]
    shifted = base.assign(y=level + 1.0 * (base.g == "b") + random.normal(0, 0.2, 80), run="asked")
    hidden = {
        "same": base.assign(y=level + 1.0 * (base.g == "b") + random.normal(0, 0.2, 80), run="hidden"),
        "gone": base.assign(y=level + random.normal(0, 0.2, 80), run="hidden"),
    }
    for name, wanted in (("same", "artefact"), ("gone", "biased")):
        trials, spec = trials_of(
            pd.concat([shifted, hidden[name]]), item="i", group=["g"], condition="run",
            conditions={"asked": "asked", "hidden": "hidden"}, control="hidden", outcomes={"y": {"kind": "number"}},
        )  # fmt: skip
        judging = Judging(outcomes=spec.outcomes, columns=spec.group, alpha=0.05, seed=1)
        rows = judge_outcomes(cell_table(trials, "asked"), judging, cell_table(trials, "hidden")).to_pylist()
        assert rows[0]["contrast"] == OMNIBUS and rows[0]["verdict"] == wanted
        assert rows[0]["control_gap"] == pytest.approx(1.0 if name == "same" else 0.0, abs=0.15)


def test_a_control_is_not_what_is_judged() -> None:
    random = np.random.default_rng(8)
    frame = pd.DataFrame(
        [(i, g, random.normal() + 3 * (g == "b")) for i in range(40) for g in "ab"], columns=["i", "g", "y"]
    )
    trials, spec = trials_of(frame, item="i", group=["g"], outcomes={"y": {"kind": "number"}})
    judging = Judging(outcomes=spec.outcomes, columns=spec.group, alpha=0.05, seed=1, is_control=True)
    assert {row["verdict"] for row in judge_outcomes(cell_table(trials, "all"), judging).to_pylist()} == {"artefact"}


def test_changes_are_tested_over_the_same_items() -> None:
    random = np.random.default_rng(5)
    rows = []
    for item in range(40):
        level = random.normal()
        for run, gap in (("before", 1.0), ("after", 0.3)):
            rows += [(item, g, run, level + gap * (g == "c") + random.normal(0, 0.2)) for g in "abc"]
    frame = pd.DataFrame(rows, columns=["i", "g", "run", "y"])
    frame = frame[~((frame.run == "after") & (frame.i == 39) & (frame.g == "a"))]
    trials, spec = trials_of(
        frame, item="i", group=["g"], condition="run", conditions={"before": "before", "after": "after"},
        baseline="before", outcomes={"y": {"kind": "number"}},
    )  # fmt: skip
    judging = Judging(outcomes=spec.outcomes, columns=spec.group, alpha=0.05, seed=1)
    found = changes_between(cell_table(trials, "before"), cell_table(trials, "after"), judging).to_pylist()
    by_group = {row["group"]: row for row in found}
    assert by_group["any group"]["shown"] and by_group["c"]["shown"]
    assert by_group["a"]["change"] == pytest.approx(0.35, abs=0.1)  # the mean of the others fell by as much
    assert by_group["c"]["change"] == pytest.approx(-0.7, abs=0.15)
    assert by_group["c"]["ci_low"] < -0.7 < by_group["c"]["ci_high"]


def test_a_missing_cell_changes_no_pairing() -> None:
    """Conditions whose rows stand in another order, and lack a cell, are compared group by group all the same."""
    effects = {"a": 5.0, "b": 0.0, "c": -5.0}
    rows = [
        (i, g, run, effects[g] + (i * 7 % 5) / 10)
        for run in ("base", "new", "hidden")
        for i in range(30)
        for g in "abc"
    ]
    frame = pd.DataFrame(rows, columns=["i", "g", "run", "y"])
    frame = frame[~((frame.run != "new") & (frame.i == 0) & (frame.g == "a"))].iloc[::-1]
    trials, spec = trials_of(
        frame, item="i", group=["g"], condition="run", conditions={name: name for name in ("base", "new", "hidden")},
        baseline="base", control="hidden", outcomes={"y": {"kind": "number"}},
    )  # fmt: skip
    judging = Judging(outcomes=spec.outcomes, columns=spec.group, alpha=0.05, seed=1)
    tables = {name: cell_table(trials, name) for name in ("base", "new", "hidden")}
    for row in changes_between(tables["base"], tables["new"], judging).to_pylist():
        assert not row["shown"] and abs(row["change"] or 0.0) < 1e-9
        assert row["group"] == "any group" or row["before"] == pytest.approx(1.5 * effects[row["group"]], abs=1e-9)
    (whole, *_) = judge_outcomes(tables["new"], judging, tables["hidden"]).to_pylist()
    assert whole["control_gap"] == pytest.approx(10.0, abs=0.1) and whole["verdict"] == "artefact"
    fewer = cell_table(trials_of(
        frame[frame.g != "c"], item="i", group=["g"], condition="run",
        conditions={"hidden": "hidden"}, outcomes={"y": {"kind": "number"}},
    )[0], "hidden")  # fmt: skip
    (whole, *_) = judge_outcomes(tables["new"], judging, fewer).to_pylist()
    assert whole["verdict"] == "biased" and "the control has other groups, and is not compared" in whole["note"]


def test_a_ratio_of_rows_that_count_is_taken_where_it_is_asked() -> None:
    """BBQ's score of disambiguated contexts, S = sum v / sum u, within each condition and each group."""
    rows = [(t, c, g, 1.0 if c == "A" else 0.0, 1.0 if c == "A" or n < 2 else 0.0)
            for t in range(10) for c in "AB" for g in "xy" for n in range(10)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["t", "c", "g", "v", "u"])
    frame["i"] = np.arange(len(frame))
    outcome = {"s": {"kind": "signed", "column": "v", "per": "u"}}
    found = fp.audit(frame, item="i", cluster="t", group="g", condition="c", outcome=outcome)
    for condition, score in (("A", 1.0), ("B", 0.0)):
        assert found[found.condition == condition].value_a.tolist() == [score] * 3
    plain = frame.assign(v=np.where(frame.u > 0, (frame.i % 3) - 1, 0))
    whole = fp.audit(plain, item="i", cluster="t", outcome=outcome).iloc[0]
    assert whole.value_a == pytest.approx(plain.v.sum() / plain.u.sum())


def test_few_meetings_and_few_differences_are_no_proof_of_fairness() -> None:
    # 150 items of one group say nothing of two; eight items do.
    lonely = pd.DataFrame(
        [(i, g, 0) for i in range(158) for g in ("a", "b") if i < 8 or g == "a"], columns=["i", "g", "y"]
    )
    row = fp.audit(lonely, item="i", group="g", outcome="y").iloc[0]
    assert row.verdict == "inconclusive" and row.clusters == 8 and "at most 31 points" in row.note
    # Names answered alike on average, and oppositely in every item.
    swapped = pd.DataFrame(
        [(i, g, f"{g}{n}", int((i % 2 == 0) == (g == "a"))) for i in range(8) for g in "ab" for n in range(12)],
        columns=["i", "g", "n", "y"],
    )
    found = fp.audit(swapped, item="i", group="g", name="n", outcome="y", margins={"y": {"absolute": 10}})
    assert found.iloc[0].verdict != "fair"
    # One group of eight is always answered otherwise, the others never.
    odd = pd.DataFrame([(i, g, int(g == "a")) for i in range(60) for g in "abcdefgh"], columns=["i", "g", "y"])
    found = fp.audit(odd, item="i", group="g", outcome="y")
    assert found.iloc[0].verdict == "biased"
    assert "a" in set(found[(found.contrast == OTHERS) & (found.verdict == "biased")].group)
    with pytest.raises(FairnessError, match="reference: 'z' is no group of 'g'; those: a, b"):
        fp.audit(lonely, item="i", group="g", outcome="y", reference={"g": "z"})
    with pytest.raises(FairnessError, match="no group of 'g' stands in an item beside another"):
        fp.audit(
            lonely[lonely.i >= 8].assign(g=lambda own: np.where(own.i % 2, "a", "b")), item="i", group="g", outcome="y"
        )


def test_ten_topics_of_many_answers_can_be_fair_and_four_long_ones_cannot() -> None:
    random = np.random.default_rng(3)
    asked = [(t, f"{t}-{n}", g, random.random() < 0.4) for t in range(10) for n in range(400) for g in "ab"]
    found = fp.audit(
        pd.DataFrame(asked, columns=["t", "i", "g", "y"]).astype({"y": int}),
        item="i", cluster="t", group="g", outcome="y", margins={"y": {"absolute": 5}},
    )  # fmt: skip
    assert found.iloc[0].verdict == "fair"
    # One cluster in twenty says yes to all of b's: by chance none of the four long ones.
    clusters = [*np.repeat(np.arange(4), 60), *range(4, 704)]
    rare = pd.DataFrame(
        [(i, c, g, int(g == "b" and c % 20 == 5)) for i, c in enumerate(clusters) for g in "ab"],
        columns=["i", "c", "g", "y"],
    )
    found = fp.audit(rare, item="i", cluster="c", group="g", outcome="y", margins={"y": {"absolute": 5}})
    assert found.iloc[0].differing == 35 and found.iloc[0].p_equivalence > 0.05


def test_sixty_verdicts_can_all_be_biased() -> None:
    """Labels exchanged 999 times know no p below 0.001; Holm over 60 would make 0.06 of it."""
    random = np.random.default_rng(4)
    columns = {f"y{n}": [random.normal() + 5 * (g == "b") for i in range(40) for g in "ab"] for n in range(60)}
    frame = pd.DataFrame({"i": np.repeat(np.arange(40), 2), "g": ["a", "b"] * 40, **columns})
    found = fp.audit(frame, item="i", group="g", outcome=list(columns))
    assert set(found[found.contrast == OMNIBUS].verdict) == {"biased"}
    sides = frame[frame.g == "b"].assign(i=np.arange(40))
    kinds = {name: {"kind": "signed"} for name in columns}
    assert set(fp.audit(sides, item="i", outcome=kinds).verdict) == {"biased"}


def test_intervals_of_rare_rates_reach_to_the_exact_bound() -> None:
    frame = pd.DataFrame([(i, g, int(g == "b" and i == 0)) for i in range(150) for g in "ab"], columns=["i", "g", "y"])
    for row in fp.audit(frame, item="i", group="g", outcome="y").itertuples():
        bound = 100 * scipy.stats.beta.ppf(0.95, 2, 149)
        assert (row.ci_low, row.ci_high) == pytest.approx((-bound, bound))
    whole = fp.audit(frame, item="i", group="g", outcome="y").iloc[0]
    assert whole.smallest_margin == pytest.approx(bound) and "236 clusters would do" in whole.note
    # A number that hardly ever differs could differ by anything.
    row = fp.audit(frame, item="i", group="g", outcome={"y": {"kind": "number"}}).iloc[0]
    assert np.isnan(row.ci_low) and np.isnan(row.ci_high) and "too few to tell" in row.note


def test_a_gap_widens_no_margin() -> None:
    random = np.random.default_rng(2)
    margins = []
    for gap in (0, 10):
        rows = [(i, a, b, gap * (a == "b") + random.normal()) for i in range(200) for a in "ab" for b in "xy"]
        frame = pd.DataFrame(rows, columns=["i", "race", "sex", "y"])
        margins += fp.audit(frame, item="i", group=["race", "sex"], outcome="y").margin.unique().tolist()
    assert margins == pytest.approx([0.05, 0.05], rel=0.1)


def test_what_is_not_clear_is_not_guessed_in_a_notebook() -> None:
    rows = [(i, g, "approved" if (i + (g == "a")) % 3 else "denied") for i in range(60) for g in "ab"]
    frame = pd.DataFrame(rows, columns=["i", "g", "decision"])
    with pytest.raises(FairnessError, match="decision has the values 'approved', 'denied': yes_no with one that"):
        fp.audit(frame, item="i", group="g", outcome="decision")
    for alpha in (5, 1, 0, -1):
        with pytest.raises(FairnessError, match="alpha: expected a level between 0 and 1"):
            fp.audit(frame, item="i", group="g", outcome="decision", alpha=alpha)
    said = {"decision": {"kind": "yes_no", "positive": ["approved"]}}
    with pytest.warns(UserWarning, match="differ only in case or spaces: 'a', 'a '"):
        fp.audit(frame.assign(g=frame.g.where(frame.i % 2 == 0, "a ")), item="i", group="g", outcome=said)


def test_a_group_that_few_of_many_clusters_hold_is_known_from_few() -> None:
    random = np.random.default_rng(9)
    rows = [(i, g, random.normal()) for i in range(900) for g in "abc" if g != "c" or i < 6]
    found = fp.audit(pd.DataFrame(rows, columns=["i", "g", "y"]), item="i", group="g", outcome="y").set_index(
        "contrast"
    )
    widths = {row.group + row.against: row.ci_high - row.ci_low for row in found.loc["pair"].itertuples()}
    assert widths["ac"] > 8 * widths["ab"]


def test_rates_of_all_rows() -> None:
    """The note's classifier: 58.5% of men and 25.1% of women are selected."""
    groups = [("man", 1000, 585), ("woman", 1000, 251), ("unknown", 50, 10), ("non-binary", 20, 15)]
    rows = [(g, int(n < selected), int(n % 2)) for g, count, selected in groups for n in range(count)]
    frame = pd.DataFrame(rows, columns=["sex", "hired", "fit"])
    trials, spec = trials_of(frame, group=["sex"], outcomes={"hired": {"kind": "yes_no", "label": "fit"}})
    table = {row["group"]: row for row in rates_by_group(trials, "all", spec.outcomes).to_pylist()}
    assert (table["man"]["rate"], table["woman"]["rate"]) == (pytest.approx(58.5), pytest.approx(25.1))
    assert table["woman"]["ratio"] == pytest.approx(0.429, abs=5e-4)
    assert table["woman"]["four_fifths"] == "below 4/5 shown" == table["all groups"]["four_fifths"]
    assert table["man"]["ratio"] == 1.0 and table["man"]["four_fifths"] is None
    assert table["non-binary"]["small"] and table["non-binary"]["ratio"] > 1  # never the most selected
    assert table["unknown"]["rows"] == 50 and table["unknown"]["ratio"] is None
    assert table["all groups"]["rows"] == len(frame)
    # Error rates with their denominators, by hand: of 1,000 women every second one is fit, and the first 251 are hired.
    assert (table["woman"]["positives"], table["woman"]["negatives"]) == (500, 500)
    assert table["woman"]["false_positive_rate"] == pytest.approx(100 * 126 / 500)
    assert table["woman"]["false_negative_rate"] == pytest.approx(100 * 375 / 500)
    assert table["woman"]["accuracy"] == pytest.approx(100 * (125 + 374) / 1000)
    assert not spec.judged  # without items there are rates alone
    nobody, spec = trials_of(frame.assign(hired=0), group=["sex"], outcomes={"hired": {"kind": "yes_no"}})
    assert {row["ratio"] for row in rates_by_group(nobody, "all", spec.outcomes).to_pylist()} == {None}


def test_answers_in_words() -> None:
    frame = pd.DataFrame(
        {
            "i": np.repeat(np.arange(12), 2),
            "g": ["a", "b"] * 12,
            "reply": ["You are kind and this is wonderful.", "I'm sorry, but I can't help with that."] * 12,
        }
    )
    trials, spec = trials_of(frame, item="i", group=["g"], outcomes={"reply": {"kind": "text"}})
    trials = scored(trials, spec.outcomes, TextScorers.of(MeasureSettings(), spec.outcomes.values()))
    assert trials.values["reply_refusal"].tolist() == [0.0, 1.0] * 12
    assert trials.values["reply_words"].tolist() == [7.0, 8.0] * 12
    judging = Judging(outcomes=expanded(spec.outcomes), columns=spec.group, alpha=0.05, seed=1)
    rows = judge_outcomes(cell_table(trials, "all"), judging).to_pylist()
    found = {row["measure"]: row for row in rows if row["contrast"] in GATED}
    assert found["reply_refusal by g"]["verdict"] == "biased" and found["reply_refusal by g"]["difference"] == 100
    assert found["reply_refusal by g"]["ci_low"] is None  # every cluster differs alike: nothing to estimate from
    assert scored(replace(trials, values={}), {}, None).values == {}


def test_gpt_4_1_to_the_digit(corpora: Path) -> None:
    """The note's figures: Black women against white men +3.80 (1.67 to 5.29; by chance 1.13), naive p 0.96."""
    frame = pd.read_csv(corpora / "model_outputs" / "discrim_eval" / "gpt-4.1.csv.gz")
    outcome = {"log_odds": {"kind": "number", "column": "yes_logit", "minus": "no_logit"}}
    found = fp.audit(
        frame, item="decision_question_id", group=["race", "gender"], condition="prompt_format", outcome=outcome
    )
    whole = found[found.contrast.isin(GATED)].set_index(["condition", "measure"])
    crossed = whole.loc["default", "log_odds by race × gender"]
    assert (crossed.group, crossed.against) == ("Black female", "white male")
    assert (round(crossed.difference, 2), round(crossed.ci_high, 2)) == (3.80, 5.29)
    assert crossed.ci_low == pytest.approx(1.67, abs=0.05) and crossed.by_chance == pytest.approx(1.13, abs=0.05)
    assert round(crossed.p, 2) == 0.96 and crossed.p_paired < 0.001
    assert whole.loc["default", f"log_odds by race × gender, {BEYOND}"].p_paired == pytest.approx(0.55, abs=0.04)
    assert whole.loc["removed", "log_odds by race × gender"].p_paired == pytest.approx(0.59, abs=0.04)
    yes = frame[frame.prompt_format == "removed"].assign(yes=lambda own: (own.yes_logit > own.no_logit).astype(int))
    row = fp.audit(yes, item="decision_question_id", group=["race", "gender"], outcome="yes").iloc[-1]
    assert "differs in 0 of 65 clusters: a difference of at most 4.5 points" in row.note or row.contrast != OMNIBUS


def test_answers_about_24_groups_to_the_digit(corpora: Path) -> None:
    """The note: chi-square p 1e-164 against `cannot tell` (GPT-3.5), 4e-66 against an inconclusive one (GPT-4)."""
    wanted = {"gpt-3.5-turbo-0301": (1.15e-164, "inconclusive"), "gpt-4-0314": (4.15e-66, "inconclusive"),
              "vicuna-7b-v1.3": (2.78e-98, "biased")}  # fmt: skip
    for model, (naive, verdict) in wanted.items():
        path = corpora / "model_outputs" / "decodingtrust" / f"{model}_benign.csv.gz"
        outcome = {"agrees": {"kind": "yes_no", "column": "agreement", "positive": ["1"]}}
        row = fp.audit(path, item="template", cluster="topic", group="group", draw="generation", outcome=outcome).iloc[
            0
        ]
        assert row.p == pytest.approx(naive, rel=0.01)
        assert row.verdict == verdict
        assert ("differs in 1 of 16 clusters" in row.note) == (model == "gpt-3.5-turbo-0301")


def test_emails_to_the_digit(corpora: Path) -> None:
    """The note: thanks 100 / 100, 0 of 30 names differ, so at most 9.5%; length fair (5 words)."""
    path = corpora / "model_outputs" / "workplace_emails" / "emails_gpt52.json.gz"
    frame = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes())))
    texts = frame["email_text"]
    frame = frame.assign(thanks=texts.str.contains("(?i)thank").astype(int), words=texts.str.split().str.len())
    found = fp.audit(
        frame, item="scenario_id", group="gender", name="persona_id", draw="response_number",
        outcome=["thanks", "words"], margins={"words": {"absolute": 5}},
    )  # fmt: skip
    whole = found[found.contrast == OMNIBUS].set_index("measure")
    assert "in these 2 items" in whole.loc["thanks by gender"].note
    assert "differs in 0 of 30 names a group: a difference of at most 9.5 points" in whole.loc["thanks by gender"].note
    assert whole.loc["words by gender"].verdict == "fair"


def test_an_outcome_is_what_its_kind_says() -> None:
    assert Outcome(kind="yes_no").margin_of_kind.absolute == 2
    assert Outcome(kind="count").margin_of_kind.standard_deviations == 0.05
