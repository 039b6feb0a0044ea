"""Chooses the method whose labels to use: by its accuracy on gold labels or, if there are too few, on planted truths.

Planted truths and labels are drawn from a model that is fitted to the corpus, for the same items and annotators. Each
method then infers truths that are known. A method other than the vote must be better by a hundredth of the items.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference
from fairness_pipeline.annotation.truth_inference.dawid_skene import DawidSkene
from fairness_pipeline.annotation.truth_inference.group_beta import GroupBeta
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import schema

if TYPE_CHECKING:
    import pandas as pd

LABEL_CHOICE = schema(
    method=(pa.string(), "the method of truth inference"),
    accuracy=(pa.float64(), "share of items whose label it infers rightly; of planted truths the mean over draws"),
    basis=(pa.string(), "gold (known labels), or planted (the corpus drawn again from a model of its annotators)"),
    items=(pa.int64(), "items with a known truth, of one draw"),
    draws=(pa.int64(), "how often truths were planted; 1 for gold"),
    chosen=(pa.bool_(), "whether to use its labels"),
)
GOLD, PLANTED = "gold", "planted"
VOTE = "mv"
FEWEST_GOLD = 50
"""With fewer gold labels, truths are planted."""
LEAST_GAIN = 0.01
"""The smallest gain over the vote that justifies another method."""
_DRAWS, _FEW_DRAWS, _MANY_LABELS = 5, 2, 100_000


def choose_labels(
    data: "pd.DataFrame",
    groups: "pd.DataFrame",
    gold: "pd.Series",
    methods: Mapping[str, Callable[[], TruthInference]],
    classes: int,
    progress: Progress | None = None,
) -> pa.Table:
    """A table of `LABEL_CHOICE`.

    Args:
        data: `task`, `worker` and `label` of each label.
        groups: The annotators' groups, one row per worker.
        gold: The true label of each task where it is known.
        methods: Makes each method that infers a truth, by name.
        classes: The number of classes.
        progress: Receives the number of draws done.
    """
    known = gold.reindex(data["task"].unique()).dropna()
    if len(known) >= FEWEST_GOLD:
        draws, basis = [(data, known.astype(int))], GOLD
    else:
        count = _DRAWS if len(data) <= _MANY_LABELS else _FEW_DRAWS
        draws, basis = planted(data, groups, classes, count), PLANTED
    right: dict[str, list[float]] = {name: [] for name in methods}
    for done, (labels, truth) in enumerate(draws):
        for name, make in methods.items():
            report(progress, done, len(draws), name)
            inferred = make().fit_predict(labels, classes).reindex(truth.index)
            right[name].append(float((inferred == truth).mean()))
    accuracy = {name: float(np.mean(shares)) for name, shares in right.items()}
    best = max(accuracy, key=lambda name: accuracy[name])
    if VOTE in accuracy and accuracy[best] - accuracy[VOTE] < LEAST_GAIN:
        best = VOTE
    rows = [
        {
            "method": name, "accuracy": share, "basis": basis, "items": len(draws[0][1]), "draws": len(draws),
            "chosen": name == best,
        }
        for name, share in accuracy.items()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=LABEL_CHOICE)


def planted(
    data: "pd.DataFrame", groups: "pd.DataFrame", classes: int, count: int
) -> list[tuple["pd.DataFrame", "pd.Series"]]:
    """Draws of the corpus with new truths and labels, for the same items and annotators, from a model fitted to it.

    The model is `GroupBeta` for two classes, `DawidSkene` for more.

    Args:
        data: `task`, `worker` and `label` of each label.
        groups: The annotators' groups, one row per worker.
        classes: The number of classes.
        count: The number of draws.
    """
    import pandas as pd

    labels, random = Labels.of(data, classes), np.random.default_rng(0)
    if classes == 2:
        model = GroupBeta(groups).fit(data)
        prevalence = np.array([1 - model.prevalence_, model.prevalence_])
        alpha, beta = model.sensitivity_.to_numpy(), model.specificity_.to_numpy()
        confusion = np.stack([np.stack([beta, 1 - beta], axis=1), np.stack([1 - alpha, alpha], axis=1)], axis=1)
    else:
        p = DawidSkene().fit(data, classes).probas_.to_numpy()
        # As many average labels as there are classes are added, so that few labels give no certainty.
        counts = labels.confusion(p)
        confusion = counts + counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None] * classes
        confusion, prevalence = confusion / confusion.sum(axis=2, keepdims=True), p.mean(axis=0)
    draws = []
    for _ in range(count):
        truth = random.choice(len(prevalence), len(labels.items), p=prevalence / prevalence.sum())
        cumulative = confusion[labels.annotator, truth[labels.item]].cumsum(axis=1)
        label = np.minimum((random.random(len(cumulative))[:, None] > cumulative).sum(axis=1), classes - 1)
        table = pd.DataFrame(
            {"task": labels.items[labels.item], "worker": labels.annotators[labels.annotator], "label": label}
        )
        draws.append((table, pd.Series(truth, index=labels.items)))
    return draws


def advice(rows: list[dict[str, Any]], titles: Mapping[str, str]) -> str:
    """Which labels to use, and why, in a sentence."""
    chosen = next(row for row in rows if row["chosen"])
    vote = next((row for row in rows if row["method"] == VOTE), None)
    if chosen["basis"] == GOLD:
        scope = f"of {chosen['items']:,} items with a gold label"
    else:
        scope = f"of {chosen['draws']} times {chosen['items']:,} planted truths with the same items and annotators"
        scope += ", as if every item were truly of one class"
    reason = f"{titles[chosen['method']]}: {100 * chosen['accuracy']:.1f}% right {scope}"
    if chosen["method"] == VOTE:
        best = max(rows, key=lambda row: row["accuracy"])
        return (
            f"{reason}; no method is better by 1% (the best: {titles[best['method']]}, {100 * best['accuracy']:.1f}%)"
        )
    return f"{reason}, the vote {100 * vote['accuracy']:.1f}%" if vote else reason
