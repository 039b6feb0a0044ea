"""GroupAnno: the page's setting, intervals that hold, nothing called where nothing is planted, an objective that falls."""

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
    (category, response): np.subtract(*getattr(own, response))
    for category, own in (CIRCLE.simulated.categories if CIRCLE.simulated else {}).items()
    for response in ("sensitivity", "specificity")
}


def drawn(**changes: object) -> Annotated:
    """Simulated labels."""
    simulated = Simulated.model_validate({**(CIRCLE.simulated.model_dump() if CIRCLE.simulated else {}), **changes})
    return read_annotated(CIRCLE.model_copy(update={"simulated": simulated}), Path())


def of_draw(found: Annotated, draw: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Labels, the annotators' groups, and their true rates."""
    import pyarrow.compute as pc

    labels, who = (t.filter(pc.equal(t["draw"], draw)) for t in (found.annotations, found.annotators))
    rates = who.to_pandas().drop_duplicates("annotator_id").set_index("annotator_id")[["sensitivity", "specificity"]]
    return task_table(labels), people(who), rates


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

    def integral(of: object) -> float:
        ends = sorted({mean - 12 * sd, EDGE, 1 - EDGE, mean + 12 * sd})
        return sum(quad(lambda t: of(t) * weight(t), a, b, epsabs=0, limit=200)[0] for a, b in pairwise(ends))  # type: ignore[operator]

    found = posterior(np.array([mean]), sd, np.array([right]), np.array([wrong]))
    whole = integral(lambda t: 1)
    assert found.evidence[0] == pytest.approx(np.log(whole), abs=1e-6)
    first = integral(lambda t: t) / whole
    assert found.mean[0] == pytest.approx(first, abs=1e-6)
    assert found.variance[0] == pytest.approx(integral(lambda t: t * t) / whole - first**2, abs=1e-6)
    clipped = integral(lambda t: min(max(t, EDGE), 1 - EDGE)) / whole
    assert found.probability[0] == pytest.approx(clipped, abs=1e-6)
    logs = integral(lambda t: np.log(min(max(t, EDGE), 1 - EDGE))) / whole
    assert found.log_right[0] == pytest.approx(logs, abs=1e-5)


@pytest.mark.kills
def test_on_the_pages_setting_effects_totals_and_truths_are_recovered() -> None:
    """Ten draws of circle: table 5.4's contrasts, every annotator's rates, and accuracies as table 5.5 has them."""
    found = drawn(draws=10)
    truth = found.items.to_pandas().set_index(["draw", "item_id"])["gold"]
    errors, totals, accuracies = [], [], []
    for draw in range(1, 11):
        data, who, rates = of_draw(found, draw)
        model = GroupAnno(who)
        gold = truth[draw]
        methods = (model, LFCBinary(), MajorityVote())
        accuracies.append([(own.fit_predict(data) == gold.reindex(own.labels_.index)).mean() for own in methods])
        errors.append([abs(own.estimate.centre - TRUTH[own.category, own.response]) for own in model.contrasts()])
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


@pytest.mark.kills
def test_intervals_hold_and_nothing_is_called_where_nothing_is_planted() -> None:
    """make verify has 200 draws of each; here 12: three standard errors are 0.09 of the 48 intervals together."""
    held, called = [], []
    planted, null = drawn(draws=12, instances=200, seed=5), drawn(draws=12, instances=200, seed=6, categories=NULL)
    for draw in range(1, 13):
        data, who, _ = of_draw(planted, draw)
        for own in GroupAnno(who).fit(data).contrasts():
            low, high = own.estimate.interval(0.95)
            held.append(low <= TRUTH[own.category, own.response] <= high)
        data, who, _ = of_draw(null, draw)
        called += [own.estimate.p_zero() < 0.05 for own in GroupAnno(who).fit(data).contrasts()]
    assert np.mean(held) > 0.85
    assert np.mean(called) < 0.15


def test_the_individual_spread_is_estimated() -> None:
    for sd in (0.05, 0.2):
        found = drawn(draws=6, individual_sd=sd, categories=NULL, labels=8)
        spreads = [
            list(GroupAnno(who).fit(data).individual_sd_.values())
            for data, who, _ in (of_draw(found, d) for d in range(1, 7))
        ]
        assert np.mean(spreads) == pytest.approx(sd, rel=0.3)


def test_who_is_in_no_group_has_the_mean_effect_and_others_must_be_known() -> None:
    data, who, _ = of_draw(drawn(draws=1), 1)
    unknown = who.copy()
    unknown.iloc[0] = None
    assert GroupAnno(unknown).fit(data).sensitivity_.between(0, 1).all()
    assert GroupAnno(who[[]]).fit(data).contrasts() == []
    text = unknown.astype("string")  # with pd.NA where nothing is known
    assert GroupAnno(text).fit(data).sensitivity_.equals(GroupAnno(unknown).fit(data).sensitivity_)
    with pytest.raises(FairnessError, match="call fit first"):
        GroupAnno(who).contrasts()
    with pytest.raises(FairnessError, match="'r0' has two rows in the annotators' table"):
        GroupAnno(pd.concat([who, who.loc[["r0"]]])).fit(data)
    here = data[data["worker"].isin(who.index[who["category 0"] == "group 0"])]
    with pytest.raises(FairnessError, match="category 'category 0': expected two groups .*found group 0; leave"):
        GroupAnno(who).fit(here)
    with pytest.raises(FairnessError, match=r"2 annotators are not in the annotators' table, such as 'r\d+'"):
        GroupAnno(who.drop(["r3", "r4"])).fit(data)


def test_a_classifier_of_the_items_is_its_prior() -> None:
    """One that knows the truth makes the labels' truth almost certain, in GroupAnno and in LFC alike."""
    found = drawn(draws=1)
    data, who, _ = of_draw(found, 1)
    gold = found.items.to_pandas().set_index("item_id")["gold"].reindex(data["task"].unique()).to_numpy()
    for method in (GroupAnno, LFCBinary):
        calls = []

        def classifier(sure: np.ndarray, calls: list[int] = calls) -> np.ndarray:
            calls.append(len(sure))
            return np.where(gold == 1, 0.99, 0.01)

        arguments = (who,) if method is GroupAnno else ()
        model = method(*arguments, classifier=classifier).fit(data)  # type: ignore[arg-type]
        assert (model.labels_.to_numpy() == gold).mean() > 0.98
        assert set(calls) == {800} and model.prior_.isin([0.99, 0.01]).all()


def test_estimates_of_groups_are_beside_what_was_simulated() -> None:
    found = drawn(draws=2)
    table = of_model(
        "group_anno", {}, found.annotations, found.annotators, CIRCLE, {("category 0", "sensitivity"): 0.257}, None
    )
    rows = table.to_pylist()
    contrasts = [row for row in rows if row["kind"] == CONTRAST]
    assert len(contrasts) == 8 and {row["draw"] for row in contrasts} == {1, 2}
    assert all(row["truth"] == pytest.approx(TRUTH[row["category"], row["response"]]) for row in contrasts)
    assert [row["published"] for row in contrasts if row["draw"] == 1].count(0.257) == 1
    assert all(row["p"] <= row["p_holm"] for row in contrasts)
    assert all(0 <= row["value"] <= 1 for row in rows if row["kind"] in (GROUP, ANNOTATOR, CONFUSION, SAID))
    assert exceeds(rows) and any(row["kind"] == SUM and row["value"] > 1 for row in rows)
    one = {(r["category"], r["name"], r["response"]): r["value"] for r in rows if r["kind"] == SUM and r["draw"] == 1}
    own = next(
        r for r in contrasts if r["draw"] == 1 and r["category"] == "category 1" and r["response"] == "specificity"
    )
    assert one["category 1", "group 0", "specificity"] - one["category 1", "group 1", "specificity"] == pytest.approx(
        own["value"]
    )
    truths = inferred("dawid_skene", {}, found.annotations, found.annotators, None)
    against = pooled("dawid_skene", truths, found.annotations, found.annotators, CIRCLE).to_pandas()
    mine = table.to_pandas()
    for response in ("sensitivity", "specificity"):
        both = [
            t[(t.kind == "annotator") & (t.response == response) & (t.draw == 1)].set_index("name")["value"]
            for t in (against, mine)
        ]
        assert both[0].corr(both[1]) > 0.9


def test_a_small_group_that_varies_more_is_not_taken_for_as_sure_as_the_others() -> None:
    """Welch's case: five people of many kinds against thirty-five who are alike (make verify counts false alarms)."""
    draw = np.random.default_rng(3)
    for spreads, wider in (((0.2, 0.05), True), ((0.05, 0.2), False)):
        group = np.repeat(["a", "b"], [5, 35])
        sd = np.where(group == "a", *spreads)
        rates = np.clip(0.75 + draw.normal(size=(2, 40)) * sd, 0.02, 0.98)
        truth = draw.integers(0, 2, 800)
        who = draw.random((800, 40)).argsort(axis=1)[:, :6]
        positive = np.where(truth[:, None] == 1, rates[0][who], 1 - rates[1][who])
        label = (draw.random(who.shape) < positive).astype(int)
        data = pd.DataFrame({"task": np.repeat(np.arange(800), 6), "worker": who.ravel(), "label": label.ravel()})
        model = GroupAnno(pd.DataFrame({"g": group})).fit(data)
        contrast = model.design_.effect("g", 0) - model.design_.effect("g", 1)
        scale, freedom = model._heterogeneity(0, "g", contrast)
        assert (scale > 1.3) is wider and (scale == 1) is not wider
        (own,) = (own for own in model.contrasts() if own.response == "sensitivity")
        assert own.estimate.freedom == freedom < 8
        assert model.converged_
