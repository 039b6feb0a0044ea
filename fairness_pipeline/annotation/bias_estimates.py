"""What annotators and their groups do: rates, differences, and which class is said of which (Liu 2022, table 5.4)."""

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
"""The estimates for each annotator and each group. A model of groups adds contrasts of its groups with intervals, and
which classes they say, modelled beside raw. Values are probabilities but for `sum`, and `contrast` by GroupAnno."""
_SURE = 0.98
"""A group's sum in GroupAnno beyond this is no probability that its labels could show."""


def exceeds(rows: list[dict[str, Any]]) -> bool:
    """Whether a group's sum in GroupAnno is beyond what labels can show, so that its contrast is no difference of
    probabilities."""
    return any(row["kind"] == SUM and row["value"] > _SURE for row in rows)


def pooled(
    name: str, truths: pa.Table, annotations: pa.Table, annotators: pa.Table, corpus: AnnotatedCorpus
) -> pa.Table:
    """A table of `BIAS_ESTIMATES`: the pooled labels of an annotator or a group, compared with the inferred truth.

    Args:
        name: The method. If it gives no probabilities, its labels count as the truth.
        truths: As `INFERRED`.
        annotations: As `ANNOTATIONS`.
        annotators: As `ANNOTATORS`.
        corpus: The corpus, which names its classes.
    """
    rows: list[dict[str, Any]] = []
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
        true, groups = _simulated(who), people(who).reindex(own.annotators)
        for response, (of, right) in sums.items():
            rates = np.where(of > 0, right / np.maximum(of, 1e-12), np.nan)
            rows += _of_annotators(draw, response, own.annotators, rates, given, true)
            for category in groups.columns:
                levels = levels_of(groups[category])
                for place, group in enumerate(levels.names):
                    inside = levels.code == place
                    if of[inside].sum() > 0:
                        value = float(right[inside].sum() / of[inside].sum())
                        count = float(given[inside].sum())
                        rows.append(_row(draw, GROUP, str(category), group, response, value, count))
    return pa.Table.from_pylist(rows, schema=BIAS_ESTIMATES)


def _responses(corpus: AnnotatedCorpus) -> list[tuple[str, int]]:
    """What is estimated, and of which class: how many of its items are said to be of it."""
    if corpus.several:
        return [(name, number) for number, name in enumerate(corpus.labels.class_names)]
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

    Args:
        name: The name of the method.
        settings: Arguments that differ from the method's defaults.
        annotations: As `ANNOTATIONS`.
        annotators: As `ANNOTATORS`.
        corpus: The corpus, which names its classes and holds its simulated parameters.
        published: The contrasts of sums that the thesis prints, by category and response.
        progress: Receives the number of draws done.
    """
    rows: list[dict[str, Any]] = []
    for draw, (labels, who) in draws(annotations, annotators):
        report(progress, draw - 1, None, f"draw {draw}")
        known, data = people(who), task_table(labels)
        model = method(name, settings, known).fit(data, len(corpus.labels.class_names))
        assert isinstance(model, GroupAnno | GroupBeta)
        fitted = _Fitted(model, draw, data, corpus)
        rows += fitted.rates(_simulated(who))
        rows += _with_p(fitted.contrasts(known, published), fitted.omnibus())
        rows += fitted.classes_said()
    return pa.Table.from_pylist(rows, schema=BIAS_ESTIMATES)


def _with_p(contrasts: list[dict[str, Any]], omnibus: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with adjusted p: Holm over the contrasts of two groups and the omnibus tests of more; pairs of these by
    Holm among themselves, where their omnibus test rejects."""
    of_more = {(row["category"], row["response"]): row for row in omnibus}
    family = [row for row in contrasts if (row["category"], row["response"]) not in of_more] + omnibus
    for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
        row["p_holm"] = p
    for place, whole in of_more.items():
        pairs = [row for row in contrasts if (row["category"], row["response"]) == place]
        for row, p in zip(pairs, holm([row["p"] for row in pairs]), strict=True):
            row["p_holm"] = max(p, whole["p_holm"])
    return omnibus + contrasts


