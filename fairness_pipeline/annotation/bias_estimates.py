"""Estimates the rates, differences and confusions of annotators and their groups (Liu 2022, table 5.4)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.annotation.inference import draws, people, task_table
from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_anno import GroupAnno
from fairness_pipeline.annotation.truth_inference.group_beta import GroupBeta
from fairness_pipeline.annotation.truth_inference.group_design import RESPONSES, GroupContrast, levels_of
from fairness_pipeline.annotation.truth_inference.registry import METHODS, method
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.corpora.annotators.annotations import ANNOTATIONS, ANNOTATORS
from fairness_pipeline.corpora.annotators.simulated_annotations import true_contrast
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.statistics.corrections import holm

if TYPE_CHECKING:
    import pandas as pd

ANNOTATOR, GROUP, SUM, CONTRAST, OMNIBUS = "annotator", "group", "sum", "contrast", "omnibus"
CONFUSION, SAID = "confusion", "said"
BIAS_ESTIMATES = schema(
    **fields(ANNOTATIONS, "draw"),
    kind=(
        pa.string(),
        "annotator; group; sum (u + effect in the thesis' sum, no probability); contrast (first group minus second: of "
        "probabilities by GroupBeta, of sums by GroupAnno); omnibus (of three groups or more: no group differs); "
        "confusion (of a class's items, said to be of another); said (of all items)",
    ),
    **fields(ANNOTATORS, "category"),
    name=(pa.string(), "the annotator, or the group"),
    response=(
        pa.string(),
        "sensitivity (share of positive items called positive) or specificity (of negative ones negative); of several "
        "classes the class whose items are called so; of confusion the class of the items",
    ),
    said=(pa.string(), "of confusion and said: the class that is said; else empty"),
    value=(pa.float64(), "the estimate; of an omnibus test the largest difference; of scores the mean over draws"),
    raw=optional(pa.float64(), "of confusion and said: the share among the labels, by the inferred truth"),
    ci_low=optional(pa.float64(), "lower end of the 95% interval: of a difference, of a contrast, of a score"),
    ci_high=optional(pa.float64(), "upper end of that interval"),
    **fields(COMPARISON, "p"),
    p_holm=optional(
        pa.float64(),
        "p adjusted by Holm: over a corpus's categories, or over a draw's tests of groups; of a pair of three groups "
        "or more at least that of their omnibus test",
    ),
    labels=optional(pa.float64(), "labels that it rests on"),
    truth=optional(pa.float64(), "the simulated value"),
    published=optional(pa.float64(), "what the thesis' GroupAnno gave"),
)
_LARGEST_SUM = 0.98
"""Labels cannot show a larger sum of a group in GroupAnno, so it is no probability."""


def exceeds(rows: list[dict[str, Any]]) -> bool:
    """Whether a group's sum in GroupAnno is larger than labels can show; its contrast is then no difference of
    probabilities."""
    return any(row["kind"] == SUM and row["value"] > _LARGEST_SUM for row in rows)


def pooled(
    name: str, truths: pa.Table, annotations: pa.Table, annotators: pa.Table, corpus: AnnotatedCorpus
) -> pa.Table:
    """A table of `BIAS_ESTIMATES`: the pooled labels of an annotator or a group, compared with the inferred truth.

    The labels of a method without probabilities count as the truth.
    """
    rows: list[dict[str, Any]] = []
    for draw, (truth_rows, annotation_rows, annotator_rows) in draws(truths, annotations, annotators):
        labels = Labels.of(task_table(annotation_rows), len(corpus.labels.class_names))
        table = truth_rows.to_pandas().set_index("item_id").reindex(labels.items)
        probas = (
            np.stack(table["probabilities"]) if METHODS[name].probabilistic else np.eye(labels.classes)[table["label"]]
        )
        values = {}
        for response, label in _responses(corpus):
            p = probas[labels.item, label]
            values[response] = p, p * (labels.label == label)
        sums = {response: tuple(labels.of_annotators(amounts) for amounts in pair) for response, pair in values.items()}
        label_counts = np.bincount(labels.annotator, minlength=len(labels.annotators)).astype(float)
        true_rates, groups = _simulated(annotator_rows), people(annotator_rows).reindex(labels.annotators)
        for response, (total, right) in sums.items():
            rates = np.where(total > 0, right / np.maximum(total, 1e-12), np.nan)
            rows += _of_annotators(draw, response, labels.annotators, rates, label_counts, true_rates)
            for category in groups.columns:
                levels = levels_of(groups[category])
                for level, group in enumerate(levels.names):
                    inside = levels.code == level
                    if total[inside].sum() > 0:
                        value = float(right[inside].sum() / total[inside].sum())
                        count = float(label_counts[inside].sum())
                        rows.append(_row(draw, GROUP, str(category), group, response, value, count))
    return pa.Table.from_pylist(rows, schema=BIAS_ESTIMATES)


def _responses(corpus: AnnotatedCorpus) -> list[tuple[str, int]]:
    """The name of each recognition rate, and its class."""
    if corpus.several:
        return [(name, label) for label, name in enumerate(corpus.labels.class_names)]
    return [(RESPONSES[0], 1), (RESPONSES[1], 0)]


def of_model(
    name: str,
    settings: Mapping[str, Any],
    annotations: pa.Table,
    annotators: pa.Table,
    corpus: AnnotatedCorpus,
    published: Mapping[tuple[str, str], float],
    progress: Progress | None,
) -> pa.Table:
    """A table of `BIAS_ESTIMATES` by a model of groups.

    `published` holds the contrasts of sums that the thesis prints, by category and response.
    """
    rows: list[dict[str, Any]] = []
    for draw, (annotation_rows, annotator_rows) in draws(annotations, annotators):
        report(progress, draw - 1, None, f"draw {draw}")
        groups, data = people(annotator_rows), task_table(annotation_rows)
        model = method(name, settings, groups).fit(data, len(corpus.labels.class_names))
        assert isinstance(model, GroupAnno | GroupBeta)
        fitted = _Fitted(model, draw, data, corpus)
        rows += fitted.rates(_simulated(annotator_rows))
        rows += _with_p(fitted.contrasts(groups, published), fitted.omnibus())
        rows += fitted.confusion_rows()
    return pa.Table.from_pylist(rows, schema=BIAS_ESTIMATES)


def _with_p(contrasts: list[dict[str, Any]], omnibus: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows with p adjusted by Holm, over the contrasts of two groups and the omnibus tests of more. Pairs
    of three groups or more are adjusted among themselves; their p is at least that of their omnibus test."""
    omnibus_rows = {(row["category"], row["response"]): row for row in omnibus}
    family = [row for row in contrasts if (row["category"], row["response"]) not in omnibus_rows] + omnibus
    for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
        row["p_holm"] = p
    for key, omnibus_row in omnibus_rows.items():
        pairs = [row for row in contrasts if (row["category"], row["response"]) == key]
        for row, p in zip(pairs, holm([row["p"] for row in pairs]), strict=True):
            row["p_holm"] = max(p, omnibus_row["p_holm"])
    return omnibus + contrasts


