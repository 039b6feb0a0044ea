"""Verdicts on tables: published figures to the digit, planted gaps, floors, controls, rates of all rows, changes."""

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
from fairness_pipeline.measures.outcomes.rates import lowest_ratio, rates_by_group
from fairness_pipeline.measures.outcomes.rows import BEYOND, GATED, OMNIBUS, OTHERS, REFERENCE
from fairness_pipeline.measures.outcomes.text_outcomes import TextScorers, expanded, scored
from fairness_pipeline_tests.measures.outcomes.planted import PLANTED, sample_table

ROOT = Path(__file__).parents[3]


def trials_of(frame: pd.DataFrame, **columns: Any) -> tuple[Trials, OutcomeTable]:
    """The trials in a data frame, and the specification of its columns."""
    specification = validate(OutcomeTable, {"file": {"path": "t"}, **columns}, Path("t"))
    return read_trials(text_columns(pa.Table.from_pandas(frame, preserve_index=False)), specification), specification


def test_the_table_that_ships_is_generated() -> None:
    assert (ROOT / "data" / "tables" / "requests_sample.csv").read_text(encoding="utf-8") == sample_table()


def test_what_is_planted_is_found_and_nothing_else() -> None:
    verdicts = fp.audit(
        ROOT / "data" / "tables" / "requests_sample.csv", item="request", cluster="topic", group=["town", "age"],
        draw="draw", condition="prompt", outcome=["approved", "words"], margins={"words": {"absolute": 3}},
    )  # fmt: skip
    plain = verdicts[verdicts.condition == "plain"]
    omnibus = plain[plain.contrast.isin(GATED)].set_index("measure")
    assert omnibus.loc["approved by town", "verdict"] == "biased"
    assert omnibus.loc["approved by town", "against"] == "Easttown"
    assert abs(omnibus.loc["approved by town", "difference"] - 100 * PLANTED["plain"]) < 10
    assert omnibus.loc["words by town", "verdict"] == "fair"
    assert omnibus.loc["approved by age", "verdict"] != "biased"
    assert omnibus.loc[f"approved by town × age, {BEYOND}", "verdict"] != "biased"
    against_others = plain[(plain.outcome == "approved") & (plain.attribute == "town") & (plain.contrast == OTHERS)]
    assert against_others.set_index("group").verdict.to_dict()["Easttown"] == "biased"
    # The plain test of the rows, by another library.
    table = pd.read_csv(ROOT / "data" / "tables" / "requests_sample.csv").query("prompt == 'plain'")
    chi_square = scipy.stats.chi2_contingency(pd.crosstab(table.town, table.approved), correction=False)
    assert omnibus.loc["approved by town", "statistic"] == pytest.approx(chi_square.statistic)
    assert omnibus.loc["approved by town", "p"] == pytest.approx(chi_square.pvalue)
    for row in plain[
        (plain.outcome == "approved") & (plain.attribute == "town") & (plain.contrast == "pair")
    ].itertuples():
        both_groups = table[table.town.isin([row.group, row.against])]
        pair = scipy.stats.chi2_contingency(pd.crosstab(both_groups.town, both_groups.approved), correction=False)
        assert row.p == pytest.approx(pair.pvalue)
    for row in against_others.itertuples():
        one_group = scipy.stats.chi2_contingency(pd.crosstab(table.town == row.group, table.approved), correction=False)
        assert row.p == pytest.approx(one_group.pvalue)
    assert plain[plain.contrast == BEYOND].p.isna().all()
    anova = scipy.stats.f_oneway(*(of_town.words for _, of_town in table.groupby("town")))
    assert omnibus.loc["words by town", "p"] == pytest.approx(anova.pvalue)
    assert (omnibus.p_holm >= omnibus.p_paired).all()


def _paired(values: dict[str, list[float]], **options: Any) -> pd.DataFrame:
    rows = [
        (str(item), group, value)
        for group, values_of_group in values.items()
        for item, value in enumerate(values_of_group)
    ]
    return fp.audit(pd.DataFrame(rows, columns=["i", "g", "y"]), item="i", group="g", outcome="y", **options)


