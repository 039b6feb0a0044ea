"""Verifies study 5: planted group effects are recovered with intervals that hold, and without any none is called."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from scipy.stats import binomtest, ttest_rel

from fairness_pipeline.annotation.inference import people, task_table
from fairness_pipeline.annotation.truth_inference import GroupAnno, GroupBeta, LFCBinary, MajorityVote
from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_design import levels_of
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.corpora.annotators.annotations import read_annotated
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.yaml_files import load
from fairness_pipeline.measures.annotators.annotator_groups import Labelled, rates_of
from fairness_pipeline.statistics.paired import paired_t
from fairness_pipeline_tests.annotation.beta_raters import drawn
from fairness_pipeline_tests.verify.shared import Claim, Part

STUDY = "annotator_bias"
SMALL = {"corpora": ["circle"], "methods": {"mv": {}, "group_anno": {}}, "learn": ["circle"]}
"""The changes that a killed run makes to the sample's section."""
SHAPES = ("circle", "moon")
DRAWS, SIMULATIONS, UNEQUAL = 20, 200, 100
BETA_DRAWS, LEVEL_DRAWS = 100, 200
CELLS: dict[str, dict[str, Any]] = {
    "specificity 0.97 / 0.94, 200 raters": {"items": 2000, "raters": 200, "per": 5, "specificity": (0.97, 0.94), "spread": 100.0},
    "specificity 0.999 / 0.985, 60 raters": {"items": 1000, "raters": 60, "per": 5, "specificity": (0.999, 0.985), "spread": 300.0},
    "specificity 0.995 in both, 60 raters": {"items": 1000, "raters": 60, "per": 5, "specificity": (0.995, 0.995)},
    "1% positive": {"items": 3000, "raters": 60, "per": 5, "sensitivity": (0.8, 0.7), "specificity": (0.95, 0.92), "prevalence": 0.01},
    "5% positive": {"items": 2000, "raters": 60, "per": 5, "sensitivity": (0.8, 0.7), "specificity": (0.95, 0.92), "prevalence": 0.05},
    "50% positive": {"items": 1000, "raters": 60, "per": 5, "sensitivity": (0.8, 0.7), "specificity": (0.95, 0.92), "prevalence": 0.5},
    "20 raters, 3 labels an item": {"items": 800, "raters": 20, "per": 3, "sensitivity": (0.8, 0.7), "specificity": (0.93, 0.88)},
    "20 raters, 10 labels an item": {"items": 800, "raters": 20, "per": 10, "sensitivity": (0.8, 0.7), "specificity": (0.93, 0.88)},
    "200 raters, 3 labels an item": {"items": 2000, "raters": 200, "per": 3, "sensitivity": (0.8, 0.7), "specificity": (0.93, 0.88)},
}  # fmt: skip
"""Two groups of annotators with different rates: how often GroupBeta's intervals hold."""
NULLS: dict[str, dict[str, Any]] = {
    "three groups of 70, 20, 10%": {"shares": (0.7, 0.2, 0.1)},
    "five groups, the two smallest of five": {"shares": (0.4, 0.25, 0.18, 0.085, 0.085)},
    "three groups, the smallest labels six times as much": {"shares": (0.5, 0.3, 0.2), "work": (1, 1, 6)},
    "three groups, 200 raters, three labels an item": {"shares": (0.7, 0.2, 0.1), "raters": 200, "items": 2000, "per": 3},
    "three groups, six annotators vary five times as much": {"shares": (0.7, 0.2, 0.1), "spread": (40.0, 40.0, 8.0)},
}  # fmt: skip
"""Groups of one mean: how often their test calls a difference. The last is known to call more."""
NULL = {"category 0": {"sensitivity": [0.5, 0.5], "specificity": [0.55, 0.55]}, "category 1": {"sensitivity": [0.5, 0.5], "specificity": [0.55, 0.55]}}  # fmt: skip
"""Annotators as good as the page's on average, whatever their group."""
PUBLISHED = {"circle": (0.728, 0.911), "moon": (0.748, 0.916)}
"""Accuracy of MV and LFC-binary (Liu 2022, table 5.5)."""


