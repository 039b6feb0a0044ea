"""Groups of annotators: rates by hand, false alarms at the nominal rate, power, and statsmodels' variance analysis."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_design import Levels
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.annotators.annotator_anova import against_majority, analyse_variance
from fairness_pipeline.measures.annotators.annotator_groups import (
    AnnotatorGroupsSettings,
    Labelled,
    compare_positive_rates,
    rates_of,
)
from fairness_pipeline.statistics.paired import paired_t
from fairness_pipeline.statistics.welch import NO_PAIR, UNLIKE_ALL


def labelled(rows: list[tuple[str, str, int]], sides: dict[str, dict[str, int]]) -> Labelled:
    """Labels from rows (item, annotator, label), and from the side of every annotator in each category."""
    labels = Labels.of(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    return Labelled(
        labels,
        {
            category: Levels(("a", "b"), np.array([side_of.get(annotator, -1) for annotator in labels.annotators]), {})
            for category, side_of in sides.items()
        },
    )


def drawn(
    seed: int, *, items: int = 150, people: int = 40, per: int = 6, sd: float = 0.15, effect: float = 0.0,
    share: float = 0.5,
) -> Labelled:  # fmt: skip
    """Items of many rates; each annotator leans their own way, and group a by `effect` more."""
    random = np.random.default_rng(seed)
    sides = (random.random(people) < share).astype(int)
    sides[:4] = [0, 1, 0, 1]
    rates, leaning = random.beta(1, 2, items), random.normal(0, sd, people) + effect * (sides == 0)
    annotators = random.random((items, people)).argsort(axis=1)[:, :per]
    positive = (random.random((items, per)) < np.clip(rates[:, None] + leaning[annotators], 0, 1)).astype(int)
    data = pd.DataFrame(
        {"task": np.repeat(np.arange(items), per), "worker": annotators.ravel(), "label": positive.ravel()}
    )
    labels = Labels.of(data)
    return Labelled(labels, {"g": Levels(("a", "b"), sides[labels.annotators], {})})


def test_rates_by_hand() -> None:
    rows = [
        ("1", "a1", 1), ("1", "a2", 0), ("1", "b1", 0),
        ("2", "a1", 1), ("2", "b1", 1), ("2", "b2", 0), ("2", "x", 1),
        ("3", "a1", 1), ("3", "x", 1),
    ]  # fmt: skip
    hand_made = labelled(rows, {"g": {"a1": 0, "a2": 0, "b1": 1, "b2": 1}})
    group_rates = rates_of(hand_made, "g")
    assert group_rates is not None
    assert group_rates.a.tolist() == [0.5, 1.0] and group_rates.b.tolist() == [0.0, 0.5]  # nobody of b labelled item 3
    assert group_rates.labels == (3, 3) and group_rates.annotators == (2, 2) and group_rates.pooled == (2 / 3, 1 / 3)
    (row,) = compare_positive_rates(hand_made, AnnotatorGroupsSettings(), {}).to_pylist()
    assert (row["measure"], row["n"], row["value_a"], row["value_b"], row["difference"]) == ("g", 2, 75, 25, 50)
    alone = labelled([("1", "a1", 1), ("2", "b1", 1)], {"g": {"a1": 0, "b1": 1}})
    assert rates_of(alone, "g") is None
    with pytest.raises(FairnessError, match="no item was labelled by both groups of any category"):
        compare_positive_rates(alone, AnnotatorGroupsSettings(), {})


def test_the_error_is_the_jackknifes() -> None:
    """One annotator is left out by hand; every item has several labels of each group, and items are alike."""
    sample = drawn(1, items=40, people=10, per=8, sd=0.2)
    group_rates = rates_of(sample, "g")
    assert group_rates is not None

    def without(annotator: int) -> float:
        kept = sample.labels.annotator != annotator
        fewer = replace(
            sample.labels,
            item=sample.labels.item[kept],
            annotator=sample.labels.annotator[kept],
            label=sample.labels.label[kept],
        )
        left = rates_of(Labelled(fewer, sample.levels), "g")
        assert left is not None
        return left.estimate.centre

    centres = np.array([without(r) for r in range(10)])
    plain = sum(
        (n - 1)
        / n
        * np.square(centres[sample.levels["g"].code == g] - centres[sample.levels["g"].code == g].mean()).sum()
        for g in (0, 1)
        for n in [(sample.levels["g"].code == g).sum()]
    )
    # The plain jackknife counts a label's noise more than once; our error leaves that out and adds the items' part, so
    # it is only close.
    assert 0.6 * plain < group_rates.estimate.error**2 < 1.3 * plain


@pytest.mark.parametrize("options", [{}, {"share": 0.2}, {"per": 2, "items": 300}, {"sd": 0.0}])
def test_false_alarms_are_at_the_nominal_rate_and_those_of_items_alone_are_not(options: dict[str, float]) -> None:
    group_rates = [rates_of(drawn(seed, **options), "g") for seed in range(200)]  # type: ignore[arg-type]
    alarms = np.mean([sample.estimate.p_zero() < 0.05 for sample in group_rates if sample])
    alarms_by_items = np.mean([paired_t(sample.a, sample.b).p < 0.05 for sample in group_rates if sample])
    assert alarms <= 0.095  # 0.05, and three standard errors of 200
    if options.get("sd", 1):
        assert alarms_by_items > 1.5 * max(alarms, 0.05)
    errors = [sample.estimate.error for sample in group_rates if sample]
    spread = np.std([sample.estimate.centre for sample in group_rates if sample])
    assert 0.8 < np.mean(errors) / spread < 1.25


def test_power() -> None:
    group_rates = [rates_of(drawn(seed, people=120, items=400, sd=0.1, effect=0.12), "g") for seed in range(40)]
    assert np.mean([sample.estimate.p_zero() < 0.05 for sample in group_rates if sample]) > 0.85
    table = compare_positive_rates(drawn(3, people=120, items=400, sd=0.1, effect=0.15), AnnotatorGroupsSettings(), {})
    assert table["verdict"].to_pylist() == ["biased"] and table["difference"].to_pylist()[0] > 0


def test_no_difference_among_few_items_shows_little() -> None:
    rows = [(f"{i}", annotator, 1) for i in range(4) for annotator in ("a1", "a2", "b1", "b2")]
    (row,) = compare_positive_rates(
        labelled(rows, {"g": {"a1": 0, "a2": 0, "b1": 1, "b2": 1}}), AnnotatorGroupsSettings(), {}
    ).to_pylist()
    assert row["verdict"] == "inconclusive" and row["difference"] == 0


def test_the_variance_analysis_is_statsmodels() -> None:
    import statsmodels.formula.api as formula
    from statsmodels.stats.anova import anova_lm

    sample = drawn(5, items=120, people=60, effect=0.1)
    random = np.random.default_rng(2)
    codes = random.integers(0, 3, len(sample.levels["g"].code))
    codes[:3] = -1
    sample.levels["h"] = Levels(("x", "y", "z"), codes, {})
    ours = {
        (entry["category"], entry["response"]): entry
        for entry in analyse_variance(sample, {("g", "specificity"): (0.1, "*")}).to_pylist()
    }
    for response, values in against_majority(sample.labels).items():
        frame = pd.DataFrame({"y": values, **{name: sample.levels[name].code for name in sample.levels}})
        frame = frame[np.isfinite(frame["y"]) & (frame["h"] >= 0)]
        theirs = anova_lm(formula.ols("y ~ C(g) + C(h)", frame).fit(), typ=2)
        for category in ("g", "h"):
            row, expected = ours[category, response], theirs.loc[f"C({category})"]
            assert row["sum_of_squares"] == pytest.approx(expected["sum_sq"])
            assert (row["f"], row["p"]) == pytest.approx((expected["F"], expected["PR(>F)"]))
            assert row["annotators"] == len(frame) and row["freedom"] == expected["df"]
            assert row["means"] == pytest.approx(frame.groupby(category)["y"].mean().tolist())
            assert row["stars"] == ("**" if row["p"] < 0.005 else "*" if row["p"] < 0.05 else "")
    assert ours["g", "specificity"]["published_sum_of_squares"] == 0.1


def test_perfect_separation_and_a_category_that_determines_another() -> None:
    """Two in three of group a's negative items are called positive by b's people, always; h is g again."""
    rows = [(str(i), w, int(i < 3)) for i in range(6) for w in ("a1", "a2", "a3", "a4", "a5")]
    rows += [(str(i), w, int(i < 3 or i == 3)) for i in range(6) for w in ("b1", "b2")]
    sides = {"g": {**{f"a{i}": 0 for i in range(1, 6)}, "b1": 1, "b2": 1}}
    by_response = {entry["response"]: entry for entry in analyse_variance(labelled(rows, sides), {}).to_pylist()}
    for response, means in (("specificity", [1, 2 / 3]), ("sensitivity", [1, 1])):  # nothing varies within groups: no F
        assert by_response[response]["p"] is None and by_response[response]["means"] == pytest.approx(means)
        assert by_response[response]["reason"] == "within the groups all annotators agree with the vote alike"
    duplicated = analyse_variance(labelled(rows, {"g": sides["g"], "h": sides["g"]}), {}).to_pylist()
    for row in duplicated:
        assert row["f"] is row["p"] is row["sum_of_squares"] is None and row["stars"] == ""
        assert row["reason"].startswith("the other categories determine its groups")


def test_a_category_without_groups_leaves_the_others_alone() -> None:
    rows = [
        (str(i), f"{g}{w}", int((i * 7 + w * 3) % 5 < 2 + (g == "a")))
        for i in range(40)
        for g in "ab"
        for w in range(6)
    ]
    sides = {"g": {f"{g}{w}": "ab".index(g) for g in "ab" for w in range(6)}}
    alone = analyse_variance(labelled(rows, sides), {}).to_pylist()
    with_race = labelled(rows, sides)
    with_race.levels["race"] = Levels((), np.full(12, -1), {"x": 4, "y": 4, "z": 4})
    both = analyse_variance(with_race, {}).to_pylist()
    assert [row for row in both if row["category"] == "g"] == alone
    assert {row["reason"] for row in both if row["category"] == "race"} == {
        "fewer than two groups with annotators enough"
    }


def test_annotators_without_labels_of_a_class_are_left_out_of_its_response() -> None:
    rows = [("1", annotator, 1) for annotator in "abc"] + [("2", annotator, 0) for annotator in "bcd"]
    responses = against_majority(labelled(rows, {}).labels)
    assert np.isnan(responses["specificity"][0]) and np.isnan(responses["sensitivity"][3])
    assert responses["sensitivity"][:3].tolist() == [1, 1, 1]


def groups_of(seed: int, effect: float = 0.0, *, sd: float = 0.1, per: int = 8) -> Labelled:
    """Four groups of 60, 25, 15 and 8 raters; the second calls items positive more often."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), (60, 25, 15, 8))
    rates, leaning = random.beta(1, 2, 250), random.normal(0, sd, len(codes)) + effect * (codes == 1)
    annotators = random.random((250, len(codes))).argsort(axis=1)[:, :per]
    positive = (random.random(annotators.shape) < np.clip(rates[:, None] + leaning[annotators], 0, 1)).astype(int)
    labels = Labels.of(
        pd.DataFrame({"task": np.repeat(np.arange(250), per), "worker": annotators.ravel(), "label": positive.ravel()})
    )
    return Labelled(labels, {"g": Levels(("w", "b", "l", "a"), codes[labels.annotators], {})})


