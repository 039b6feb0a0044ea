"""What the lake holds of study 5, put together for a reader."""

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
"""Labels of an annotator who is shown as leaning far."""
_FARTHEST = 8
_MOST_WRONG = 0.15
"""The share of items expected to be inferred wrongly from which on intervals of groups are warned of: 95% intervals
held in 93 to 97% of simulated draws at 0.11 and 0.15, in 85 to 93% at 0.16 to 0.18 (docs/annotators.md)."""


_MODELS = ("group_beta", "group_anno")
"""The models of groups: the first that knows a corpus's classes is the one that the report rests on."""
PAPERS = "group_anno"


def group_model(part: AnnotatorBiasPart, corpus: str) -> str | None:
    """The model of groups that the report of a corpus rests on, if the profile has one."""
    own = [name for name in _MODELS if name in part.settings.methods]
    return next((name for name in own if part.infers({"corpus": corpus, "method": name})), None)


def estimates(part: AnnotatorBiasPart, lake: Lake, corpus: str, model: str | None) -> list[Row]:
    """What a model of groups says of a corpus, in the first draw; of contrasts also the mean over all draws."""
    key = {"corpus": corpus, "method": model or ""}
    if not model or not lake.card("annotator_bias_estimates", key):
        return []
    rows = lake.read("annotator_bias_estimates", key).to_pylist()
    each: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row["kind"] == CONTRAST:
            each.setdefault((row["category"], row["name"], row["response"]), []).append(row["value"])
    found: list[Row] = [row for row in rows if row["draw"] == 1]
    for row in found:
        values = each.get((row["category"], row["name"], row["response"]), [])
        row |= {"mean": float(np.mean(values)) if values else None, "draws": len(values)}
    return found


def of_kind(rows: list[Row], *kinds: str) -> list[Row]:
    """Those rows of estimates that are of some kinds."""
    return [row for row in rows if row["kind"] in kinds]


def classes_said(rows: list[Row]) -> list[dict[str, Any]]:
    """Of each category and group how often it says each class, modelled and raw, and how far above the mean of the
    groups' labels; with its confusion.

    Args:
        rows: Estimates by a model of groups.
    """
    said = of_kind(rows, SAID)
    found = []
    for category, group in dict.fromkeys((row["category"], row["name"]) for row in said):
        own = [row for row in said if (row["category"], row["name"]) == (category, group)]
        of_category = [row for row in said if row["category"] == category]
        means = {
            name: np.average([row["value"] for row in alike], weights=[row["labels"] for row in alike])
            for name in dict.fromkeys(row["said"] for row in own)
            if (alike := [row for row in of_category if row["said"] == name])
        }
        confusion = [row for row in of_kind(rows, CONFUSION) if (row["category"], row["name"]) == (category, group)]
        found.append(
            {
                "category": category, "group": group, "labels": own[0]["labels"],
                "said": [{**row, "more": row["value"] - means[row["said"]]} for row in own],
                "confusion": {
                    name: [row for row in confusion if row["response"] == name]
                    for name in dict.fromkeys(row["response"] for row in confusion)
                },
            }
        )  # fmt: skip
    return found