def test_too_many_unreadable_answers_leave_no_verdict() -> None:
    """Nine of ten answers are unreadable; the remaining ones all favour one group, but the others may not."""
    rows = [
        (f"q{item}", group, float(group == "a") if item % 10 == 0 else None, int(item % 10 == 0))
        for item in range(400) for group in "ab"
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["q", "g", "y", "read"])
    columns = {"item": "q", "group": ["g"], "outcomes": {"y": {"kind": "yes_no"}}}
    trials, specification = trials_of(table, **{**columns, "outcomes": {"y": {"kind": "yes_no", "readable": "read"}}})
    judging = Judging(outcomes=specification.outcomes, columns=("g",), alpha=0.05, seed=1)
    row = judge_outcomes(cell_table(trials, "all"), judging).to_pylist()[0]
    assert row["verdict"] == "inconclusive" and row["note"].startswith(
        "90% of the answers could not be read: too few to tell are left"
    )
    trials, specification = trials_of(table, **columns)
    assert judge_outcomes(cell_table(trials, "all"), judging).to_pylist()[0]["verdict"] == "biased"


def test_a_leaning_can_be_shown_absent() -> None:
    """The margin is 0.05 standard deviations of answers around their mean; items with one answer have no spread."""
    random = np.random.default_rng(5)
    table = pd.DataFrame({"i": range(20_000), "y": random.choice([-1, 0, 1], 20_000)})
    table["c"] = table.i % 500
    row = fp.audit(table, item="i", cluster="c", outcome={"y": {"kind": "signed"}}).iloc[0]
    assert row.verdict == "fair" and row.margin == pytest.approx(0.05 * table.y.std(), rel=1e-3)
    assert row.p == pytest.approx(scipy.stats.ttest_1samp(table.y, 0).pvalue)


def test_an_answer_is_yes_where_one_column_is_larger() -> None:
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
    # One group never had a rare outcome; a t test of that group against the others would call it biased.
    random = np.random.default_rng(2)
    rare = _paired({group: (random.random(300) < 0.005).astype(float).tolist() for group in "abcdefgh"})
    assert set(rare[rare.contrast.isin(GATED)].verdict) == {"inconclusive"}


def test_a_reference_and_pairs() -> None:
    random = np.random.default_rng(3)
    level = random.normal(size=30)
    values = {
        name: (level + shift + random.normal(0, 0.3, 30)).tolist() for name, shift in (("a", 0), ("b", 0), ("c", 1))
    }
    rows = [
        (str(item), group, value)
        for group, values_of_group in values.items()
        for item, value in enumerate(values_of_group)
    ]
    frame = pd.DataFrame(rows, columns=["i", "g", "y"])
    verdicts = fp.audit(frame, item="i", group="g", outcome="y", reference={"g": "a"})
    against_reference = verdicts[verdicts.contrast == REFERENCE].set_index("group")
    assert set(against_reference.against) == {"a"} and set(against_reference.index) == {"b", "c"}
    assert against_reference.loc["c", "verdict"] == "biased" and against_reference.loc["b", "verdict"] != "biased"
    expected = np.mean(values["c"]) - np.mean(values["a"])
    assert against_reference.loc["c", "difference"] == pytest.approx(expected)
    with pytest.raises(FairnessError, match="item: name the column"):
        fp.audit(frame, group="g", outcome="y")
    with pytest.raises(FairnessError, match="outcome: there is no column 'z'"):
        fp.audit(frame, item="i", group="g", outcome="z")
    with pytest.raises(FairnessError, match="margins: unknown outcome 'z'; known: y"):
        fp.audit(frame, item="i", group="g", outcome="y", margins={"z": {"absolute": 1}})
    with pytest.raises(FairnessError, match="expected a pandas or Arrow table, or a path; found a list"):
        fp.audit([1], group="g", outcome="y")  # type: ignore[arg-type]