def parts() -> dict[str, Part]:
    """The parts by name."""
    return {
        **{f"recovery-{shape}": partial(recovery, shape) for shape in SHAPES},
        "coverage-planted": partial(coverage, {}),
        "coverage-null": partial(coverage, {"categories": NULL}),
        "unequal": unequal,
        **{f"beta-{number}": partial(beta_coverage, cell) for number, cell in enumerate(CELLS.values())},
        **{f"beta-null-{number}": partial(beta_level, cell) for number, cell in enumerate(NULLS.values())},
    }


def recovery(shape: str) -> dict[str, Any]:
    """Twenty draws: contrasts, every annotator's total, accuracies; whether the objective ever rose."""
    corpus, draws = _drawn(shape, DRAWS)
    truths = _truths(corpus)
    results: dict[str, list[Any]] = {name: [] for name in ("contrasts", "totals", "accuracies", "rose")}
    for data, annotators, rates, gold in draws:
        model = GroupAnno(annotators)
        accuracy = [
            float((method.fit_predict(data) == gold.reindex(method.labels_.index)).mean())
            for method in (model, LFCBinary(), MajorityVote())
        ]
        results["accuracies"].append(accuracy)
        results["contrasts"].append(
            [
                float(contrast.estimate.centre - truths[contrast.category, contrast.response])
                for contrast in model.contrasts()
            ]
        )
        results["totals"].append(
            [
                float((getattr(model, f"{name}_") - rates[name].reindex(model.sensitivity_.index)).abs().mean())
                for name in rates
            ]
        )
        results["rose"].append(float(np.diff(model.loss_history_).max(initial=-1.0)))
    return results


def coverage(changes: dict[str, Any]) -> dict[str, Any]:
    """How often the contrasts' 95% intervals hold the truth, and how often positive rates are called different."""
    corpus, draws = _drawn("circle", SIMULATIONS, seed=77, **changes)
    truths = _truths(corpus)
    held: dict[str, int] = {" ".join(key): 0 for key in truths}
    called, rates_called, items_called = 0, 0, 0
    for data, annotators, _, _ in draws:
        p_values = []
        for contrast in GroupAnno(annotators).fit(data).contrasts():
            key, (low, high) = (contrast.category, contrast.response), contrast.estimate.interval(0.95)
            held[" ".join(key)] += bool(low <= truths[key] <= high)
            p_values.append(contrast.estimate.p_zero())
        called += sum(p < 0.05 for p in p_values)
        labelled = _labelled(data, annotators)
        for category in annotators.columns:
            rates = rates_of(labelled, str(category))
            assert rates is not None
            rates_called += bool(rates.estimate.p_zero() < 0.05)
            items_called += bool(paired_t(rates.a, rates.b).p < 0.05)
    return {"held": held, "called": called, "rates_called": rates_called, "items_called": items_called}


def unequal() -> dict[str, Any]:
    """False alarms where a group of five varies more, or less, than the other thirty-five; and where all are alike."""
    counts = {}
    for name, spreads in (("more", (0.2, 0.05)), ("less", (0.05, 0.2)), ("alike", (0.1, 0.1))):
        called = 0
        for seed in range(UNEQUAL):
            draw = np.random.default_rng([seed, 5])
            group = np.repeat(["a", "b"], [5, 35])
            rates = np.clip(0.75 + draw.normal(size=(2, 40)) * np.where(group == "a", *spreads), 0.02, 0.98)
            truth, raters = draw.integers(0, 2, 800), draw.random((800, 40)).argsort(axis=1)[:, :5]
            positive = np.where(truth[:, None] == 1, rates[0][raters], 1 - rates[1][raters])
            label = (draw.random(raters.shape) < positive).astype(int)
            data = pd.DataFrame(
                {"task": np.repeat(np.arange(800), 5), "worker": raters.ravel(), "label": label.ravel()}
            )
            contrasts = GroupAnno(pd.DataFrame({"g": group})).fit(data).contrasts()
            called += sum(bool(contrast.estimate.p_zero() < 0.05) for contrast in contrasts)
        counts[name] = called
    return counts


