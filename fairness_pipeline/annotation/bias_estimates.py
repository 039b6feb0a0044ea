"""Sensitivities and specificities of annotators and of their groups (Liu 2022, table 5.4)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.annotation.inference import draws, people, task_table
from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_anno import SIDES, GroupAnno
from fairness_pipeline.annotation.truth_inference.registry import METHODS, method
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.corpora.annotators.annotations import ANNOTATIONS, ANNOTATORS
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.statistics.corrections import holm

if TYPE_CHECKING:
    import pandas as pd

ANNOTATOR, GROUP, CONTRAST = "annotator", "group", "contrast"
BIAS_ESTIMATES = schema(
    **fields(ANNOTATIONS, "draw"),
    kind=(pa.string(), "annotator, group, or contrast (first group minus second)"),
    **fields(ANNOTATORS, "category"),
    name=(pa.string(), "the annotator, or the group"),
    response=(
        pa.string(),
        "sensitivity (share of positive items called positive) or specificity (of negative ones negative); of several "
        "classes the class whose items are called so",
    ),
    value=(pa.float64(), "the estimate; of scores the mean over draws or seeds"),
    ci_low=optional(pa.float64(), "lower end of the 95% interval: of a difference, of a contrast, of a score"),
    ci_high=optional(pa.float64(), "upper end of that interval"),
    **fields(COMPARISON, "p"),
    p_holm=optional(pa.float64(), "p adjusted by Holm: over a corpus's categories, or over a draw's contrasts"),
    labels=optional(pa.float64(), "labels that it rests on"),
    truth=optional(pa.float64(), "the simulated value"),
    published=optional(pa.float64(), "what the thesis' GroupAnno gave"),
)
"""The estimates for each annotator and each group, and, for GroupAnno only, the contrast of each category's groups
with its interval. p is adjusted over the contrasts of a draw. `labels`: the number of labels that an annotator's or
a group's value rests on."""


def pooled(
    name: str, truths: pa.Table, annotations: pa.Table, annotators: pa.Table, corpus: AnnotatedCorpus
) -> pa.Table:
    """A table of `BIAS_ESTIMATES`: the pooled labels of an annotator or a group, compared with the inferred truth.

    Args:
        name: The method. If it gives no probabilities, its labels count as the truth.
        truths: As `INFERRED`.
        annotations: As `ANNOTATIONS`.
        annotators: As `ANNOTATORS`.
        corpus: The corpus, which names its groups.
    """
    rows = []
    for draw, (inferred, labels, who) in draws(truths, annotations, annotators):
        own = Labels.of(task_table(labels), len(corpus.labels.class_names))
        table = inferred.to_pandas().set_index("item_id").reindex(own.items)
        sure = np.stack(table["probabilities"]) if METHODS[name].probabilistic else np.eye(own.classes)[table["label"]]
        values = {}
        for response, number in _responses(corpus):
            p = sure[own.item, number]
            values[response] = p, p * (own.label == number)
        sums = {response: tuple(own.of_annotators(each) for each in two) for response, two in values.items()}
        given = np.bincount(own.annotator, minlength=len(own.annotators)).astype(float)
        true = _simulated(who)
        for response, (of, right) in sums.items():
            rates = np.where(of > 0, right / np.maximum(of, 1e-12), np.nan)
            rows += _of_annotators(draw, response, own.annotators, rates, given, true)
            for category, sides in people(who).items():
                side = sides.reindex(own.annotators).to_numpy()
                for mark, group in zip("ab", corpus.groups[str(category)], strict=True):
                    inside = side == mark
                    if of[inside].sum() > 0:
                        value = float(right[inside].sum() / of[inside].sum())
                        rows.append(
                            _row(draw, GROUP, str(category), group, response, value, float(given[inside].sum()))
                        )
    return pa.Table.from_pylist(rows, schema=BIAS_ESTIMATES)


