"""What the lake holds of study 5, put together for a reader."""

from typing import Any

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import ANNOTATOR, CONTRAST
from fairness_pipeline.annotation.inference import gold_of, vote_shares
from fairness_pipeline.annotation.truth_inference.base import last_of_the_highest
from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.measures.annotators.annotator_groups import RESPONSES, Labelled, rates_of
from fairness_pipeline.measures.annotators.truth_scores import calibration
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Lake, Row

_FEWEST = 10
"""Labels of an annotator who is shown as leaning far."""
_FARTHEST = 8


def group_model(part: AnnotatorBiasPart) -> str | None:
    """The profile's method that models groups, if it has it."""
    return next((name for name in part.settings.methods if METHODS[name].of_groups), None)


def estimates(part: AnnotatorBiasPart, lake: Lake, corpus: str, kind: str) -> list[Row]:
    """What the model of groups says of a corpus: the rows of a kind, of all draws."""
    key = {"corpus": corpus, "method": group_model(part) or ""}
    if not group_model(part) or not lake.card("annotator_bias_estimates", key):
        return []
    table = lake.read("annotator_bias_estimates", key)
    found: list[Row] = table.filter(pc.equal(table["kind"], kind)).to_pylist()
    return found


def contrasts(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> list[dict[str, Any]]:
    """The first draw's contrasts, each with the mean over all draws."""
    rows = estimates(part, lake, corpus, CONTRAST)
    each: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        each.setdefault((row["category"], row["response"]), []).append(row["value"])
    return [
        {**row, "mean": float(np.mean(values)), "draws": len(values)}
        for row in rows
        if row["draw"] == 1
        for values in [each[row["category"], row["response"]]]
    ]


def leaning(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> list[dict[str, Any]]:
    """Annotators of many labels who lie farthest from the others, by the model of groups; the first draw's.

    `lean` is half of (sensitivity above the mean) - (specificity above the mean): above 0 for those who say positive
    more readily than others of their accuracy. `lag` is by how much their mean of both is below the others': large for
    those who answer at random, who lean to neither side.
    """
    rows = [row for row in estimates(part, lake, corpus, ANNOTATOR) if row["draw"] == 1 and row["labels"] >= _FEWEST]
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
    names = part.corpora[corpus].groups
    found: dict[str, list[str]] = {}
    for row in lake.read("annotators", {"corpus": corpus}).to_pylist():
        if row["draw"] == 1 and row["side"]:
            found.setdefault(row["annotator_id"], []).append(names[row["category"]]["ab".index(row["side"])])
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
    """Of each category the items on which its groups differ most: by d^2 n_a n_b / (n_a + n_b), the first draw's.

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
    two = labelled.against_rest(classes)
    for own_labels, category in ((own, category) for own in two for category in own.sides):
        rates = rates_of(own_labels, category)
        if rates is None:
            continue
        weight = rates.counts.prod(axis=1) / rates.counts.sum(axis=1)
        order = np.argsort(-np.square(rates.a - rates.b) * weight, kind="stable")[:count]
        names = [str(labelled.labels.items[rates.item[place]]) for place in order]
        given = rates.counts[order].tolist()
        shares = np.stack([rates.a, rates.b], axis=1)[order]
        found[category] = [
            {
                "item": name,
                "text": texts[name],
                "labels": counts,
                "positive": [round(share * n) for share, n in zip(own, counts, strict=True)],
            }
            for name, counts, own in zip(names, given, shares, strict=True)
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
        if (name == "mv" or METHODS[name].of_groups or name == "dawid_skene") and lake.card("truth_inference", own):
            rows = lake.read("truth_inference", own).to_pandas().join(gold, on=["draw", "item_id"], how="inner")
            title = METHODS[name].title + ("" if METHODS[name].probabilistic else " (share of votes)")
            found[title] = calibration(rows["probability"].to_numpy(), rows["gold"].to_numpy())
    return found
