"""What the lake holds of study 5, put together for a reader."""

from typing import Any

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import ANNOTATOR, CONFUSION, CONTRAST, SAID
from fairness_pipeline.annotation.inference import gold_of, vote_shares
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
    groups; with its confusion.

    Args:
        rows: Estimates by a model of groups.
    """
    said = of_kind(rows, SAID)
    found = []
    for category, group in dict.fromkeys((row["category"], row["name"]) for row in said):
        own = [row for row in said if (row["category"], row["name"]) == (category, group)]
        means = {
            row["said"]: np.mean([r["value"] for r in said if (r["category"], r["said"]) == (category, row["said"])])
            for row in own
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
    """Annotators of many labels who lie farthest from the others, by the model of groups; the first draw's.

    `lean` is half of (sensitivity above the mean) - (specificity above the mean): above 0 for those who say positive
    more readily than others of their accuracy. `lag` is by how much their mean of both is below the others': large for
    those who answer at random, who lean to neither side.
    """
    rows = estimates(part, lake, corpus, group_model(part, corpus))
    rows = [row for row in of_kind(rows, ANNOTATOR) if row["labels"] >= _FEWEST]
    if not rows or part.corpora[corpus].several:
        return []
    mean = {name: np.mean([r["value"] for r in rows if r["response"] == name] or [0]) for name in RESPONSES}
    people: dict[str, dict[str, Any]] = {}
    for row in rows:
        own = people.setdefault(row["name"], {"name": row["name"], "labels": int(row["labels"]), "lean": 0.0})
        own[row["response"]] = row["value"]
        sign = 1 if row["response"] == "sensitivity" else -1
        own["lean"] += sign * (row["value"] - mean[row["response"]]) / 2
    whole = [own for own in people.values() if all(name in own for name in RESPONSES)]
    groups = _groups_of(part, lake, corpus)
    for own in whole:
        own["lag"] = sum(mean[name] - own[name] for name in RESPONSES) / 2
    ordered = sorted(whole, key=lambda own: (-max(abs(own["lean"]), own["lag"]), own["name"]))
    return [{**own, "groups": groups.get(own["name"], "")} for own in ordered[:_FARTHEST]]


def _groups_of(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> dict[str, str]:
    """Of each annotator of the first draw the groups, for a reader."""
    found: dict[str, list[str]] = {}
    for row in lake.read("annotators", {"corpus": corpus}).to_pylist():
        if row["draw"] == 1 and row["group"] and CROSS not in row["category"]:
            found.setdefault(row["annotator_id"], []).append(row["group"])
    return {name: ", ".join(own) for name, own in found.items()}


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