def beta_coverage(cell: dict[str, Any]) -> dict[str, Any]:
    """Whether GroupBeta's interval holds the planted difference, and its estimate, for each draw and response."""
    results: dict[str, list[Any]] = {"held": [], "estimates": [], "called": []}
    for seed in range(BETA_DRAWS):
        data, annotators, _ = drawn(seed, **cell)
        for contrast in GroupBeta(annotators).fit(data).contrasts():
            first, second = cell.get(contrast.response, (0.75, 0.75))
            low, high = contrast.estimate.interval(0.95)
            results["held"].append(bool(low <= first - second <= high))
            results["estimates"].append(float(contrast.estimate.centre))
            results["called"].append(bool(contrast.estimate.p_zero() < 0.05))
    return results


def beta_level(cell: dict[str, Any]) -> dict[str, Any]:
    """How often the omnibus test of each response calls groups of one mean different."""
    cell = {"items": 800, "raters": 60, "per": 5, **cell}
    groups = len(cell["shares"])
    called = 0
    for seed in range(LEVEL_DRAWS):
        data, annotators, _ = drawn(seed, sensitivity=(0.78,) * groups, specificity=(0.9,) * groups, **cell)
        called += sum(p < 0.05 for p in GroupBeta(annotators).fit(data).omnibus().values())
    return {"called": called}


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """The study's claims."""
    claims: list[Claim] = []
    for shape in SHAPES:
        results = outcomes[f"recovery-{shape}"]
        ours, lfc, vote = np.array(results["accuracies"]).T
        off = np.abs(results["contrasts"])
        totals = np.mean(results["totals"], axis=0)
        p = float(ttest_rel(ours, vote).pvalue)
        published = PUBLISHED[shape]
        claims += [
            (f"{shape}: MV and LFC-binary are within 0.04 of the published accuracy", bool(abs(vote.mean() - published[0]) < 0.04 and abs(lfc.mean() - published[1]) < 0.04), f"MV {vote.mean():.3f} ({published[0]}), LFC-binary {lfc.mean():.3f} ({published[1]})"),
            (f"{shape}: GroupAnno's accuracy is at most 0.005 below LFC-binary's and above MV's (paired t)", bool(ours.mean() >= lfc.mean() - 0.005 and ours.mean() > vote.mean() and p < 0.05), f"{ours.mean():.3f}; minus LFC-binary {(ours - lfc).mean():+.3f}, minus MV {(ours - vote).mean():+.3f} (p {p:.2g})"),
            (f"{shape}: group contrasts are within 0.05 of the truth (mean absolute error)", bool(off.mean() < 0.05), f"{off.mean():.3f}; each {', '.join(f'{v:.3f}' for v in off.mean(axis=0))}"),
            (f"{shape}: every annotator's sensitivity and specificity are within 0.05 (mean absolute error)", bool((totals < 0.05).all()), f"{totals[0]:.3f} and {totals[1]:.3f}"),
            (f"{shape}: the penalised objective never rises", max(results["rose"]) <= 1e-9, f"{DRAWS} draws"),
        ]  # fmt: skip
    for name, condition in (("planted", "effects as in table 5.4"), ("null", "no effects")):
        held = outcomes[f"coverage-{name}"]["held"]
        share = sum(held.values()) / (SIMULATIONS * len(held))
        details = ", ".join(f"{key} {100 * n / SIMULATIONS:.1f}%" for key, n in held.items())
        claim = f"the 95% intervals of group contrasts hold the truth in 92 to 98% of {SIMULATIONS} simulations, {condition}"
        claims.append((claim, 0.92 <= share <= 0.98, f"{100 * share:.1f}%; {details}"))
    null = outcomes["coverage-null"]
    for event, count, total in (
        ("group effects are called (p < 0.05)", null["called"], 4 * SIMULATIONS),
        ("positive rates differ (p < 0.05, over annotators and items)", null["rates_called"], 2 * SIMULATIONS),
    ):
        low, _ = binomtest(count, total).proportion_ci()
        alone = f"; by items alone in {null['items_called']}" if event.startswith("positive") else ""
        claim = f"where nothing is planted {event} in no more than 5% (exact interval)"
        claims.append((claim, bool(low <= 0.05), f"{count} of {total}{alone}"))
    for name, count in outcomes["unequal"].items():
        if name != "seconds":
            low, _ = binomtest(count, 2 * UNEQUAL).proportion_ci()
            claim = f"no effect, and five annotators who vary {name} than the other thirty-five"
            claim = claim if name != "alike" else "no effect, five annotators against thirty-five alike"
            claims.append(
                (
                    f"{claim}: called (p < 0.05) in no more than 5% (exact interval)",
                    bool(low <= 0.05),
                    f"{count} of {2 * UNEQUAL}",
                )
            )
    return claims + _of_beta(outcomes)


