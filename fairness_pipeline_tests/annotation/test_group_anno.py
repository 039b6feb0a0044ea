"""GroupAnno: the circle's setting recovered, intervals that cover, few false alarms without an effect, a falling objective."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fairness_pipeline.annotation.bias_estimates import (
    ANNOTATOR,
    CONFUSION,
    CONTRAST,
    GROUP,
    SAID,
    SUM,
    exceeds,
    of_model,
    pooled,
)
from fairness_pipeline.annotation.inference import inferred, people, task_table
from fairness_pipeline.annotation.truth_inference import GroupAnno, LFCBinary, MajorityVote
from fairness_pipeline.annotation.truth_inference.clipped_normal import EDGE, posterior
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus, Simulated
from fairness_pipeline.corpora.annotators.annotations import Annotated, read_annotated
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load

CIRCLE = load(AnnotatedCorpus, data_file("corpora/circle.yaml"))
TRUTH = {
    (category, response): np.subtract(*getattr(rates, response))
    for category, rates in (CIRCLE.simulated.categories if CIRCLE.simulated else {}).items()
    for response in ("sensitivity", "specificity")
}


def drawn(**changes: object) -> Annotated:
    """Returns simulated labels of the circle, with changed settings."""
    simulated = Simulated.model_validate({**(CIRCLE.simulated.model_dump() if CIRCLE.simulated else {}), **changes})
    return read_annotated(CIRCLE.model_copy(update={"simulated": simulated}), Path())


def of_draw(annotated: Annotated, draw: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Returns one draw's labels, the annotators' groups, and their true rates."""
    import pyarrow.compute as pc

    labels, annotators = (t.filter(pc.equal(t["draw"], draw)) for t in (annotated.annotations, annotated.annotators))
    rates = (
        annotators.to_pandas().drop_duplicates("annotator_id").set_index("annotator_id")[["sensitivity", "specificity"]]
    )
    return task_table(labels), people(annotators), rates


@pytest.mark.parametrize(
    ("mean", "sd", "right", "wrong"),
    [
        (0.7, 0.1, 30, 12),
        (1.1, 0.1, 40, 0),
        (1.1, 0.2, 9, 3),
        (0.05, 0.3, 0, 2),
        (0.9, 0.05, 0, 100),
        (1.4, 0.05, 0, 100),
        (-0.2, 0.05, 100, 0),
    ],
)
def test_the_posterior_of_a_clipped_probability_is_the_integral(mean: float, sd: float, right: int, wrong: int) -> None:
    def weight(t: float) -> float:
        p = min(max(t, EDGE), 1 - EDGE)
        return float(norm.pdf(t, mean, sd) * p**right * (1 - p) ** wrong)

    def integral(function: object) -> float:
        ends = sorted({mean - 12 * sd, EDGE, 1 - EDGE, mean + 12 * sd})
        return sum(quad(lambda t: function(t) * weight(t), a, b, epsabs=0, limit=200)[0] for a, b in pairwise(ends))  # type: ignore[operator]

    result = posterior(np.array([mean]), sd, np.array([right]), np.array([wrong]))
    evidence = integral(lambda t: 1)
    assert result.evidence[0] == pytest.approx(np.log(evidence), abs=1e-6)
    first_moment = integral(lambda t: t) / evidence
    assert result.mean[0] == pytest.approx(first_moment, abs=1e-6)
    assert result.variance[0] == pytest.approx(integral(lambda t: t * t) / evidence - first_moment**2, abs=1e-6)
    clipped = integral(lambda t: min(max(t, EDGE), 1 - EDGE)) / evidence
    assert result.probability[0] == pytest.approx(clipped, abs=1e-6)
    logs = integral(lambda t: np.log(min(max(t, EDGE), 1 - EDGE))) / evidence
    assert result.log_right[0] == pytest.approx(logs, abs=1e-5)


