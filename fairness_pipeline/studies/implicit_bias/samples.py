"""The texts behind the verdicts on a classifier, for the viewer."""

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.measures.classifiers.group_rates import DP, FN, FP
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.workspace.lake import Key, Lake


def samples(part: ImplicitBiasPart, lake: Lake, key: Key) -> Samples:
    """Every text that the classifier has labelled, on the side of its author's group; the first training's labels."""
    names = part.corpora[key["corpus"]].labels.names
    table = lake.read("classifier_predictions", key)
    table = table.filter(pc.equal(table["seed"], pc.min(table["seed"])))
    corpus = lake.read("authored_texts", {"corpus": key["corpus"]})
    place = pc.index_in(table["text_id"], corpus["text_id"])
    texts = pc.take(corpus["text"], place).to_pylist()
    of_a = np.asarray(pc.equal(table["author_group"], "a"))
    label, said = (np.asarray(table[name]) for name in ("label", "prediction"))
    answers = [f"labelled {names[1 - own]}, is {names[1 - true]}" for own, true in zip(said, label, strict=True)]
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
                (FP, label == 0, said == 1),
                (FN, label == 1, said == 0),
                (DP, np.full(len(label), True), said == 1),
            )
        },
    )


def _where(kept: np.ndarray, texts: list[str]) -> list[str | None]:
    return [text if own else None for own, text in zip(kept, texts, strict=True)]