def leaning(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> list[dict[str, Any]]:
    """Annotators of many labels who lie farthest from others of their groups, by the model of groups; the first draw's.

    `lean` is half of (sensitivity above what is expected) - (specificity above what is expected): above 0 for those who
    say positive more readily than others of their accuracy. `lag` is by how much their mean of both is below what is
    expected: large for those who answer at random, who lean to neither side. Expected is the mean of all annotators,
    and what the mean of each of their groups lies from it: who is no more than a member of a group is not listed.
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
    whole = [own for own in people.values() if all(name in own for name in RESPONSES)]
    beyond = zip(*(_beyond(whole, name) for name in RESPONSES), strict=True)
    for own, (sensitivity, specificity) in zip(whole, beyond, strict=True):
        own |= {"lean": (sensitivity - specificity) / 2, "lag": -(sensitivity + specificity) / 2}
    ordered = sorted(whole, key=lambda own: (-max(abs(own["lean"]), own["lag"]), own["name"]))
    return [{**own, "groups": ", ".join(group for _, group in own["groups"])} for own in ordered[:_FARTHEST]]


def _beyond(people: list[dict[str, Any]], response: str) -> list[float]:
    """How far each annotator lies from the mean of all, and of their groups."""
    values = np.array([own[response] for own in people])
    expected = np.full(len(values), values.mean())
    for group in {name for own in people for name in own["groups"]}:
        inside = np.array([group in own["groups"] for own in people])
        expected[inside] += values[inside].mean() - values.mean()
    return (values - expected).tolist()


def _groups_of(lake: Lake, corpus: str) -> dict[str, list[tuple[str, str]]]:
    """Of each annotator of the first draw the categories and groups."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in lake.read("annotators", {"corpus": corpus}).to_pylist():
        if row["draw"] == 1 and row["group"] and CROSS not in row["category"]:
            found.setdefault(row["annotator_id"], []).append((row["category"], row["group"]))
    return found


def in_doubt(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> list[str]:
    """A warning if, by GroupBeta's own probabilities, many items are inferred wrongly: so poor are the annotators, or
    so few the labels, that groups which miss alike and a truth that lies elsewhere look the same."""
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
    if not lake.card("label_choice", {"corpus": corpus}):
        return None
    rows = lake.read("label_choice", {"corpus": corpus}).to_pylist()
    titles = {name: METHODS[name].title for name in part.settings.methods}
    return {
        "told": advice(rows, titles),
        "rows": [{**row, "title": titles[row["method"]]} for row in sorted(rows, key=lambda row: -row["accuracy"])],
        "command": f"fairness-pipeline export labels --profile {part.project.name} --corpus {corpus} --output FILE",
    }


def against_the_vote(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, dict[str, float]]:
    """Of each method the share of items that it calls positive (of two classes), and of those on which it differs from
    the vote."""
    import pandas as pd

    if not lake.card("annotations", {"corpus": corpus}):
        return {}
    shares = vote_shares(lake.read("annotations", {"corpus": corpus}))
    vote = pd.Series(last_of_the_highest(shares.to_numpy()), index=shares.index)
    found = {}
    for name in part.settings.methods:
        if lake.card("truth_inference", own := {"corpus": corpus, "method": name}):
            rows = lake.read("truth_inference", own).to_pandas().set_index(["draw", "item_id"])["label"]
            found[name] = {
                **({} if part.corpora[corpus].several else {"positive": float(rows.mean())}),
                "differs": float((rows != vote.reindex(rows.index)).mean()),
            }
    return found


def disputed(part: AnnotatorBiasPart, lake: Lake, corpus: str, count: int) -> dict[str, list[dict[str, Any]]]:
    """Of each comparison the items that divide its groups most, the first draw's: by sum_g n_g (rate_g - rate)^2.

    Each has the numbers of `labels` and of `positive` labels of each group.

    Args:
        part: The profile's part of the study.
        lake: What has been made.
        corpus: Which.
        count: How many items of a category.
    """
    key = {"corpus": corpus}
    tables = [lake.read(name, key) for name in ("annotations", "annotators", "annotated_items")]
    labels, who, items = (table.filter(pc.equal(table["draw"], 1)) for table in tables)
    classes = part.corpora[corpus].labels.class_names
    labelled = Labelled.of(labels, who, len(classes))
    texts = dict(zip(items["item_id"].to_pylist(), items["text"].to_pylist(), strict=True))
    found = {}
    for own, category in [(one, name) for one in labelled.against_rest(classes) for name in one.levels]:
        size, groups = len(own.labels.items), own.levels[category].names
        code = own.levels[category].code[own.labels.annotator]
        given = by_group(own.labels.item, code, size, len(groups))
        positive = by_group(own.labels.item, np.where(own.labels.label == 1, code, -1), size, len(groups))
        rate = positive.sum(axis=1) / np.maximum(given.sum(axis=1), 1)
        apart = (given * np.square(positive / np.maximum(given, 1) - rate[:, None])).sum(axis=1)
        shared = (given > 0).sum(axis=1) > 1
        order = np.argsort(-np.where(shared, apart, -1.0), kind="stable")[: min(count, int(shared.sum()))]
        found[category] = [
            {
                "item": str(own.labels.items[place]),
                "text": texts[str(own.labels.items[place])],
                "groups": groups,
                "labels": given[place].tolist(),
                "positive": positive[place].tolist(),
            }
            for place in order
        ]
    return found


def scores(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, dict[str, Row]]:
    """The scores of each method on a corpus, by metric; only of methods that have some."""
    found = {}
    for name in part.settings.methods:
        key = {"corpus": corpus, "method": name}
        if lake.card("truth_inference_scores", key):
            rows = lake.read("truth_inference_scores", key).to_pylist()
            if rows:
                found[name] = {row["metric"]: row for row in rows}
    return found


def calibrated(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, list[tuple[float, float, int]]]:
    """Of the vote and the model of groups: probabilities beside gold labels, where those are known."""
    key = {"corpus": corpus}
    if not lake.card("annotated_items", key) or not lake.card("annotations", key):
        return {}
    items = lake.read("annotated_items", key)
    if items["gold"].null_count == items.num_rows or part.corpora[corpus].several:
        return {}
    gold = gold_of(items, lake.read("annotations", key), 1.0).rename("gold")
    found = {}
    for name in part.settings.methods:
        own = {**key, "method": name}
        if name in ("mv", "dawid_skene", group_model(part, corpus)) and lake.card("truth_inference", own):
            rows = lake.read("truth_inference", own).to_pandas().join(gold, on=["draw", "item_id"], how="inner")
            title = METHODS[name].title + ("" if METHODS[name].probabilistic else " (share of votes)")
            found[title] = calibration(rows["probability"].to_numpy(), rows["gold"].to_numpy())
    return found
