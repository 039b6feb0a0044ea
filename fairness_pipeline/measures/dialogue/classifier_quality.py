"""Evaluates the offence classifiers on texts labelled by people, by the group that a text names."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.corpora.labelled_texts import LabelledText
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lexicons.dimensions import Words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.workspace.distinct import each_distinct

CLASSIFIER_QUALITY = schema(
    classifier=(pa.string(), "that is compared with the labelled texts"),
    group=(pa.string(), "all texts, or those that name one side alone"),
    metric=(pa.string(), "recall, precision or false_positive_rate"),
    n=(pa.int64(), "texts that the metric is about"),
    value=(pa.float64(), "the metric's value, in percent of them"),
    ci_low=(pa.float64(), "lower end of its 95% interval"),
    ci_high=(pa.float64(), "upper end of its 95% interval"),
)
"""`recall` is over texts that people call offensive, `precision` over texts that the classifier calls offensive, and
`false_positive_rate` over texts that people do not call offensive. Intervals are Wilson's."""


def evaluate_classifiers(
    texts: list[LabelledText],
    scorers: Mapping[str, PolitenessScorer],
    words: Words,
    groups: tuple[str, str],
    progress: Progress | None = None,
) -> pa.Table:
    """A table of `CLASSIFIER_QUALITY`.

    Args:
        texts: Labelled texts. Only held-out texts count, so that no classifier is tested on its training texts.
        scorers: The classifiers, by name.
        words: The words that name the groups.
        groups: The groups' names.
        progress: Receives the number of texts scored.
    """
    held_out = [text for text in texts if text.held_out]
    column = pa.array([text.text for text in held_out], pa.string())
    labels = np.array([text.offensive for text in held_out], dtype=bool)
    sides = np.array([side or "none" for _, side in Swapper(words, pronouns="extended").find_all(column)])
    named = {"all": np.ones(len(held_out), dtype=bool), groups[0]: sides == "a", groups[1]: sides == "b"}
    rows = []
    for name, scorer in scorers.items():
        offensive = each_distinct(column, scorer, progress=progress, note=name)["offensive"]
        predicted = offensive.to_numpy(zero_copy_only=False).astype(bool)
        for group, members in named.items():
            for row in _metrics(labels[members], predicted[members]):
                rows.append({"classifier": name, "group": group, **row})
    return pa.Table.from_pylist(rows, schema=CLASSIFIER_QUALITY)


def _metrics(labels: np.ndarray, predicted: np.ndarray) -> Iterator[dict[str, Any]]:
    for metric, denominator, hits in (
        ("recall", labels, predicted),
        ("precision", predicted, labels),
        ("false_positive_rate", ~labels, predicted),
    ):
        n, count = int(denominator.sum()), int((denominator & hits).sum())
        if n:
            interval = scipy.stats.binomtest(count, n).proportion_ci(method="wilson")
            low, high = 100 * interval.low, 100 * interval.high
            yield {"metric": metric, "n": n, "value": 100 * count / n, "ci_low": low, "ci_high": high}