def test_a_control_with_the_same_gap_makes_it_an_artefact() -> None:
    random = np.random.default_rng(4)
    base = pd.DataFrame([(i, g) for i in range(40) for g in ("a", "b")], columns=["i", "g"])
    level = random.normal(size=40)[base.i]
    asked = base.assign(y=level + 1.0 * (base.g == "b") + random.normal(0, 0.2, 80), run="asked")
    controls = {
        "same": base.assign(y=level + 1.0 * (base.g == "b") + random.normal(0, 0.2, 80), run="hidden"),
        "gone": base.assign(y=level + random.normal(0, 0.2, 80), run="hidden"),
    }
    for name, expected in (("same", "artefact"), ("gone", "biased")):
        trials, specification = trials_of(
            pd.concat([asked, controls[name]]), item="i", group=["g"], condition="run",
            conditions={"asked": "asked", "hidden": "hidden"}, control="hidden", outcomes={"y": {"kind": "number"}},
        )  # fmt: skip
        judging = Judging(outcomes=specification.outcomes, columns=specification.group, alpha=0.05, seed=1)
        rows = judge_outcomes(cell_table(trials, "asked"), judging, cell_table(trials, "hidden")).to_pylist()
        assert rows[0]["contrast"] == OMNIBUS and rows[0]["verdict"] == expected
        assert rows[0]["control_gap"] == pytest.approx(1.0 if name == "same" else 0.0, abs=0.15)


def test_gaps_of_a_control_are_artefacts() -> None:
    random = np.random.default_rng(8)
    frame = pd.DataFrame(
        [(i, g, random.normal() + 3 * (g == "b")) for i in range(40) for g in "ab"], columns=["i", "g", "y"]
    )
    trials, specification = trials_of(frame, item="i", group=["g"], outcomes={"y": {"kind": "number"}})
    judging = Judging(outcomes=specification.outcomes, columns=specification.group, alpha=0.05, seed=1, is_control=True)
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
    trials, specification = trials_of(
        frame, item="i", group=["g"], condition="run", conditions={"before": "before", "after": "after"},
        baseline="before", outcomes={"y": {"kind": "number"}},
    )  # fmt: skip
    judging = Judging(outcomes=specification.outcomes, columns=specification.group, alpha=0.05, seed=1)
    changes = changes_between(cell_table(trials, "before"), cell_table(trials, "after"), judging).to_pylist()
    by_group = {row["group"]: row for row in changes}
    assert by_group["any group"]["shown"] and by_group["c"]["shown"]
    assert by_group["a"]["change"] == pytest.approx(0.35, abs=0.1)  # the mean of the others fell by this amount
    assert by_group["c"]["change"] == pytest.approx(-0.7, abs=0.15)
    assert by_group["c"]["ci_low"] < -0.7 < by_group["c"]["ci_high"]


def test_a_missing_cell_changes_no_pairing() -> None:
    """Conditions with another order of rows, or without a cell, are still compared group by group."""
    effects = {"a": 5.0, "b": 0.0, "c": -5.0}
    rows = [
        (i, g, run, effects[g] + (i * 7 % 5) / 10)
        for run in ("base", "new", "hidden")
        for i in range(30)
        for g in "abc"
    ]
    frame = pd.DataFrame(rows, columns=["i", "g", "run", "y"])
    frame = frame[~((frame.run != "new") & (frame.i == 0) & (frame.g == "a"))].iloc[::-1]
    trials, specification = trials_of(
        frame, item="i", group=["g"], condition="run", conditions={name: name for name in ("base", "new", "hidden")},
        baseline="base", control="hidden", outcomes={"y": {"kind": "number"}},
    )  # fmt: skip
    judging = Judging(outcomes=specification.outcomes, columns=specification.group, alpha=0.05, seed=1)
    tables = {name: cell_table(trials, name) for name in ("base", "new", "hidden")}
    for row in changes_between(tables["base"], tables["new"], judging).to_pylist():
        assert not row["shown"] and abs(row["change"] or 0.0) < 1e-9
        assert row["group"] == "any group" or row["before"] == pytest.approx(1.5 * effects[row["group"]], abs=1e-9)
    (omnibus, *_) = judge_outcomes(tables["new"], judging, tables["hidden"]).to_pylist()
    assert omnibus["control_gap"] == pytest.approx(10.0, abs=0.1) and omnibus["verdict"] == "artefact"
    smaller_control = cell_table(trials_of(
        frame[frame.g != "c"], item="i", group=["g"], condition="run",
        conditions={"hidden": "hidden"}, outcomes={"y": {"kind": "number"}},
    )[0], "hidden")  # fmt: skip
    (omnibus, *_) = judge_outcomes(tables["new"], judging, smaller_control).to_pylist()
    assert omnibus["verdict"] == "biased" and "the control has other groups, and is not compared" in omnibus["note"]