def _of_beta(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    claims: list[Claim] = []
    shares = []
    for number, name in enumerate(CELLS):
        results = outcomes[f"beta-{number}"]
        held, estimates = np.reshape(results["held"], (-1, 2)), np.reshape(results["estimates"], (-1, 2))
        shares.append(held.mean())
        low, high = binomtest(int(held.sum()), held.size).proportion_ci()
        claim = f"GroupBeta, {name}: 95% intervals hold (exact interval meets 92 to 98%)"
        sides = zip(("sensitivity", "specificity"), held.mean(axis=0), estimates.mean(axis=0), strict=True)
        figures = ", ".join(f"{response} {100 * share:.0f}%, mean {mean:+.4f}" for response, share, mean in sides)
        claims.append((claim, bool(high >= 0.92 and low <= 0.98), figures))
    whole = float(np.mean(shares))
    claim = f"GroupBeta: the intervals hold in 92 to 98% of all cells' {BETA_DRAWS} draws"
    claims.append((claim, 0.92 <= whole <= 0.98, f"{100 * whole:.1f}%"))
    for number, name in enumerate(NULLS):
        called, most = outcomes[f"beta-null-{number}"]["called"], 0.13 if number == len(NULLS) - 1 else 0.05
        low, _ = binomtest(called, 2 * LEVEL_DRAWS).proportion_ci()
        claim = f"GroupBeta, {name}: the omnibus test calls (p < 0.05) no more than {100 * most:.0f}% (exact interval)"
        claims.append((claim, bool(low <= most), f"{called} of {2 * LEVEL_DRAWS}"))
    return claims


def _drawn(
    shape: str, count: int, **changes: Any
) -> tuple[AnnotatedCorpus, list[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.Series]]]:
    """The labels, the annotators' groups, their true rates, and the items' truth of each draw."""
    corpus = load(AnnotatedCorpus, paths.data_file(f"corpora/{shape}.yaml"))
    assert corpus.simulated
    simulated = type(corpus.simulated).model_validate({**corpus.simulated.model_dump(), "draws": count, **changes})
    corpus = corpus.model_copy(update={"simulated": simulated})
    annotated = read_annotated(corpus, Path())
    draws = []
    for draw in range(1, count + 1):
        labels, annotators, items = (
            t.filter(pc.equal(t["draw"], draw)) for t in (annotated.annotations, annotated.annotators, annotated.items)
        )
        rates = (
            annotators.to_pandas()
            .drop_duplicates("annotator_id")
            .set_index("annotator_id")[["sensitivity", "specificity"]]
        )
        gold = items.to_pandas().set_index("item_id")["gold"]
        draws.append((task_table(labels), people(annotators), rates, gold))
    return corpus, draws


def _truths(corpus: AnnotatedCorpus) -> dict[tuple[str, str], float]:
    assert corpus.simulated
    return {
        (category, response): float(np.subtract(*getattr(effects, response)))
        for category, effects in corpus.simulated.categories.items()
        for response in ("sensitivity", "specificity")
    }


def _labelled(data: pd.DataFrame, annotators: pd.DataFrame) -> Labelled:
    labels = Labels.of(data)
    groups = annotators.reindex(labels.annotators)
    return Labelled(labels, {str(name): levels_of(groups[name]) for name in annotators.columns})
