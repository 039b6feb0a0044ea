"""Summarises the assets of study 5 for its report."""

from typing import Any

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import ANNOTATOR, CONFUSION, CONTRAST, SAID
from fairness_pipeline.annotation.inference import gold_of, vote_shares
from fairness_pipeline.annotation.label_choice import advice
from fairness_pipeline.annotation.truth_inference.base import last_of_the_highest
from fairness_pipeline.annotation.truth_inference.group_design import RESPONSES
from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.corpora.annotators.annotated_corpus import CROSS
from fairness_pipeline.measures.annotators.annotator_groups import Labelled, by_group
from fairness_pipeline.measures.annotators.truth_scores import calibration
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Lake, Row

_FEWEST = 10
"""The fewest labels of an annotator whose lean is shown."""
_FARTHEST = 8
_MOST_WRONG = 0.15
"""The expected share of wrongly inferred items above which the report warns of the groups' intervals: 95% intervals
held in 93 to 97% of simulated draws at 0.11 and 0.15, in 85 to 93% at 0.16 to 0.18 (docs/annotators.md)."""


_MODELS = ("group_beta", "group_anno")
"""The models of groups; the report rests on the first one that supports a corpus's classes."""
PAPERS = "group_anno"


def group_model(part: AnnotatorBiasPart, corpus: str) -> str | None:
    """The model of groups that the report of a corpus rests on, if the profile has one."""
    models = [name for name in _MODELS if name in part.settings.methods]
    return next((name for name in models if part.infers({"corpus": corpus, "method": name})), None)


def estimates(part: AnnotatorBiasPart, lake: Lake, corpus: str, model: str | None) -> list[Row]:
    """A model's estimates on a corpus, in the first draw; contrasts also have the mean over all draws."""
    rows = lake.rows("annotator_bias_estimates", {"corpus": corpus, "method": model}) if model else []
    by_contrast: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row["kind"] == CONTRAST:
            by_contrast.setdefault((row["category"], row["name"], row["response"]), []).append(row["value"])
    first_draw: list[Row] = [row for row in rows if row["draw"] == 1]
    for row in first_draw:
        values = by_contrast.get((row["category"], row["name"], row["response"]), [])
        row |= {"mean": float(np.mean(values)) if values else None, "draws": len(values)}
    return first_draw


def of_kind(rows: list[Row], *kinds: str) -> list[Row]:
    """The rows of estimates of some kinds."""
    return [row for row in rows if row["kind"] in kinds]


def class_shares(rows: list[Row]) -> list[dict[str, Any]]:
    """From estimates by a model of groups: how often each group of each category says each class (modelled, raw, and
    above the mean of the groups' labels), and its confusion."""
    frequencies = of_kind(rows, SAID)
    groups = []
    for category, group in dict.fromkeys((row["category"], row["name"]) for row in frequencies):
        group_rows = [row for row in frequencies if (row["category"], row["name"]) == (category, group)]
        category_rows = [row for row in frequencies if row["category"] == category]
        means = {
            name: np.average([row["value"] for row in class_rows], weights=[row["labels"] for row in class_rows])
            for name in dict.fromkeys(row["said"] for row in group_rows)
            if (class_rows := [row for row in category_rows if row["said"] == name])
        }
        confusion = [row for row in of_kind(rows, CONFUSION) if (row["category"], row["name"]) == (category, group)]
        groups.append(
            {
                "category": category, "group": group, "labels": group_rows[0]["labels"],
                "said": [{**row, "more": row["value"] - means[row["said"]]} for row in group_rows],
                "confusion": {
                    name: [row for row in confusion if row["response"] == name]
                    for name in dict.fromkeys(row["response"] for row in confusion)
                },
            }
        )  # fmt: skip
    return groups