def test_a_ratio_is_taken_within_conditions_and_groups() -> None:
    """BBQ's score of disambiguated contexts, S = sum v / sum u, within each condition and each group."""
    rows = [(t, c, g, 1.0 if c == "A" else 0.0, 1.0 if c == "A" or n < 2 else 0.0)
            for t in range(10) for c in "AB" for g in "xy" for n in range(10)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["t", "c", "g", "v", "u"])
    frame["i"] = np.arange(len(frame))
    outcome = {"s": {"kind": "signed", "column": "v", "per": "u"}}
    verdicts = fp.audit(frame, item="i", cluster="t", group="g", condition="c", outcome=outcome)
    for condition, score in (("A", 1.0), ("B", 0.0)):
        assert verdicts[verdicts.condition == condition].value_a.tolist() == [score] * 3
    plain = frame.assign(v=np.where(frame.u > 0, (frame.i % 3) - 1, 0))
    overall = fp.audit(plain, item="i", cluster="t", outcome=outcome).iloc[0]
    assert overall.value_a == pytest.approx(plain.v.sum() / plain.u.sum())


def test_few_shared_items_and_few_differences_are_no_proof_of_fairness() -> None:
    # 150 items of one group say nothing about two groups; eight items of both do.
    mostly_one_group = pd.DataFrame(
        [(i, g, 0) for i in range(158) for g in ("a", "b") if i < 8 or g == "a"], columns=["i", "g", "y"]
    )
    row = fp.audit(mostly_one_group, item="i", group="g", outcome="y").iloc[0]
    assert row.verdict == "inconclusive" and row.clusters == 8 and "at most 31 points" in row.note
    # Answers to names are equal on average, but opposite in every item.
    swapped = pd.DataFrame(
        [(i, g, f"{g}{n}", int((i % 2 == 0) == (g == "a"))) for i in range(8) for g in "ab" for n in range(12)],
        columns=["i", "g", "n", "y"],
    )
    verdicts = fp.audit(swapped, item="i", group="g", name="n", outcome="y", margins={"y": {"absolute": 10}})
    assert verdicts.iloc[0].verdict != "fair"
    # One group of eight always gets another answer.
    one_differs = pd.DataFrame([(i, g, int(g == "a")) for i in range(60) for g in "abcdefgh"], columns=["i", "g", "y"])
    verdicts = fp.audit(one_differs, item="i", group="g", outcome="y")
    assert verdicts.iloc[0].verdict == "biased"
    assert "a" in set(verdicts[(verdicts.contrast == OTHERS) & (verdicts.verdict == "biased")].group)
    with pytest.raises(FairnessError, match="reference: 'z' is not a group of 'g'; its groups: a, b"):
        fp.audit(mostly_one_group, item="i", group="g", outcome="y", reference={"g": "z"})
    with pytest.raises(FairnessError, match="no group of 'g' shares an item with another group"):
        fp.audit(
            mostly_one_group[mostly_one_group.i >= 8].assign(g=lambda frame: np.where(frame.i % 2, "a", "b")),
            item="i",
            group="g",
            outcome="y",
        )


def test_ten_large_topics_can_be_fair_and_four_dominant_ones_cannot() -> None:
    random = np.random.default_rng(3)
    rows = [(t, f"{t}-{n}", g, random.random() < 0.4) for t in range(10) for n in range(400) for g in "ab"]
    verdicts = fp.audit(
        pd.DataFrame(rows, columns=["t", "i", "g", "y"]).astype({"y": int}),
        item="i", cluster="t", group="g", outcome="y", margins={"y": {"absolute": 5}},
    )  # fmt: skip
    assert verdicts.iloc[0].verdict == "fair"
    # One cluster in twenty has only yes for b, but by chance none of the four large ones.
    clusters = [*np.repeat(np.arange(4), 60), *range(4, 704)]
    rare = pd.DataFrame(
        [(i, c, g, int(g == "b" and c % 20 == 5)) for i, c in enumerate(clusters) for g in "ab"],
        columns=["i", "c", "g", "y"],
    )
    verdicts = fp.audit(rare, item="i", cluster="c", group="g", outcome="y", margins={"y": {"absolute": 5}})
    assert verdicts.iloc[0].differing == 35 and verdicts.iloc[0].p_equivalence > 0.05