def _responses(corpus: AnnotatedCorpus) -> list[tuple[str, int]]:
    """What is estimated, and of which class: how many of its items are said to be of it."""
    if corpus.several:
        return [(name, number) for number, name in enumerate(corpus.labels.class_names)]
    return [(SIDES[0], 1), (SIDES[1], 0)]


def of_model(
    name: str,
    settings: Mapping[str, Any],
    annotations: pa.Table,
    annotators: pa.Table,
    corpus: AnnotatedCorpus,
    published: Mapping[tuple[str, str], float],
    progress: Progress | None,
) -> pa.Table:
    """A table of `BIAS_ESTIMATES` by a model of groups. A group's value is the mean level plus its own effect.

    Args:
        name: The name of the method.
        settings: Arguments that differ from the method's defaults.
        annotations: As `ANNOTATIONS`.
        annotators: As `ANNOTATORS`.
        corpus: The corpus, which names its groups and holds their simulated parameters.
        published: The contrasts that the thesis prints, by category and response.
        progress: Receives the number of draws done.
    """
    rows = []
    for draw, (labels, who) in draws(annotations, annotators):
        report(progress, draw - 1, None, f"draw {draw}")
        known, data = people(who), task_table(labels)
        model = method(name, settings, known).fit(data, len(corpus.labels.class_names))
        assert isinstance(model, GroupAnno)
        given = data["worker"].value_counts()
        true = _simulated(who)
        said = {str(number) if corpus.several else response: response for response, number in _responses(corpus)}
        spoken = {column: said[column] for column in model.recognised_.columns}
        for column, response in spoken.items():
            rates = model.recognised_[column]
            counts = given.reindex(rates.index).to_numpy().astype(float)
            rows += _of_annotators(draw, response, rates.index, rates.to_numpy(), counts, true)
            for category, mark in model.effects_.index:
                group = corpus.groups[category]["ab".index(mark)]
                value = model.level_[column] + float(model.effects_.loc[(category, mark), column])
                count = float(given[given.index.isin(known.index[known[category] == mark])].sum())
                rows.append(_row(draw, GROUP, category, group, response, value, count))
        contrasts = model.contrasts()
        adjusted = holm([own.p_zero() for own in contrasts.values()])
        for ((category, column), own), p_holm in zip(contrasts.items(), adjusted, strict=True):
            response = spoken[column]
            low, high = own.interval(0.95)
            a, b = corpus.groups[category]
            row = _row(draw, CONTRAST, category, f"{a} - {b}", response, own.centre, None)
            row |= {"ci_low": low, "ci_high": high, "p": own.p_zero(), "p_holm": p_holm}
            if corpus.simulated:
                first, second = getattr(corpus.simulated.categories[category], response)
                row["truth"] = first - second
            rows.append(row | {"published": published.get((category, response))})
    return pa.Table.from_pylist(rows, schema=BIAS_ESTIMATES)


def _of_annotators(
    draw: int, response: str, names: "pd.Index", values: np.ndarray, given: np.ndarray, true: "pd.DataFrame"
) -> list[dict[str, Any]]:
    truths = true[response].reindex(names).to_numpy() if response in true else np.full(len(names), np.nan)
    return [
        _row(draw, ANNOTATOR, "", str(name), response, float(value), float(count))
        | {"truth": None if np.isnan(truth) else float(truth)}
        for name, value, count, truth in zip(names, values, given, truths, strict=True)
        if np.isfinite(value)
    ]


def _row(
    draw: int, kind: str, category: str, name: str, response: str, value: float, labels: float | None
) -> dict[str, Any]:
    return {
        "draw": draw, "kind": kind, "category": category, "name": name, "response": response, "value": value,
        "labels": labels,
    }  # fmt: skip


def _simulated(annotators: pa.Table) -> "pd.DataFrame":
    """The true rates of simulated annotators. NaN for real ones."""
    columns = ["annotator_id", *SIDES]
    rows = annotators.select(columns).to_pandas().drop_duplicates("annotator_id").set_index("annotator_id")
    return rows.astype(float)