def leaning(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> list[dict[str, Any]]:
    """Annotators of the first draw with many labels who differ most from their groups, by the model of groups.

    `lean` is half of (sensitivity above what is expected) - (specificity above what is expected): above 0 for those who
    say positive more readily than others of their accuracy. `lag` is the amount by which the mean of both is below what
    is expected: large for those who answer at random, and so lean to neither side. The mean of all annotators, plus the
    deviation of each of their groups from it, is expected: a typical member of a group is not listed.
    """
    rows = estimates(part, lake, corpus, group_model(part, corpus))
    rows = [row for row in of_kind(rows, ANNOTATOR) if row["labels"] >= _FEWEST]
    if not rows or part.corpora[corpus].several:
        return []
    groups = _groups_of(lake, corpus)
    people: dict[str, dict[str, Any]] = {}
    for row in rows:
        start = {"name": row["name"], "labels": int(row["labels"]), "groups": groups.get(row["name"], [])}
        people.setdefault(row["name"], start)[row["response"]] = row["value"]
    complete = [person for person in people.values() if all(name in person for name in RESPONSES)]
    deviations = zip(*(_deviations(complete, name) for name in RESPONSES), strict=True)
    for person, (sensitivity, specificity) in zip(complete, deviations, strict=True):
        person |= {"lean": (sensitivity - specificity) / 2, "lag": -(sensitivity + specificity) / 2}
    ordered = sorted(complete, key=lambda person: (-max(abs(person["lean"]), person["lag"]), person["name"]))
    return [{**person, "groups": ", ".join(group for _, group in person["groups"])} for person in ordered[:_FARTHEST]]


def _deviations(people: list[dict[str, Any]], response: str) -> list[float]:
    """The deviation of each annotator from what is expected of their groups."""
    values = np.array([person[response] for person in people])
    expected = np.full(len(values), values.mean())
    for group in {name for person in people for name in person["groups"]}:
        members = np.array([group in person["groups"] for person in people])
        expected[members] += values[members].mean() - values.mean()
    return (values - expected).tolist()


def _groups_of(lake: Lake, corpus: str) -> dict[str, list[tuple[str, str]]]:
    """The categories and groups of each annotator of the first draw."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for row in lake.read("annotators", {"corpus": corpus}).to_pylist():
        if row["draw"] == 1 and row["group"] and CROSS not in row["category"]:
            groups.setdefault(row["annotator_id"], []).append((row["category"], row["group"]))
    return groups


def in_doubt(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> list[str]:
    """A warning if GroupBeta's own probabilities say that many items are inferred wrongly: with poor annotators or few
    labels, groups that err in the same way cannot be told from a different truth."""
    key = {"corpus": corpus, "method": _MODELS[0]}
    if group_model(part, corpus) != _MODELS[0] or not lake.card("truth_inference", key):
        return []
    table = lake.read("truth_inference", key)
    p = table.filter(pc.equal(table["draw"], 1))["probability"].to_numpy()
    wrong = float(np.minimum(p, 1 - p).mean())
    if wrong <= _MOST_WRONG:
        return []
    return [
        f"These labels leave the truth in doubt: GroupBeta expects to infer {100 * wrong:.0f}% of the items wrongly. "
        "Intervals of its differences may then miss in more than 5% of cases (10 to 15% in simulations); collect more "
        "labels for each item, or items with a known label."
    ]


def choice(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, Any] | None:
    """Which labels to use, why, and the command that writes them."""
    rows = lake.rows("label_choice", {"corpus": corpus})
    if not rows:
        return None
    titles = {name: METHODS[name].title for name in part.settings.methods}
    return {
        "told": advice(rows, titles),
        "rows": [{**row, "title": titles[row["method"]]} for row in sorted(rows, key=lambda row: -row["accuracy"])],
        "command": f"fairness-pipeline export labels --profile {part.project.name} --corpus {corpus} --output FILE",
    }


def against_the_vote(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, dict[str, float]]:
    """For each method, the share of items that it labels positive (with two classes), and the share on which it differs
    from the vote."""
    import pandas as pd

    if not lake.card("annotations", {"corpus": corpus}):
        return {}
    shares = vote_shares(lake.read("annotations", {"corpus": corpus}))
    vote = pd.Series(last_of_the_highest(shares.to_numpy()), index=shares.index)
    by_method = {}
    for name in part.settings.methods:
        if lake.card("truth_inference", key := {"corpus": corpus, "method": name}):
            labels = lake.read("truth_inference", key).to_pandas().set_index(["draw", "item_id"])["label"]
            by_method[name] = {
                **({} if part.corpora[corpus].several else {"positive": float(labels.mean())}),
                "differs": float((labels != vote.reindex(labels.index)).mean()),
            }
    return by_method


def disputed(part: AnnotatorBiasPart, lake: Lake, corpus: str, count: int) -> dict[str, list[dict[str, Any]]]:
    """For each comparison, the items of the first draw that divide its groups most: by sum_g n_g (rate_g - rate)^2.

    Each item has the number of `labels` and of `positive` labels of each group.
    """
    key = {"corpus": corpus}
    tables = [lake.read(name, key) for name in ("annotations", "annotators", "annotated_items")]
    labels, annotators, items = (table.filter(pc.equal(table["draw"], 1)) for table in tables)
    classes = part.corpora[corpus].labels.class_names
    labelled = Labelled.of(labels, annotators, len(classes))
    texts = dict(zip(items["item_id"].to_pylist(), items["text"].to_pylist(), strict=True))
    by_category = {}
    for binary, category in [
        (candidate, name) for candidate in labelled.against_rest(classes) for name in candidate.levels
    ]:
        size, groups = len(binary.labels.items), binary.levels[category].names
        code = binary.levels[category].code[binary.labels.annotator]
        counts = by_group(binary.labels.item, code, size, len(groups))
        positive = by_group(binary.labels.item, np.where(binary.labels.label == 1, code, -1), size, len(groups))
        rate = positive.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
        division = (counts * np.square(positive / np.maximum(counts, 1) - rate[:, None])).sum(axis=1)
        shared = (counts > 0).sum(axis=1) > 1
        order = np.argsort(-np.where(shared, division, -1.0), kind="stable")[: min(count, int(shared.sum()))]
        by_category[category] = [
            {
                "item": str(binary.labels.items[index]),
                "text": texts[str(binary.labels.items[index])],
                "groups": groups,
                "labels": counts[index].tolist(),
                "positive": positive[index].tolist(),
            }
            for index in order
        ]
    return by_category


def scores(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, dict[str, Row]]:
    """The scores of each method on a corpus, by metric; only of methods that have some."""
    by_method = {}
    for name in part.settings.methods:
        if rows := lake.rows("truth_inference_scores", {"corpus": corpus, "method": name}):
            by_method[name] = {row["metric"]: row for row in rows}
    return by_method


def calibrated(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, list[tuple[float, float, int]]]:
    """The calibration of the vote, Dawid and Skene, and the model of groups, if gold labels are known."""
    key = {"corpus": corpus}
    if not lake.card("annotated_items", key) or not lake.card("annotations", key):
        return {}
    items = lake.read("annotated_items", key)
    if items["gold"].null_count == items.num_rows or part.corpora[corpus].several:
        return {}
    gold = gold_of(items, lake.read("annotations", key), 1.0).rename("gold")
    by_title = {}
    for name in part.settings.methods:
        method_key = {**key, "method": name}
        if name in ("mv", "dawid_skene", group_model(part, corpus)) and lake.card("truth_inference", method_key):
            rows = lake.read("truth_inference", method_key).to_pandas().join(gold, on=["draw", "item_id"], how="inner")
            title = METHODS[name].title + ("" if METHODS[name].probabilistic else " (share of votes)")
            by_title[title] = calibration(rows["probability"].to_numpy(), rows["gold"].to_numpy())
    return by_title