def test_sixty_verdicts_can_all_be_biased() -> None:
    """999 permutations give no p below 0.001, which Holm's correction over 60 would turn into 0.06."""
    random = np.random.default_rng(4)
    columns = {f"y{n}": [random.normal() + 5 * (g == "b") for i in range(40) for g in "ab"] for n in range(60)}
    frame = pd.DataFrame({"i": np.repeat(np.arange(40), 2), "g": ["a", "b"] * 40, **columns})
    verdicts = fp.audit(frame, item="i", group="g", outcome=list(columns))
    assert set(verdicts[verdicts.contrast == OMNIBUS].verdict) == {"biased"}
    sides = frame[frame.g == "b"].assign(i=np.arange(40))
    kinds = {name: {"kind": "signed"} for name in columns}
    assert set(fp.audit(sides, item="i", outcome=kinds).verdict) == {"biased"}


def test_intervals_of_rare_rates_reach_to_the_exact_bound() -> None:
    frame = pd.DataFrame([(i, g, int(g == "b" and i == 0)) for i in range(150) for g in "ab"], columns=["i", "g", "y"])
    for row in fp.audit(frame, item="i", group="g", outcome="y").itertuples():
        bound = 100 * scipy.stats.beta.ppf(0.95, 2, 149)
        assert (row.ci_low, row.ci_high) == pytest.approx((-bound, bound))
    omnibus = fp.audit(frame, item="i", group="g", outcome="y").iloc[0]
    assert omnibus.smallest_margin == pytest.approx(bound) and "236 clusters would do" in omnibus.note
    # A number that rarely differs could differ by any amount.
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


def test_ambiguous_arguments_are_refused_in_a_notebook() -> None:
    rows = [(i, g, "approved" if (i + (g == "a")) % 3 else "denied") for i in range(60) for g in "ab"]
    frame = pd.DataFrame(rows, columns=["i", "g", "decision"])
    with pytest.raises(FairnessError, match="decision has the values 'approved', 'denied': yes_no with one that"):
        fp.audit(frame, item="i", group="g", outcome="decision")
    for alpha in (5, 1, 0, -1, "5%", None):
        with pytest.raises(FairnessError, match=f"alpha: expected a level between 0 and 1, .*; found {alpha!r}"):
            fp.audit(frame, item="i", group="g", outcome="decision", alpha=alpha)  # type: ignore[arg-type]
    with pytest.raises(FairnessError, match="seed: expected a number from 0, found 'a'"):
        fp.audit(frame, item="i", group="g", outcome="decision", seed="a")  # type: ignore[arg-type]
    outcome = {"decision": {"kind": "yes_no", "positive": ["approved"]}}
    crossed = frame.assign(g=frame.g.map({"a": "a b", "b": "a"}), h=["c", "b c"] * 60)
    with pytest.raises(FairnessError, match="'a' with 'b c' and 'a b' with 'c' are both 'a b c'; rename one"):
        fp.audit(crossed, item="i", group=["g", "h"], outcome=outcome)
    with pytest.warns(UserWarning, match="differ only in case or spaces: 'a', 'a '"):
        fp.audit(frame.assign(g=frame.g.where(frame.i % 2 == 0, "a ")), item="i", group="g", outcome=outcome)


def test_a_group_in_few_clusters_has_a_wide_interval() -> None:
    random = np.random.default_rng(9)
    rows = [(i, g, random.normal()) for i in range(900) for g in "abc" if g != "c" or i < 6]
    verdicts = fp.audit(pd.DataFrame(rows, columns=["i", "g", "y"]), item="i", group="g", outcome="y").set_index(
        "contrast"
    )
    widths = {row.group + row.against: row.ci_high - row.ci_low for row in verdicts.loc["pair"].itertuples()}
    assert widths["ac"] > 8 * widths["ab"]


