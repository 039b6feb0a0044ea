"""Truth inference: agreement with crowd-kit, cases by hand, planted biases."""

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference import (
    CATD,
    GLAD,
    KOS,
    PMCRH,
    VIMF,
    DawidSkene,
    GroupAnno,
    LFCBinary,
    MajorityVote,
    Minimax,
    ZenCrowd,
    registry,
)
from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference
from fairness_pipeline.foundation.errors import FairnessError

METHODS = [entry.kind for entry in registry.METHODS.values() if not entry.of_groups]


def simulated(
    seed: int, items: int = 400, workers: int = 30, per: int = 5
) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Labels, the truth of each task, and each worker's sensitivity and specificity."""
    draw = np.random.default_rng(seed)
    truth = pd.Series(draw.integers(0, 2, items), index=[f"t{i}" for i in range(items)])
    rates = draw.uniform(0.55, 0.95, (workers, 2))
    rows = [
        (f"t{i}", f"w{r}", int(draw.random() < (rates[r, 0] if truth.iloc[i] else 1 - rates[r, 1])))
        for i in range(items)
        for r in draw.choice(workers, per, replace=False)
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), truth, rates


@pytest.mark.parametrize("method", METHODS, ids=lambda kind: kind.__name__)
def test_every_method_beats_a_coin_and_keeps_its_face(method: type[TruthInference]) -> None:
    data, truth, _ = simulated(1)
    model = method()
    labels = model.fit_predict(data)
    assert labels is model.labels_ and labels.index.name == "task" and set(labels) <= {0, 1}
    assert model.probas_.between(0, 1).all() and len(labels) == 400
    assert (labels == truth[labels.index]).mean() > 0.8
    again = method().fit_predict(data.sample(frac=1, random_state=3))
    if method is not KOS:  # KOS draws its first messages in the labels' order
        assert (again[labels.index] == labels).mean() > 0.995


@pytest.mark.filterwarnings("ignore")  # crowd-kit calls a pandas function that is about to change
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_labels_are_crowd_kits(seed: int) -> None:
    from crowdkit.aggregation import DawidSkene as TheirDawidSkene
    from crowdkit.aggregation import MajorityVote as TheirMajorityVote

    data, _, _ = simulated(seed, items=200)
    vote, theirs = MajorityVote(), TheirMajorityVote()
    labels = vote.fit_predict(data)
    tied = vote.probas_ == 0.5
    assert (labels == theirs.fit_predict(data)[labels.index])[~tied].all()
    # crowd-kit stops by a bound that falls meanwhile; here both take the same number of iterations.
    ours = DawidSkene(n_iter=60, tol=-np.inf).fit(data)
    expected = TheirDawidSkene(n_iter=60, tol=-np.inf).fit(data).probas_[1]
    assert ours.probas_.to_numpy() == pytest.approx(expected[ours.probas_.index].to_numpy(), abs=1e-6)


def test_teams_that_share_no_items_are_inferred_separately() -> None:
    """Messages grow faster in the larger team; the smaller one's labels are worth no less."""
    first, first_truth, _ = simulated(5, items=60, workers=12, per=8)
    second, second_truth, _ = simulated(6, items=60, workers=12, per=3)
    data = pd.concat([first, second.assign(task="u" + second["task"], worker="u" + second["worker"])])
    together = KOS().fit_predict(data)
    alone = KOS().fit_predict(second.reset_index(drop=True))
    assert (together["u" + second_truth.index].to_numpy() == alone[second_truth.index].to_numpy()).all()
    assert (alone[second_truth.index] == second_truth).mean() > 0.65 and (
        together[first_truth.index] == first_truth
    ).mean() > 0.8
    lone = pd.DataFrame(
        [(i, w, i % 2) for i in range(6) for w in "pqr"] + [(99, "s", 0)], columns=["task", "worker", "label"]
    )
    assert KOS().fit_predict(lone)[99] == 0


@pytest.mark.parametrize("method", METHODS, ids=lambda kind: kind.__name__)
def test_what_everybody_calls_negative_is_negative(method: type[TruthInference]) -> None:
    """One label per item, by people who share no item: nothing but the labels is known."""
    rows = [(item, f"w{item % 7}", int(item % 3 == 0)) for item in range(84)]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    labels = method().fit_predict(data)
    assert (labels[data["task"][data["label"] == 0]] == 0).mean() > 0.95


