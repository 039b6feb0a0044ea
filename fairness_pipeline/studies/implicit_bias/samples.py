"""The texts behind the verdicts on a classifier."""

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.measures.classifiers.group_rates import DP, FN, FP
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.workspace.lake import Key, Lake


def samples(part: ImplicitBiasPart, lake: Lake, key: Key) -> Samples:
    """Every text that the classifier has labelled, on the side of its author's group.

    A value is the share of trainings in which the text counts for the measure; NaN where the measure leaves it out.
    """
    names = part.corpora[key["corpus"]].labels.names
    trained = lake.read("classifier_predictions", key)
    table = trained.group_by(["text_id", "author_id", "author_group", "label"], use_threads=False).aggregate(
        [("prediction", "mean")]
    )
    seeds = trained.num_rows // max(1, table.num_rows)
    corpus = lake.read("authored_texts", {"corpus": key["corpus"]})
    texts = pc.take(corpus["text"], pc.index_in(table["text_id"], corpus["text_id"])).to_pylist()
    of_a = np.asarray(pc.equal(table["author_group"], "a"))
    label, said = np.asarray(table["label"]), np.asarray(table["prediction_mean"])
    answers = [
        f"labelled {names[0]} in {own * seeds:.0f} of {seeds} trainings, truly {names[1 - true]}"
        if seeds > 1
        else f"labelled {names[1 - round(own)]}, truly {names[1 - true]}"
        for own, true in zip(said, label, strict=True)
    ]
    return Samples.of(
        {
            "id": table["text_id"],
            "word": [names[1 - true] for true in label],
            "asked_a": _where(of_a, texts),
            "answer_a": _where(of_a, answers),
            "asked_b": _where(~of_a, texts),
            "answer_b": _where(~of_a, answers),
        },
        {
            name: (np.where(of_a & counted, found, np.nan), np.where(~of_a & counted, found, np.nan))
            for name, counted, found in (
                (FP, label == 0, said),
                (FN, label == 1, 1 - said),
                (DP, np.full(len(label), True), said),
            )
        },
        # Several trainings vary, too, which no pair of texts shows: their changes are told by the verdicts' intervals.
        [np.asarray(table["author_id"].combine_chunks().dictionary_encode().indices)] if seeds == 1 else None,
    )


def _where(kept: np.ndarray, texts: list[str]) -> list[str | None]:
    return [text if own else None for own, text in zip(kept, texts, strict=True)]