@dataclass(frozen=True)
class _Fitted:
    """A model of groups, fitted to one draw, and what its rows need."""

    model: GroupAnno | GroupBeta
    draw: int
    data: "pd.DataFrame"
    corpus: AnnotatedCorpus

    def _name(self, column: str) -> str:
        """The response, or the class, that a column of the model is about."""
        return self.corpus.labels.class_names[int(column)] if self.corpus.several else column

    def _given(self) -> "pd.Series":
        return self.data["worker"].value_counts()

    def rates(self, true: "pd.DataFrame") -> list[dict[str, Any]]:
        """Of annotators and groups; of GroupAnno the groups' sums, too."""
        model, given, rows = self.model, self._given(), list[dict[str, Any]]()
        for column in model.recognised_.columns:
            rates = model.recognised_[column]
            counts = given.reindex(rates.index).to_numpy().astype(float)
            rows += _of_annotators(self.draw, self._name(column), rates.index, rates.to_numpy(), counts, true)
        counts = given.reindex(model.recognised_.index).to_numpy().astype(float)
        for own in model.level_means():
            levels = model.design_.levels[own.category]
            count = float(counts[levels.code == levels.names.index(own.group)].sum())
            row = _row(self.draw, GROUP, own.category, own.group, self._name(own.response), own.value, count)
            rows.append(row | {"ci_low": own.low, "ci_high": own.high})
            if isinstance(model, GroupAnno):
                effects = model.effects_[own.response]
                value = model.level_[own.response] + float(effects[own.category, own.group])
                rows.append(row | {"kind": SUM, "value": value})
        return rows

    def contrasts(self, known: "pd.DataFrame", published: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
        """Each group minus each later one."""
        rows = []
        for own in self.model.contrasts():
            response, estimate = self._name(own.response), own.estimate
            low, high = estimate.interval(0.95)
            row = _row(
                self.draw, CONTRAST, own.category, f"{own.first} - {own.second}", response, estimate.centre, None
            )
            of_sums = isinstance(self.model, GroupAnno)
            low, high = (low, high) if of_sums else (max(-1.0, low), min(1.0, high))
            row |= {"ci_low": low, "ci_high": high, "p": estimate.p_zero(), "truth": self._truth(own, known)}
            rows.append(row | {"published": published.get((own.category, response)) if of_sums else None})
        return rows

    def _truth(self, own: GroupContrast, known: "pd.DataFrame") -> float | None:
        """The simulated difference of sums, or of probabilities."""
        if not self.corpus.simulated:
            return None
        if isinstance(self.model, GroupAnno):
            first, second = getattr(self.corpus.simulated.categories[own.category], own.response)
            return float(first - second)
        places = np.stack([known[name].cat.codes.to_numpy() for name in self.corpus.simulated.categories], axis=1)
        return true_contrast(self.corpus.simulated, places, own.category, own.response)

    def omnibus(self) -> list[dict[str, Any]]:
        """Of categories of three groups or more; the difference is the largest."""
        model = self.model
        if not isinstance(model, GroupBeta) or all(len(own.names) < 3 for own in model.design_.levels.values()):
            return []
        means = model.level_means()
        rows = []
        for (category, response), p in model.omnibus().items():
            if len(model.design_.levels[category].names) > 2:
                values = [own.value for own in means if (own.category, own.response) == (category, response)]
                row = _row(self.draw, OMNIBUS, category, "", response, max(values) - min(values), None)
                rows.append(row | {"p": p})
        return rows

    def classes_said(self) -> list[dict[str, Any]]:
        """Of each group, of the items of each class and of all items, how often it says each class: by the model, and
        among its labels."""
        model, names = self.model, self.corpus.labels.class_names
        labels, p = Labels.of(self.data, len(names)), model.probas_.to_numpy()
        sure = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        counts, prevalence = labels.confusion(sure), sure.mean(axis=0)
        means = {(own.category, own.group, own.response): own.value for own in model.level_means()}
        rows = []
        for category, levels in model.design_.levels.items():
            for place, group in enumerate(levels.names):
                given = counts[levels.code == place].sum(axis=0)
                raw = np.vstack([given, given.sum(axis=0)])
                of_class = self._confusion([means.get((category, group, c), 0.0) for c in self._columns()])
                modelled = np.vstack([of_class, prevalence @ of_class])
                shares = raw / np.maximum(raw.sum(axis=1, keepdims=True), 1e-12)
                for of, name in enumerate((*names, "")):
                    if raw[of].sum() < 1:  # nothing tells what they say of a class that hardly occurs
                        continue
                    for said, other in enumerate(names):
                        kind, value = CONFUSION if name else SAID, float(modelled[of, said])
                        row = _row(self.draw, kind, category, group, name, value, float(raw[of].sum()))
                        rows.append(row | {"said": other, "raw": float(shares[of, said])})
        return rows

    def _columns(self) -> tuple[str, ...]:
        """The columns of the model that say how often each class is recognised, from 0."""
        return tuple(map(str, range(len(self.corpus.labels.class_names)))) if self.corpus.several else RESPONSES[::-1]

    def _confusion(self, recognised: list[float]) -> np.ndarray:
        """(classes, classes) P(z = second | y = first), by how often each class is recognised."""
        wrong = self.model.wrong_ if isinstance(self.model, GroupAnno) else 1.0 - np.eye(2)
        return np.asarray(np.diag(recognised) + (1 - np.array(recognised))[:, None] * wrong)


def _of_annotators(
    draw: int, response: str, names: "pd.Index", values: np.ndarray, given: np.ndarray, true: "pd.DataFrame"
) -> Iterator[dict[str, Any]]:
    truths = true[response].reindex(names).to_numpy() if response in true else np.full(len(names), np.nan)
    for name, value, count, truth in zip(names, values, given, truths, strict=True):
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
