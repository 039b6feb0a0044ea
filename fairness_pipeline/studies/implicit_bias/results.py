"""Reads the assets of study 4 for its report."""

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
"""The fewest texts with a word for it to be a top word."""
_TOP = 10
_SPECIAL = re.compile(r"\[[A-Z]+\]|</?\w+>")
"""The special tokens that a tokenizer adds to a text."""
_FLAT = 0.98
"""The evenness above which an explainer prefers no word: it did not learn."""


class Word(NamedTuple):
    """A word of a highlighted text: its saliency for the label and for the group, as a share of the text's maximum."""

    word: str
    label: float
    group: float


def top_words(saliency: pa.Table, kind: str) -> list[tuple[str, float, int]]:
    """The words with the largest mean share times the number of words, and the number of texts with each word.

    A share is compared with an even one: 2 is twice what each word of the text would have.
    """
    shares_by_word: dict[str, list[float]] = defaultdict(list)
    for words, shares in zip(saliency["words"].to_pylist(), saliency[kind].to_pylist(), strict=True):
        for word, share in zip(words, shares, strict=True):
            if not _SPECIAL.fullmatch(word):
                shares_by_word[word].append(share * len(words))
    means = [
        (word, float(np.mean(word_shares)), len(word_shares))
        for word, word_shares in shares_by_word.items()
        if len(word_shares) >= _FEWEST
    ]
    return sorted(means, key=lambda row: (-row[1], row[0]))[:_TOP]


def agreement(saliency: pa.Table) -> dict[str, dict[str, float]]:
    """How far L2X and integrated gradients agree, on the label and on the group."""
    agreements = {}
    for task in ("label", "group"):
        l2x, gradients = (
            [np.array(shares) for shares in saliency[f"{task}_{name}"].to_pylist()] for name in ("l2x", "gradients")
        )
        same, chance = same_top_word(l2x, gradients)
        agreements[task] = {"correlation": rank_correlation(l2x, gradients), "same": same, "chance": chance}
    return agreements


def highlighted(saliency: pa.Table, predictions: pa.Table, count: int) -> list[dict[str, Any]]:
    """Texts with the saliency of each word (table 4.1), those that the first seed of the same classifier misclassified
    first."""
    predicted = {row["text_id"]: row for row in predictions.to_pylist() if row["seed"] == 1}
    rows = [row for row in saliency.to_pylist() if row["seed"] == 1]
    rows.sort(
        key=lambda row: (
            predicted[row["text_id"]]["prediction"] == predicted[row["text_id"]]["label"],
            row["js_l2x"],
        )
    )
    examples = []
    for row in rows[:count]:
        label, group = (np.array(row[kind]) / max(row[kind]) for kind in ("label_l2x", "group_l2x"))
        words = [Word(*fields) for fields in zip(row["words"], label.tolist(), group.tolist(), strict=True)]
        examples.append({**predicted[row["text_id"]], "words": words})
    return examples


def metrics(part: ImplicitBiasPart, lake: Lake, corpus: str) -> dict[str, dict[str, Row]]:
    """The metrics of each classifier on a corpus, by name."""
    return {
        name: {row["metric"]: row for row in rows}
        for name in part.classifiers
        if (rows := lake.rows("classifier_metrics", {"corpus": corpus, "classifier": name}))
    }


def effects(part: ImplicitBiasPart, lake: Lake) -> list[Row]:
    """The effect of each method on each corpus; there is nothing to judge if either classifier is degenerate."""
    keys = [{"corpus": corpus, "classifier": name} for corpus in part.corpora for name in part.classifiers]
    table, rows = "classifier_debiasing_effects", []
    for key in keys:
        base = part.base_of(key)
        if base and lake.card(table, key):
            degenerate = {
                f"verdict_{when}": NOTHING_TO_JUDGE
                for when, classifier_key in (("before", base), ("after", key))
                if STUDY.degenerate(part, classifier_key, lake)
            }
            overrides = {**degenerate, "effect": NOTHING_TO_JUDGE} if degenerate else {}
            rows += [{**key, **row, **overrides} for row in lake.read(table, key).to_pylist()]
    return rows


def explained(part: ImplicitBiasPart, lake: Lake) -> list[dict[str, Any]]:
    """Every explained classifier: divergence, agreement, top words, highlighted texts."""
    sections = []
    for corpus in part.corpora:
        for name in part.settings.explain:
            key = {"corpus": corpus, "classifier": name}
            if not lake.card("saliency", key) or not lake.card("classifier_predictions", key):
                continue
            table = lake.read("saliency", key)
            even = {kind: evenness([np.array(shares) for shares in table[kind].to_pylist()]) for kind in KINDS}
            examples = highlighted(table, lake.read("classifier_predictions", key), part.settings.examples)
            sections.append(
                {
                    "key": key,
                    "texts": len(set(table["text_id"].to_pylist())),
                    "js": {kind: float(np.mean(table[f"js_{kind}"].to_numpy())) for kind in ("l2x", "gradients")},
                    "agreement": agreement(table),
                    "evenness": even,
                    "flat": max(even["label_l2x"], even["group_l2x"]) > _FLAT,
                    "top": {kind: top_words(table, kind) for kind in KINDS},
                    "examples": examples,
                }
            )
    return sections
