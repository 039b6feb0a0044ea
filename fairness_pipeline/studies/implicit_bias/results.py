"""What the lake holds of study 4, put together for a reader."""

import re
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.explanation.agreement import evenness, rank_correlation, same_top_word
from fairness_pipeline.statistics.verdicts import NOTHING_TO_JUDGE
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.studies.implicit_bias.study import STUDY
from fairness_pipeline.workspace.lake import Lake, Row

KINDS = ("label_l2x", "group_l2x", "label_gradients", "group_gradients")
_FEWEST = 5
"""Texts that a word must stand in to be among the top words."""
_TOP = 10
_SPECIAL = re.compile(r"\[[A-Z]+\]|</?\w+>")
"""What a tokenizer puts around a text."""
_FLAT = 0.98
"""The evenness above which an explainer prefers no word: it did not learn."""


class Word(NamedTuple):
    """A word of a highlighted text: how salient it is for the label and for the group, 0 to 1 of the text's most."""

    word: str
    label: float
    group: float


def top_words(saliency: pa.Table, kind: str) -> list[tuple[str, float, int]]:
    """The words with the largest mean share times the number of words, and in how many texts they stand.

    A share is compared with an even one: 2 is twice what each word of the text would have.

    Args:
        saliency: As `SALIENCY`.
        kind: One of `KINDS`.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for words, shares in zip(saliency["words"].to_pylist(), saliency[kind].to_pylist(), strict=True):
        for word, share in zip(words, shares, strict=True):
            if not _SPECIAL.fullmatch(word):
                found[word].append(share * len(words))
    means = [(word, float(np.mean(own)), len(own)) for word, own in found.items() if len(own) >= _FEWEST]
    return sorted(means, key=lambda row: (-row[1], row[0]))[:_TOP]


def flat(saliency: pa.Table) -> bool:
    """Whether an explainer, of the label or of the group, prefers no word.

    Args:
        saliency: As `SALIENCY`.
    """
    kinds = ("label_l2x", "group_l2x")
    return max(evenness([np.array(own) for own in saliency[kind].to_pylist()]) for kind in kinds) > _FLAT


def agreement(saliency: pa.Table) -> dict[str, dict[str, float]]:
    """How far L2X and integrated gradients agree, on the label and on the group.

    Args:
        saliency: As `SALIENCY`.
    """
    found = {}
    for task in ("label", "group"):
        one, other = (
            [np.array(own) for own in saliency[f"{task}_{name}"].to_pylist()] for name in ("l2x", "gradients")
        )
        same, chance = same_top_word(one, other)
        found[task] = {"correlation": rank_correlation(one, other), "same": same, "chance": chance}
    return found


def highlighted(saliency: pa.Table, predictions: pa.Table, count: int) -> list[dict[str, Any]]:
    """Texts that the first seed got wrong first, each word with its saliency (table 4.1).

    Args:
        saliency: As `SALIENCY`.
        predictions: Of the same classifier, as `CLASSIFIER_PREDICTIONS`.
        count: How many.
    """
    said = {row["text_id"]: row for row in predictions.to_pylist() if row["seed"] == 1}
    rows = [row for row in saliency.to_pylist() if row["seed"] == 1]
    rows.sort(key=lambda row: (said[row["text_id"]]["prediction"] == said[row["text_id"]]["label"], row["js_l2x"]))
    found = []
    for row in rows[:count]:
        label, group = (np.array(row[kind]) / max(row[kind]) for kind in ("label_l2x", "group_l2x"))
        words = [Word(*own) for own in zip(row["words"], label.tolist(), group.tolist(), strict=True)]
        found.append({**said[row["text_id"]], "words": words})
    return found


def metrics(part: ImplicitBiasPart, lake: Lake, corpus: str) -> dict[str, dict[str, Row]]:
    """The metrics of each classifier on a corpus, by name."""
    return {
        name: {row["metric"]: row for row in lake.read("classifier_metrics", key).to_pylist()}
        for name in part.classifiers
        if lake.card("classifier_metrics", key := {"corpus": corpus, "classifier": name})
    }


def effects(part: ImplicitBiasPart, lake: Lake) -> list[Row]:
    """What each method changed, on each corpus; nothing to judge where either classifier leaves nothing."""
    keys = [{"corpus": corpus, "classifier": name} for corpus in part.corpora for name in part.classifiers]
    table, found = "classifier_debiasing_effects", []
    for key in keys:
        base = part.base_of(key)
        if base and lake.card(table, key):
            degenerate = {
                f"verdict_{when}": NOTHING_TO_JUDGE
                for when, own in (("before", base), ("after", key))
                if STUDY.degenerate(part, own, lake)
            }
            told = {**degenerate, "effect": NOTHING_TO_JUDGE} if degenerate else {}
            found += [{**key, **row, **told} for row in lake.read(table, key).to_pylist()]
    return found


def explained(part: ImplicitBiasPart, lake: Lake) -> list[dict[str, Any]]:
    """Every explained classifier: divergence, agreement, top words, highlighted texts."""
    found = []
    for corpus in part.corpora:
        for name in part.settings.explain:
            key = {"corpus": corpus, "classifier": name}
            if not lake.card("saliency", key) or not lake.card("classifier_predictions", key):
                continue
            table = lake.read("saliency", key)
            examples = highlighted(table, lake.read("classifier_predictions", key), part.settings.examples)
            found.append(
                {
                    "key": key,
                    "texts": len(set(table["text_id"].to_pylist())),
                    "js": {kind: float(np.mean(table[f"js_{kind}"].to_numpy())) for kind in ("l2x", "gradients")},
                    "agreement": agreement(table),
                    "evenness": {kind: evenness([np.array(own) for own in table[kind].to_pylist()]) for kind in KINDS},
                    "flat": flat(table),
                    "top": {kind: top_words(table, kind) for kind in KINDS},
                    "examples": examples,
                }
            )
    return found