@dataclass(frozen=True)
class _Fitted:
    """A model of groups that is fitted to one draw, with the inputs of its rows."""

    model: GroupAnno | GroupBeta
    draw: int
    data: "pd.DataFrame"
    corpus: AnnotatedCorpus

    def _name(self, column: str) -> str:
        """The response, or the class, of a column of the model."""
        return self.corpus.labels.class_names[int(column)] if self.corpus.several else column

    def _label_counts(self) -> "pd.Series":
        return self.data["worker"].value_counts()

    def rates(self, true_rates: "pd.DataFrame") -> list[dict[str, Any]]:
        """The rows of annotators and groups; for GroupAnno also the groups' sums."""
        model, label_counts, rows = self.model, self._label_counts(), list[dict[str, Any]]()
        for column in model.recognised_.columns:
            rates = model.recognised_[column]
            counts = label_counts.reindex(rates.index).to_numpy().astype(float)
            rows += _of_annotators(self.draw, self._name(column), rates.index, rates.to_numpy(), counts, true_rates)
        counts = label_counts.reindex(model.recognised_.index).to_numpy().astype(float)
        for mean in model.level_means():
            levels = model.design_.levels[mean.category]
            count = float(counts[levels.code == levels.names.index(mean.group)].sum())
            row = _row(self.draw, GROUP, mean.category, mean.group, self._name(mean.response), mean.value, count)
            rows.append(row | {"ci_low": mean.low, "ci_high": mean.high})
            if isinstance(model, GroupAnno):
                effects = model.effects_[mean.response]
                value = model.level_[mean.response] + float(effects[mean.category, mean.group])
                rows.append(row | {"kind": SUM, "value": value})
        return rows

    def contrasts(self, groups: "pd.DataFrame", published: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
        """The rows of contrasts: each group minus each later one."""
        rows = []
        for contrast in self.model.contrasts():
            response, estimate = self._name(contrast.response), contrast.estimate
            low, high = estimate.interval(0.95)
            row = _row(
                self.draw,
                CONTRAST,
                contrast.category,
                f"{contrast.first} - {contrast.second}",
                response,
                estimate.centre,
                None,
            )
            of_sums = isinstance(self.model, GroupAnno)
            low, high = (low, high) if of_sums else (max(-1.0, low), min(1.0, high))
            row |= {"ci_low": low, "ci_high": high, "p": estimate.p_zero(), "truth": self._truth(contrast, groups)}
            rows.append(row | {"published": published.get((contrast.category, response)) if of_sums else None})
        return rows

    def _truth(self, contrast: GroupContrast, groups: "pd.DataFrame") -> float | None:
        """The simulated difference of sums, or of probabilities."""
        if not self.corpus.simulated:
            return None
        if isinstance(self.model, GroupAnno):
            first, second = getattr(self.corpus.simulated.categories[contrast.category], contrast.response)
            return float(first - second)
        codes = np.stack([groups[name].cat.codes.to_numpy() for name in self.corpus.simulated.categories], axis=1)
        return true_contrast(self.corpus.simulated, codes, contrast.category, contrast.response)

    def omnibus(self) -> list[dict[str, Any]]:
        """The rows of omnibus tests, for categories of three groups or more; the value is the largest difference."""
        model = self.model
        if not isinstance(model, GroupBeta) or all(len(levels.names) < 3 for levels in model.design_.levels.values()):
            return []
        means = model.level_means()
        rows = []
        for (category, response), p in model.omnibus().items():
            if len(model.design_.levels[category].names) > 2:
                values = [mean.value for mean in means if (mean.category, mean.response) == (category, response)]
                row = _row(self.draw, OMNIBUS, category, "", response, max(values) - min(values), None)
                rows.append(row | {"p": p})
        return rows

    def confusion_rows(self) -> list[dict[str, Any]]:
        """The rows of confusions: how often each group gives each label to the items of each class, and to all items,
        by the model and among its labels."""
        model, class_names = self.model, self.corpus.labels.class_names
        labels, p = Labels.of(self.data, len(class_names)), model.probas_.to_numpy()
        probas = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        counts, prevalence = labels.confusion(probas), probas.mean(axis=0)
        means = {(mean.category, mean.group, mean.response): mean.value for mean in model.level_means()}
        rows = []
        for category, levels in model.design_.levels.items():
            for level, group in enumerate(levels.names):
                confusion = counts[levels.code == level].sum(axis=0)
                raw = np.vstack([confusion, confusion.sum(axis=0)])
                recognised = self._confusion([means.get((category, group, c), 0.0) for c in self._columns()])
                modelled = np.vstack([recognised, prevalence @ recognised])
                shares = raw / np.maximum(raw.sum(axis=1, keepdims=True), 1e-12)
                for true_class, name in enumerate((*class_names, "")):
                    if raw[true_class].sum() < 1:  # a class that hardly occurs has too few labels
                        continue
                    for label, label_name in enumerate(class_names):
                        kind, value = CONFUSION if name else SAID, float(modelled[true_class, label])
                        row = _row(self.draw, kind, category, group, name, value, float(raw[true_class].sum()))
                        rows.append(row | {"said": label_name, "raw": float(shares[true_class, label])})
        return rows

    def _columns(self) -> tuple[str, ...]:
        """The model's columns with the recognition rate of each class, from 0."""
        return tuple(map(str, range(len(self.corpus.labels.class_names)))) if self.corpus.several else RESPONSES[::-1]

    def _confusion(self, recognised: list[float]) -> np.ndarray:
        """(classes, classes) P(z = second | y = first), given the recognition rate of each class."""
        wrong = self.model.wrong_ if isinstance(self.model, GroupAnno) else 1.0 - np.eye(2)
        return np.asarray(np.diag(recognised) + (1 - np.array(recognised))[:, None] * wrong)


def _of_annotators(
    draw: int,
    response: str,
    names: "pd.Index",
    values: np.ndarray,
    label_counts: np.ndarray,
    true_rates: "pd.DataFrame",
) -> Iterator[dict[str, Any]]:
    truths = true_rates[response].reindex(names).to_numpy() if response in true_rates else np.full(len(names), np.nan)
    for name, value, count, truth in zip(names, values, label_counts, truths, strict=True):
        if np.isfinite(value):
            row = _row(draw, ANNOTATOR, "", str(name), response, float(value), float(count))
            yield row | {"truth": None if np.isnan(truth) else float(truth)}


def _row(
    draw: int, kind: str, category: str, name: str, response: str, value: float, labels: float | None
) -> dict[str, Any]:
    return {
        "draw": draw, "kind": kind, "category": category, "name": name, "response": response, "said": "",
        "value": value, "labels": labels,
    }  # fmt: skip


def _simulated(annotators: pa.Table) -> "pd.DataFrame":
    """The true rates of simulated annotators. NaN for real ones."""
    columns = ["annotator_id", *RESPONSES]
    rows = annotators.select(columns).to_pandas().drop_duplicates("annotator_id").set_index("annotator_id")
    return rows.astype(float)
