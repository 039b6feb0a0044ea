"""Collects the texts behind the verdicts on a classifier."""

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.corpora.classifiers.authored_corpus import LETTERS
from fairness_pipeline.measures.classifiers.group_rates import DP, FN, FP
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.statistics.welch import OTHERS
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.studies.implicit_bias.study import rate_of
from fairness_pipeline.workspace.lake import Key, Lake, Row


def samples(part: ImplicitBiasPart, lake: Lake, key: Key) -> Samples:
    """Every text that the classifier labelled, on the side of its author's group; with more than two groups, on the
    side that the verdict gives this group.

    A value is the share of trainings in which the text counts for the measure; NaN if the measure leaves it out.
    """
    names = part.corpora[key["corpus"]].labels.names
    predictions = lake.read("classifier_predictions", key)
    table = predictions.group_by(["text_id", "author_id", "author_group", "label"], use_threads=False).aggregate(
        [("prediction", "mean")]
    )
    seeds = predictions.num_rows // max(1, table.num_rows)
    corpus = lake.read("authored_texts", {"corpus": key["corpus"]})
    texts = pc.take(corpus["text"], pc.index_in(table["text_id"], corpus["text_id"])).to_pylist()
    group = np.asarray([LETTERS.index(letter) for letter in table["author_group"].to_pylist()])
    label, predicted = np.asarray(table["label"]), np.asarray(table["prediction_mean"])
    answers = [
        f"labelled {names[0]} in {share * seeds:.0f} of {seeds} trainings, truly {names[1 - true]}"
        if seeds > 1
        else f"labelled {names[1 - round(share)]}, truly {names[1 - true]}"
        for share, true in zip(predicted, label, strict=True)
    ]
    groups = part.corpora[key["corpus"]].groups.names
    rows = lake.read("classifier_fairness", key).to_pylist()
    sides = {row["measure"]: _sides(row, group, groups) for row in rows}
    counted = {FP: (label == 0, predicted), FN: (label == 1, 1 - predicted), DP: (np.full(len(label), True), predicted)}
    by_measure = {row["measure"]: counted[rate_of(row)] for row in rows}
    on_side = [np.logical_or.reduce([masks[side] for masks in sides.values()]) for side in (0, 1)]
    return Samples.of(
        {
            "id": table["text_id"],
            "word": [names[1 - true] for true in label],
            "asked_a": _texts_on_side(on_side[0], texts),
            "answer_a": _texts_on_side(on_side[0], answers),
            "asked_b": _texts_on_side(on_side[1], texts),
            "answer_b": _texts_on_side(on_side[1], answers),
        },
        {
            name: (
                np.where(a & by_measure[name][0], by_measure[name][1], np.nan),
                np.where(b & by_measure[name][0], by_measure[name][1], np.nan),
            )
            for name, (a, b) in sides.items()
        },
        # Several trainings also vary, which pairs of texts cannot show: no change is tested over the texts then.
        [np.asarray(table["author_id"].combine_chunks().dictionary_encode().indices)] if seeds == 1 else None,
    )


def _texts_on_side(on_side: np.ndarray, texts: list[str]) -> list[str | None]:
    return [text if visible else None for visible, text in zip(on_side, texts, strict=True)]


def _sides(row: Row, group: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Which texts a row compares: those of its group, and those of the group or groups against it."""
    in_group = group == names.index(row["group"])
    return in_group, ~in_group if row["contrast"] == OTHERS else group == names.index(row["against"])