@pytest.mark.verify
def test_on_the_pages_setting_effects_totals_and_truths_are_recovered() -> None:
    """Ten draws of circle: the contrasts of table 5.4, every annotator's rates, and the accuracies of table 5.5."""
    annotated = drawn(draws=10)
    truth = annotated.items.to_pandas().set_index(["draw", "item_id"])["gold"]
    errors, totals, accuracies = [], [], []
    for draw in range(1, 11):
        data, groups, rates = of_draw(annotated, draw)
        model = GroupAnno(groups)
        gold = truth[draw]
        methods = (model, LFCBinary(), MajorityVote())
        accuracies.append(
            [(method.fit_predict(data) == gold.reindex(method.labels_.index)).mean() for method in methods]
        )
        errors.append(
            [
                abs(contrast.estimate.centre - TRUTH[contrast.category, contrast.response])
                for contrast in model.contrasts()
            ]
        )
        totals.append(
            [
                (getattr(model, f"{name}_") - rates[name].reindex(model.sensitivity_.index)).abs().mean()
                for name in rates
            ]
        )
        assert len(model.loss_history_) > 2 and (np.diff(model.loss_history_) <= 1e-9).all()
        assert model.effects_.groupby("category").sum().abs().to_numpy().max() < 1e-12
    assert np.mean(errors) < 0.05 and (np.mean(totals, axis=0) < 0.05).all()
    ours, lfc, vote = np.mean(accuracies, axis=0)
    assert abs(lfc - 0.911) < 0.04 and abs(vote - 0.728) < 0.04
    assert ours >= lfc - 0.005 and ours > vote + 0.1


NULL = {name: {"sensitivity": [0.5, 0.5], "specificity": [0.55, 0.55]} for name in ("one", "other")}


@pytest.mark.verify
def test_intervals_hold_and_nothing_is_called_where_nothing_is_planted() -> None:
    """Twelve draws of each (`make verify` has 200); three standard errors of the 48 intervals' coverage are 0.09."""
    covered, alarms = [], []
    planted, null = drawn(draws=12, instances=200, seed=5), drawn(draws=12, instances=200, seed=6, categories=NULL)
    for draw in range(1, 13):
        data, groups, _ = of_draw(planted, draw)
        for contrast in GroupAnno(groups).fit(data).contrasts():
            low, high = contrast.estimate.interval(0.95)
            covered.append(low <= TRUTH[contrast.category, contrast.response] <= high)
        data, groups, _ = of_draw(null, draw)
        alarms += [contrast.estimate.p_zero() < 0.05 for contrast in GroupAnno(groups).fit(data).contrasts()]
    assert np.mean(covered) > 0.85
    assert np.mean(alarms) < 0.15


def test_the_individual_spread_is_estimated() -> None:
    for sd in (0.05, 0.2):
        annotated = drawn(draws=6, individual_sd=sd, categories=NULL, labels=8)
        spreads = [
            list(GroupAnno(groups).fit(data).individual_sd_.values())
            for data, groups, _ in (of_draw(annotated, draw) for draw in range(1, 7))
        ]
        assert np.mean(spreads) == pytest.approx(sd, rel=0.3)


def test_annotators_without_a_group_have_the_mean_effect_and_others_must_be_known() -> None:
    data, groups, _ = of_draw(drawn(draws=1), 1)
    unknown = groups.copy()
    unknown.iloc[0] = None
    assert GroupAnno(unknown).fit(data).sensitivity_.between(0, 1).all()
    assert GroupAnno(groups[[]]).fit(data).contrasts() == []
    text = unknown.astype("string")  # with pd.NA for unknown groups
    assert GroupAnno(text).fit(data).sensitivity_.equals(GroupAnno(unknown).fit(data).sensitivity_)
    with pytest.raises(FairnessError, match="call fit first"):
        GroupAnno(groups).contrasts()
    with pytest.raises(FairnessError, match="'r0' has two rows in the annotators' table"):
        GroupAnno(pd.concat([groups, groups.loc[["r0"]]])).fit(data)
    labels_of_one_group = data[data["worker"].isin(groups.index[groups["category 0"] == "group 0"])]
    with pytest.raises(FairnessError, match="category 'category 0': expected two groups .*found group 0; leave"):
        GroupAnno(groups).fit(labels_of_one_group)
    with pytest.raises(FairnessError, match=r"2 annotators are not in the annotators' table, such as 'r\d+'"):
        GroupAnno(groups.drop(["r3", "r4"])).fit(data)