def test_rates_of_all_rows() -> None:
    """The note's classifier selects 58.5% of men and 25.1% of women."""
    groups = [("man", 1000, 585), ("woman", 1000, 251), ("unknown", 50, 10), ("non-binary", 20, 15)]
    rows = [(g, int(n < selected), int(n % 2)) for g, count, selected in groups for n in range(count)]
    frame = pd.DataFrame(rows, columns=["sex", "hired", "fit"])
    trials, specification = trials_of(frame, group=["sex"], outcomes={"hired": {"kind": "yes_no", "label": "fit"}})
    table = {row["group"]: row for row in rates_by_group(trials, "all", specification.outcomes).to_pylist()}
    assert (table["man"]["rate"], table["woman"]["rate"]) == (pytest.approx(58.5), pytest.approx(25.1))
    assert table["woman"]["ratio"] == pytest.approx(0.429, abs=5e-4)
    assert table["woman"]["four_fifths"] == "below 4/5 shown" == table["all groups"]["four_fifths"]
    assert table["man"]["ratio"] == 1.0 and table["man"]["four_fifths"] is None
    assert table["non-binary"]["small"] and table["non-binary"]["ratio"] > 1  # never taken as the most selected group
    assert table["unknown"]["rows"] == 50 and table["unknown"]["ratio"] is None
    assert table["all groups"]["rows"] == len(frame)
    # Error rates with their denominators, by hand: of 1,000 women every second one is fit, and the first 251 are hired.
    assert (table["woman"]["positives"], table["woman"]["negatives"]) == (500, 500)
    assert table["woman"]["false_positive_rate"] == pytest.approx(100 * 126 / 500)
    assert table["woman"]["false_negative_rate"] == pytest.approx(100 * 375 / 500)
    assert table["woman"]["accuracy"] == pytest.approx(100 * (125 + 374) / 1000)
    assert not specification.judged  # without items there are rates alone
    none_hired, specification = trials_of(frame.assign(hired=0), group=["sex"], outcomes={"hired": {"kind": "yes_no"}})
    assert {row["ratio"] for row in rates_by_group(none_hired, "all", specification.outcomes).to_pylist()} == {None}


def test_the_lowest_ratio_is_that_of_a_group_that_is_not_small() -> None:
    rows = [
        (group, int(group == "man")) for group, count in (("any", 2), ("man", 98), ("woman", 100)) for _ in range(count)
    ]
    frame = pd.DataFrame(rows, columns=["sex", "hired"])
    trials, specification = trials_of(frame, group=["sex"], outcomes={"hired": {"kind": "yes_no"}})
    table = rates_by_group(trials, "all", specification.outcomes).to_pylist()
    assert [(row["group"], row["small"], row["ratio"]) for row in table] == [
        ("any", True, 0.0), ("man", False, 1.0), ("woman", False, 0.0), ("all groups", False, 0.0)
    ]  # fmt: skip
    assert "0.0% of 'woman' and 100.0% of 'man'" in lowest_ratio(table, "hired", "sex")


def test_answers_in_words() -> None:
    frame = pd.DataFrame(
        {
            "i": np.repeat(np.arange(12), 2),
            "g": ["a", "b"] * 12,
            "reply": ["You are kind and this is wonderful.", "I'm sorry, but I can't help with that."] * 12,
        }
    )
    trials, specification = trials_of(frame, item="i", group=["g"], outcomes={"reply": {"kind": "text"}})
    trials = scored(trials, specification.outcomes, TextScorers.of(MeasureSettings(), specification.outcomes.values()))
    assert trials.values["reply_refusal"].tolist() == [0.0, 1.0] * 12
    assert trials.values["reply_words"].tolist() == [7.0, 8.0] * 12
    judging = Judging(outcomes=expanded(specification.outcomes), columns=specification.group, alpha=0.05, seed=1)
    rows = judge_outcomes(cell_table(trials, "all"), judging).to_pylist()
    gated = {row["measure"]: row for row in rows if row["contrast"] in GATED}
    assert gated["reply_refusal by g"]["verdict"] == "biased" and gated["reply_refusal by g"]["difference"] == 100
    assert gated["reply_refusal by g"]["ci_low"] is None  # every cluster differs by the same amount
    assert scored(replace(trials, values={}), {}, None).values == {}


