"""The texts behind the verdicts on a classifier."""

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
    """Every text that the classifier has labelled, on the side of its author's group; of more than two groups on the
    side where a verdict has it.

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
    group = np.asarray([LETTERS.index(own) for own in table["author_group"].to_pylist()])
    label, said = np.asarray(table["label"]), np.asarray(table["prediction_mean"])
    answers = [
        f"labelled {names[0]} in {own * seeds:.0f} of {seeds} trainings, truly {names[1 - true]}"
        if seeds > 1
        else f"labelled {names[1 - round(own)]}, truly {names[1 - true]}"
        for own, true in zip(said, label, strict=True)
    ]
    groups = part.corpora[key["corpus"]].groups.names
    rows = lake.read("classifier_fairness", key).to_pylist()
    sides = {row["measure"]: _sides(row, group, groups) for row in rows}
    counted = {FP: (label == 0, said), FN: (label == 1, 1 - said), DP: (np.full(len(label), True), said)}
    of = {row["measure"]: counted[rate_of(row)] for row in rows}
    on = [np.logical_or.reduce([own[side] for own in sides.values()]) for side in (0, 1)]
    return Samples.of(
        {
            "id": table["text_id"],
            "word": [names[1 - true] for true in label],
            "asked_a": _where(on[0], texts),
            "answer_a": _where(on[0], answers),
            "asked_b": _where(on[1], texts),
            "answer_b": _where(on[1], answers),
        },
        {
            name: (np.where(a & of[name][0], of[name][1], np.nan), np.where(b & of[name][0], of[name][1], np.nan))
            for name, (a, b) in sides.items()
        },
        # Several trainings vary, too, which no pair of texts shows: their changes are told by the verdicts' intervals.
        [np.asarray(table["author_id"].combine_chunks().dictionary_encode().indices)] if seeds == 1 else None,
    )


def _where(kept: np.ndarray, texts: list[str]) -> list[str | None]:
    return [text if own else None for own, text in zip(kept, texts, strict=True)]


def _sides(row: Row, group: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Which texts a row compares: those of its group, and those of the group or groups against it."""
    own = group == names.index(row["group"])
    return own, ~own if row["contrast"] == OTHERS else group == names.index(row["against"])