def test_odd_but_legal_labels() -> None:
    one_worker = pd.DataFrame([(i, "p", int(i > 2)) for i in range(5)], columns=["task", "worker", "label"])
    assert PMCRH().fit_predict(one_worker).tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(FairnessError, match="1 rows have no worker; leave them out"):
        MajorityVote().fit(one_worker.assign(worker=["p", "p", None, "p", "p"]))
    never_tested = pd.DataFrame(
        [(0, w, 1) for w in "abc"] + [(1, w, 0) for w in "bcd"], columns=["task", "worker", "label"]
    )
    model = DawidSkene().fit(never_tested)
    assert np.isnan(model.specificity_["a"]) and np.isnan(model.sensitivity_["d"])


@pytest.mark.filterwarnings("ignore")
def test_kos_labels_are_crowd_kits_where_the_assignment_is_regular() -> None:
    """Both draw different first messages, whose effect fades in a regular assignment."""
    from crowdkit.aggregation import KOS as TheirKOS

    data, truth, _ = simulated(2, items=400, workers=40, per=10)
    ours, theirs = KOS(n_iter=20).fit_predict(data), TheirKOS(n_iter=20).fit_predict(data)
    assert (ours == theirs[ours.index]).mean() > 0.99
    assert (ours == truth[ours.index]).mean() > 0.85


@pytest.mark.filterwarnings("ignore")
@pytest.mark.verify
def test_glads_probabilities_are_crowd_kits() -> None:
    from crowdkit.aggregation import GLAD as TheirGLAD

    data, _, _ = simulated(1, items=60, workers=12)
    ours = GLAD(n_iter=60, tol=-np.inf).fit(data)
    theirs = TheirGLAD(n_iter=60, tol=-np.inf, m_step_max_iter=200, silent=True).fit(data)
    assert ours.probas_.to_numpy() == pytest.approx(theirs.probas_.loc[ours.probas_.index, 1].to_numpy(), abs=0.01)
    assert ours.abilities_.to_numpy() == pytest.approx(theirs.alphas_[ours.abilities_.index].to_numpy(), abs=0.02)
    assert ours.eases_.to_numpy() == pytest.approx(theirs.betas_[ours.eases_.index].to_numpy(), abs=0.02)


def test_dawid_skene_by_hand() -> None:
    """One M-step from the votes: two workers agree on both tasks, a third contradicts them."""
    rows = [("x", "a", 1), ("x", "b", 1), ("x", "c", 0), ("y", "a", 0), ("y", "b", 0), ("y", "c", 1)]
    labels = Labels.of(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    confusion, prior = DawidSkene()._m_step(labels, labels.shares())
    for label in (0, 1):
        assert confusion[:, label, label] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert confusion.sum(axis=2) == pytest.approx(np.ones((3, 2))) and prior.tolist() == [0.5, 0.5]


def test_sensitivities_are_recovered() -> None:
    data, _, rates = simulated(4, items=3000, workers=20)
    for method in (DawidSkene(), LFCBinary()):
        method.fit(data)
        order = [f"w{r}" for r in range(20)]
        for estimated, true in ((method.sensitivity_, rates[:, 0]), (method.specificity_, rates[:, 1])):
            assert np.abs(estimated[order].to_numpy() - true).mean() < 0.03


def test_an_adversarys_labels_are_reversed() -> None:
    """Two honest workers and one who always lies; the vote is right, and the liar's label says the opposite."""
    truth = np.arange(40) % 2
    rows = [(i, w, int(truth[i] if w != "liar" else 1 - truth[i])) for i in range(40) for w in ("a", "b", "liar")]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    zen = ZenCrowd().fit(data)
    assert zen.skills_["liar"] < 0.1 < 0.9 < zen.skills_["a"]


@pytest.mark.parametrize("method", [DawidSkene, LFCBinary, GLAD, Minimax], ids=lambda kind: kind.__name__)
def test_a_minimised_loss_never_grows(method: type[TruthInference]) -> None:
    data, _, _ = simulated(5)
    losses = np.array(method().fit(data).loss_history_)
    assert len(losses) > 2 and (np.diff(losses) <= 1e-9).all()


@pytest.mark.parametrize("method", [KOS, VIMF, CATD, PMCRH, GLAD, Minimax], ids=lambda kind: kind.__name__)
def test_weights_follow_the_workers_worth(method: type[TruthInference]) -> None:
    """Three good workers outvote four who toss coins."""
    draw = np.random.default_rng(6)
    truth = draw.integers(0, 2, 300)
    rows = [
        (i, w, int(truth[i]) if w < 3 and draw.random() < 0.95 else int(draw.integers(2)))
        for i in range(300)
        for w in range(7)
    ]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    accuracy = (method().fit_predict(data).sort_index().to_numpy() == truth).mean()
    assert (
        accuracy > (MajorityVote().fit_predict(data).sort_index().to_numpy() == truth).mean() + 0.02 and accuracy > 0.95
    )


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "expected labels, found none"),
        ([("x", "a", 2)], r"1 labels are neither 0 nor 1, such as 2 of 'a' for 'x'"),
        ([("x", "a", 1), ("x", "a", 0)], "'a' labelled 'x' more than once"),
    ],
)
def test_malformed_labels_are_refused(rows: list, reason: str) -> None:
    with pytest.raises(FairnessError, match=reason):
        MajorityVote().fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    with pytest.raises(FairnessError, match="expected columns task, worker, label, found a"):
        MajorityVote().fit(pd.DataFrame({"a": [1]}))