def test_four_groups_one_test_before_pairs() -> None:
    alarms, hits = 0, 0
    for seed in range(30):
        rows = compare_positive_rates(groups_of(seed), AnnotatorGroupsSettings(), {}).to_pylist()
        alarms += rows[0]["p_paired"] < 0.05
        assert [row["contrast"] for row in rows] == ["largest gap", *["pair"] * 6]
        assert all(row["p_holm"] >= rows[0]["p_holm"] or rows[0]["note"] for row in rows[1:])
    assert alarms <= 5  # 5% of 30, and three standard errors
    for seed in range(4):
        rows = {
            row["measure"]: row
            for row in compare_positive_rates(groups_of(seed, 0.3), AnnotatorGroupsSettings(), {}).to_pylist()
        }
        hits += rows["g"]["verdict"] == "biased" and rows["g: w − b"]["verdict"] == "biased"
        assert rows["g: w − b"]["difference"] < -15 and "b" in (rows["g"]["group"], rows["g"]["against"])
        low, high = rows["g"]["ci_low"], rows["g"]["ci_high"]
        assert low <= min(
            pair["ci_low"]
            for pair in rows.values()
            if pair["group"] == rows["g"]["group"] and pair["against"] == rows["g"]["against"]
        )
        assert (rows["g"]["note"] == NO_PAIR) == (low <= 0 <= high)
        against = [row for row in rows.values() if row["contrast"] == "pair" and "b" in (row["group"], row["against"])]
        alone = all(row["verdict"] == "biased" for row in against)
        assert (rows["g"]["note"] == f"b {UNLIKE_ALL}") == (alone and not low <= 0 <= high)
        assert "fair" not in {row["verdict"] for row in rows.values()}  # differences are not shown to be small
    assert hits == 4