def test_a_classifier_of_the_items_is_its_prior() -> None:
    """A classifier that knows the truth makes the inferred truth almost certain, in GroupAnno and in LFC."""
    annotated = drawn(draws=1)
    data, groups, _ = of_draw(annotated, 1)
    gold = annotated.items.to_pandas().set_index("item_id")["gold"].reindex(data["task"].unique()).to_numpy()
    for method in (GroupAnno, LFCBinary):
        calls = []

        def classifier(probabilities: np.ndarray, calls: list[int] = calls) -> np.ndarray:
            calls.append(len(probabilities))
            return np.where(gold == 1, 0.99, 0.01)

        arguments = (groups,) if method is GroupAnno else ()
        model = method(*arguments, classifier=classifier).fit(data)  # type: ignore[arg-type]
        assert (model.labels_.to_numpy() == gold).mean() > 0.98
        assert set(calls) == {800} and model.prior_.isin([0.99, 0.01]).all()


def test_estimates_of_groups_are_beside_what_was_simulated() -> None:
    annotated = drawn(draws=2)
    table = of_model(
        "group_anno",
        {},
        annotated.annotations,
        annotated.annotators,
        CIRCLE,
        {("category 0", "sensitivity"): 0.257},
        None,
    )
    rows = table.to_pylist()
    contrasts = [row for row in rows if row["kind"] == CONTRAST]
    assert len(contrasts) == 8 and {row["draw"] for row in contrasts} == {1, 2}
    assert all(row["truth"] == pytest.approx(TRUTH[row["category"], row["response"]]) for row in contrasts)
    assert [row["published"] for row in contrasts if row["draw"] == 1].count(0.257) == 1
    assert all(row["p"] <= row["p_holm"] for row in contrasts)
    assert all(0 <= row["value"] <= 1 for row in rows if row["kind"] in (GROUP, ANNOTATOR, CONFUSION, SAID))
    assert exceeds(rows) and any(row["kind"] == SUM and row["value"] > 1 for row in rows)
    sums = {(r["category"], r["name"], r["response"]): r["value"] for r in rows if r["kind"] == SUM and r["draw"] == 1}
    contrast = next(
        r for r in contrasts if r["draw"] == 1 and r["category"] == "category 1" and r["response"] == "specificity"
    )
    assert sums["category 1", "group 0", "specificity"] - sums["category 1", "group 1", "specificity"] == pytest.approx(
        contrast["value"]
    )
    truths = inferred("dawid_skene", {}, annotated.annotations, annotated.annotators, None)
    dawid_skene = pooled("dawid_skene", truths, annotated.annotations, annotated.annotators, CIRCLE).to_pandas()
    group_anno = table.to_pandas()
    for response in ("sensitivity", "specificity"):
        values = [
            t[(t.kind == "annotator") & (t.response == response) & (t.draw == 1)].set_index("name")["value"]
            for t in (dawid_skene, group_anno)
        ]
        assert values[0].corr(values[1]) > 0.9


def test_a_small_group_that_varies_more_has_a_wider_interval() -> None:
    """Welch's case: five people of many kinds against thirty-five who are alike (make verify counts false alarms)."""
    draw = np.random.default_rng(3)
    for spreads, wider in (((0.2, 0.05), True), ((0.05, 0.2), False)):
        group = np.repeat(["a", "b"], [5, 35])
        sd = np.where(group == "a", *spreads)
        rates = np.clip(0.75 + draw.normal(size=(2, 40)) * sd, 0.02, 0.98)
        truth = draw.integers(0, 2, 800)
        workers = draw.random((800, 40)).argsort(axis=1)[:, :6]
        positive = np.where(truth[:, None] == 1, rates[0][workers], 1 - rates[1][workers])
        label = (draw.random(workers.shape) < positive).astype(int)
        data = pd.DataFrame({"task": np.repeat(np.arange(800), 6), "worker": workers.ravel(), "label": label.ravel()})
        model = GroupAnno(pd.DataFrame({"g": group})).fit(data)
        contrast = model.design_.effect("g", 0) - model.design_.effect("g", 1)
        scale, freedom = model._heterogeneity(0, "g", contrast)
        assert (scale > 1.3) is wider and (scale == 1) is not wider
        (sensitivity,) = (c for c in model.contrasts() if c.response == "sensitivity")
        assert sensitivity.estimate.freedom == freedom < 8
        assert model.converged_