def grouped(seed: int, items: int = 1500, workers: int = 60) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    """Labels of workers whose sensitivity and specificity are sums of two categories' effects and their own."""
    draw = np.random.default_rng(seed)
    groups = pd.DataFrame({"gender": draw.choice(["f", "m"], workers), "age": draw.choice(["old", "young"], workers)})
    gender, age = np.where(groups["gender"] == "f", 1, -1), np.where(groups["age"] == "old", 1, -1)
    alpha = np.clip(0.7 + 0.1 * gender + 0.0 * age + draw.normal(0, 0.05, workers), 0.02, 0.98)
    beta = np.clip(0.7 - 0.05 * gender + 0.12 * age + draw.normal(0, 0.05, workers), 0.02, 0.98)
    truth = pd.Series(draw.integers(0, 2, items))
    rows = [
        (i, r, int(draw.random() < (alpha[r] if truth[i] else 1 - beta[r])))
        for i in range(items)
        for r in draw.choice(workers, 6, replace=False)
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), truth, groups


@pytest.mark.verify
def test_group_effects_are_recovered_and_the_objective_never_falls() -> None:
    errors, accuracies = [], []
    for seed in range(5):
        data, truth, groups = grouped(seed)
        model = GroupAnno(groups, individual_sd=0.05).fit(data)
        effects = model.effects_
        planted = {("gender", "f"): (0.1, -0.05), ("age", "old"): (0.0, 0.12)}
        errors += [effects.loc[key] - np.array(effect) for key, effect in planted.items()]
        assert effects.groupby("category").sum().abs().to_numpy().max() < 1e-12
        assert len(model.loss_history_) > 2 and (np.diff(model.loss_history_) <= 1e-9).all()
        methods = (GroupAnno(groups), LFCBinary(), MajorityVote())
        accuracies.append([(m.fit_predict(data).sort_index() == truth).mean() for m in methods])
    assert np.abs(errors).mean() < 0.02
    ours, lfc, vote = np.mean(accuracies, axis=0)
    assert ours >= lfc - 0.005 and ours > vote


def test_drawn_ties_fall_either_way() -> None:
    data = pd.DataFrame([(i, w, w) for i in range(200) for w in (0, 1)], columns=["task", "worker", "label"])
    assert MajorityVote().fit_predict(data).eq(1).all()
    drawn = MajorityVote(ties="drawn", seed=3).fit(data)
    assert 0.4 < drawn.labels_.mean() < 0.6 and np.abs(drawn.probas_ - 0.5).max() < 1e-4