def test_gpt_4_1_to_the_digit(corpora: Path) -> None:
    """The note's figures: Black women against white men +3.80 (1.67 to 5.29; by chance 1.13), naive p 0.96."""
    frame = pd.read_csv(corpora / "model_outputs" / "discrim_eval" / "gpt-4.1.csv.gz")
    outcome = {"log_odds": {"kind": "number", "column": "yes_logit", "minus": "no_logit"}}
    verdicts = fp.audit(
        frame, item="decision_question_id", group=["race", "gender"], condition="prompt_format", outcome=outcome
    )
    omnibus = verdicts[verdicts.contrast.isin(GATED)].set_index(["condition", "measure"])
    crossed = omnibus.loc["default", "log_odds by race × gender"]
    assert (crossed.group, crossed.against) == ("Black female", "white male")
    assert (round(crossed.difference, 2), round(crossed.ci_high, 2)) == (3.80, 5.29)
    assert crossed.ci_low == pytest.approx(1.67, abs=0.05) and crossed.by_chance == pytest.approx(1.13, abs=0.05)
    assert round(crossed.p, 2) == 0.96 and crossed.p_paired < 0.001
    assert omnibus.loc["default", f"log_odds by race × gender, {BEYOND}"].p_paired == pytest.approx(0.55, abs=0.04)
    assert omnibus.loc["removed", "log_odds by race × gender"].p_paired == pytest.approx(0.59, abs=0.04)
    yes = frame[frame.prompt_format == "removed"].assign(
        yes=lambda answers: (answers.yes_logit > answers.no_logit).astype(int)
    )
    row = fp.audit(yes, item="decision_question_id", group=["race", "gender"], outcome="yes").iloc[-1]
    assert "differs in 0 of 65 clusters: a difference of at most 4.5 points" in row.note or row.contrast != OMNIBUS


def test_answers_about_24_groups_to_the_digit(corpora: Path) -> None:
    """The note: chi-square p 1e-164 against `cannot tell` (GPT-3.5), 4e-66 against an inconclusive one (GPT-4)."""
    expected = {"gpt-3.5-turbo-0301": (1.15e-164, "inconclusive"), "gpt-4-0314": (4.15e-66, "inconclusive"),
              "vicuna-7b-v1.3": (2.78e-98, "biased")}  # fmt: skip
    for model, (naive, verdict) in expected.items():
        path = corpora / "model_outputs" / "decodingtrust" / f"{model}_benign.csv.gz"
        outcome = {"agrees": {"kind": "yes_no", "column": "agreement", "positive": ["1"]}}
        row = fp.audit(path, item="template", cluster="topic", group="group", draw="generation", outcome=outcome).iloc[
            0
        ]
        assert row.p == pytest.approx(naive, rel=0.01)
        assert row.verdict == verdict
        assert ("differs in 1 of 16 clusters" in row.note) == (model == "gpt-3.5-turbo-0301")


def test_emails_to_the_digit(corpora: Path) -> None:
    """The note's figures: thanks 100 / 100, 0 of 30 names differ, so at most 9.5%; length is fair (5 words)."""
    path = corpora / "model_outputs" / "workplace_emails" / "emails_gpt52.json.gz"
    frame = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes())))
    texts = frame["email_text"]
    frame = frame.assign(thanks=texts.str.contains("(?i)thank").astype(int), words=texts.str.split().str.len())
    verdicts = fp.audit(
        frame, item="scenario_id", group="gender", name="persona_id", draw="response_number",
        outcome=["thanks", "words"], margins={"words": {"absolute": 5}},
    )  # fmt: skip
    omnibus = verdicts[verdicts.contrast == OMNIBUS].set_index("measure")
    assert "in these 2 items" in omnibus.loc["thanks by gender"].note
    assert (
        "differs in 0 of 30 names a group: a difference of at most 9.5 points" in omnibus.loc["thanks by gender"].note
    )
    assert omnibus.loc["words by gender"].verdict == "fair"


def test_the_kind_of_an_outcome_sets_its_margin() -> None:
    assert Outcome(kind="yes_no").margin_of_kind.absolute == 2
    assert Outcome(kind="count").margin_of_kind.standard_deviations == 0.05
