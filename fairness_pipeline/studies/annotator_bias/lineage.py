"""Study 5: which annotators lean which way, and what would the labels be without it?

The dissertation's chapter 5, "Understanding and Handling Annotator Group Bias in Crowdsourcing" (Liu 2022). Read top to
bottom, this file is the lineage: labels, who gave them, verdicts on groups, inferred truths, biases, scores.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import BIAS_ESTIMATES, of_model, pooled
from fairness_pipeline.annotation.inference import (
    INFERRED,
    PREDICTED,
    beside_gold,
    gold_of,
    inferred,
    people,
    predicted,
    task_table,
)
from fairness_pipeline.annotation.item_classifiers import ItemClassifierSettings
from fairness_pipeline.annotation.label_choice import LABEL_CHOICE, choose_labels
from fairness_pipeline.annotation.truth_inference.group_design import levels_of
from fairness_pipeline.annotation.truth_inference.registry import METHODS, method
from fairness_pipeline.corpora.annotators.annotated_corpus import CROSS, AnnotatedCorpus
from fairness_pipeline.corpora.annotators.annotations import ANNOTATIONS, ANNOTATORS, ITEMS, read_annotated
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import File, unhashed
from fairness_pipeline.lineage.assets import Assets, Result
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.measures.annotators.agreement import LABEL_AGREEMENT, label_agreement
from fairness_pipeline.measures.annotators.annotator_anova import ANNOTATOR_ANOVA, analyse_variance
from fairness_pipeline.measures.annotators.annotator_groups import (
    GROUP_POSITIVE_RATES,
    AnnotatorGroupsSettings,
    Labelled,
    compare_positive_rates,
)
from fairness_pipeline.measures.annotators.truth_scores import PREDICTION, TRUTH, TRUTH_SCORES, scores, truth_scores
from fairness_pipeline.reporting.document import LIBRARIES, Described, Pictures, described, drawn, report_of
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.reporting.text_plot import judged
from fairness_pipeline.studies.annotator_bias import published
from fairness_pipeline.studies.annotator_bias.plots import effects_plot
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.report import render_report
from fairness_pipeline.studies.annotator_bias.results import PAPERS, estimates, group_model
from fairness_pipeline.studies.annotator_bias.study import STUDY
from fairness_pipeline.workspace.lake import Key, Lake
from fairness_pipeline.workspace.published import PublishedRate

asset = Assets(AnnotatorBiasPart)
of_labels = Assets(AnnotatorBiasPart, stage="labels", axes=("corpus",))
of_verdicts = Assets(
    AnnotatorBiasPart, stage="verdicts", axes=("corpus",), covers=lambda part, key: part.grouped(key["corpus"])
)
of_a_method = Assets(AnnotatorBiasPart, axes=("corpus", "method"), covers=lambda part, key: part.infers(key))


@dataclass(frozen=True)
class Source:
    """A corpus, and the files that it is read from."""

    corpus: AnnotatedCorpus
    files: Mapping[str, File]
    folder: Path = unhashed()


def _source(part: AnnotatorBiasPart, key: Key) -> Source:
    name = key["corpus"]
    corpus = part.corpora[name].without("licence", "citation", "published_as", "task", "modelled")
    return Source(corpus, part.files(name), part.folders[name])


def _first_draw(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["draw"], 1))


@of_labels(
    inputs=_source,
    code_version="1",
    schema=ANNOTATIONS,
    checks=(checks.not_empty,),
)
def annotations(source: Source, run: Run) -> Result:
    """The label of each item by each annotator (section 5.2.1)."""
    corpus = read_annotated(source.corpus, source.folder, run.progress)
    first = _first_draw(corpus.annotations)
    classes = source.corpus.labels.class_names
    counts = {row["values"]: row["counts"] for row in pc.value_counts(first["label"]).to_pylist()}
    figures = {
        "labels": first.num_rows,
        "items": len(pc.unique(first["item_id"])),
        "annotators": len(pc.unique(first["annotator_id"])),
        **(
            {"positive": round(counts.get(1, 0) / first.num_rows, 4)}
            if len(classes) == 2
            else {"classes": {name: counts.get(number, 0) for number, name in enumerate(classes)}}
        ),
        "draws": int(pc.max(corpus.annotations["draw"]).as_py()),
        "left_out": corpus.left_out,
    }
    return Result(corpus.annotations, figures, tables={"sample": first.slice(0, 5)})


@of_labels(
    inputs=_source,
    code_version="1",
    schema=ITEMS,
    checks=(checks.not_empty,),
)
def annotated_items(source: Source, run: Run) -> Result:
    """The labelled items, with their gold labels where known."""
    table = read_annotated(source.corpus, source.folder, run.progress).items
    return Result(table, {"gold": table.num_rows - table["gold"].null_count}, tables={"sample": table.slice(0, 5)})


@of_labels(
    inputs=_source,
    code_version="2",
    schema=ANNOTATORS,
    checks=(checks.not_empty,),
)
def annotators(source: Source, run: Run) -> Result:
    """The annotators, and their group in each category."""
    table = read_annotated(source.corpus, source.folder, run.progress).annotators
    first = _first_draw(table)
    counts = Counter((row["category"], row["group"]) for row in first.to_pylist())
    figures = {
        name: {group or "unknown": counts[name, group] for group in (*groups, None)}
        for name, groups in source.corpus.groups.items()
    }
    groups = people(first)
    too_few = {name: few for name in groups.columns if (few := levels_of(groups[name]).too_few)}
    return Result(table, {"groups": figures, "too_few": too_few}, tables={"sample": table.slice(0, 5)})


def _classes(part: AnnotatorBiasPart, key: Key) -> tuple[str, ...]:
    return part.corpora[key["corpus"]].labels.class_names


@dataclass(frozen=True)
class Classes:
    """The number of classes."""

    count: int


@dataclass(frozen=True)
class Compared:
    """How positive rates are compared, in which categories, and the rates that the thesis prints."""

    significance: AnnotatorGroupsSettings
    classes: tuple[str, ...]
    categories: tuple[str, ...]
    published: Mapping[str, PublishedRate]


@of_verdicts(
    inputs=lambda part, key: Compared(
        part.settings.significance,
        _classes(part, key),
        tuple(part.corpora[key["corpus"]].compared),
        published.positive_rates(part.corpora[key["corpus"]]),
    ),
    reads={"labels": annotations, "annotators": annotators},
    code_version="7",
    libraries=("numpy", "scipy"),
    schema=GROUP_POSITIVE_RATES,
    checks=(checks.not_empty, checks.rates_in_range),
    show=judged(STUDY),
)
def group_positive_rates(inputs: Compared, labels: pa.Table, annotators: pa.Table) -> Result:
    """Positive rates of both groups of each category over the items that both labelled, compared (table 5.2)."""
    labelled = Labelled.of(_first_draw(labels), _first_draw(annotators), len(inputs.classes))
    table = compare_positive_rates(labelled, inputs.significance, inputs.published, inputs.classes)
    missing = [name for name in inputs.categories if name not in table["measure"].to_pylist()]
    columns = ["measure", "group", "against", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "p_holm"]
    preview = table.select([*columns, "verdict"])
    return Result(table, {"no_item_of_both_groups": missing}, tables={"significance": preview})


Lines = tuple[tuple[str, str, Any], ...]
"""Values that the thesis prints: category, response, value."""


def _by_line(printed: Lines) -> dict[tuple[str, str], Any]:
    return {(category, response): value for category, response, value in printed}


@dataclass(frozen=True)
class Variance:
    """The number of classes, and table 5.3."""

    classes: int
    published: Lines


@of_verdicts(
    covers=lambda part, key: part.grouped(key["corpus"]) and not part.corpora[key["corpus"]].several,
    inputs=lambda part, key: Variance(
        len(_classes(part, key)),
        tuple((*line, value) for line, value in published.anova(part.corpora[key["corpus"]]).items()),
    ),
    reads={"labels": annotations, "annotators": annotators},
    code_version="3",
    libraries=("numpy", "scipy"),
    schema=ANNOTATOR_ANOVA,
    checks=(checks.not_empty,),
)
def annotator_anova(inputs: Variance, labels: pa.Table, annotators: pa.Table) -> Result:
    """Annotators' sensitivities and specificities against the majority vote, by group (table 5.3)."""
    labelled = Labelled.of(_first_draw(labels), _first_draw(annotators), inputs.classes)
    factors = {name: levels for name, levels in labelled.levels.items() if CROSS not in name}
    table = analyse_variance(labelled._replace(levels=factors), _by_line(inputs.published))
    return Result(table, tables={"anova": table})


@of_labels(
    inputs=lambda part, key: Classes(len(_classes(part, key))),
    reads={"labels": annotations, "annotators": annotators},
    code_version="1",
    libraries=("numpy", "krippendorff"),
    schema=LABEL_AGREEMENT,
    checks=(checks.not_empty,),
)
def label_agreement_by_group(inputs: Classes, labels: pa.Table, annotators: pa.Table) -> Result:
    """Krippendorff's alpha of all annotators and within each group."""
    table = label_agreement(Labelled.of(_first_draw(labels), _first_draw(annotators), inputs.count))
    return Result(table, tables={"agreement": table})


@dataclass(frozen=True)
class Inference:
    """A method of truth inference with its settings, and the categories that it models; empty for all."""

    method: str
    settings: Mapping[str, Any]
    categories: tuple[str, ...]
    classes: int

    def modelled(self, annotators: pa.Table) -> pa.Table:
        """The annotators in the categories that the method models; in all of them for other methods."""
        return (
            annotators.filter(pc.is_in(annotators["category"], pa.array(self.categories)))
            if self.categories
            else annotators
        )


def _method(part: AnnotatorBiasPart, key: Key) -> Inference:
    return Inference(key["method"], part.settings.methods[key["method"]], part.modelled(key), len(_classes(part, key)))


@of_a_method(
    stage="truths",
    inputs=_method,
    reads={"labels": annotations, "annotators": annotators},
    code_version="3",
    libraries=("numpy", "scipy"),
    schema=INFERRED,
    checks=(checks.not_empty,),
)
def truth_inference(inputs: Inference, labels: pa.Table, annotators: pa.Table, run: Run) -> Result:
    """The inferred label of each item and its probability (section 5.3, tables 5.5 and 5.6)."""
    truths = inferred(inputs.method, inputs.settings, labels, inputs.modelled(annotators), run.progress, inputs.classes)
    binary = inputs.classes == 2
    return Result(truths, {"positive": round(float(pc.mean(truths["label"]).as_py()), 4)} if binary else {})


@dataclass(frozen=True)
class Choosing:
    """The methods that infer truths with their settings, and the categories that models of groups use."""

    methods: Mapping[str, Mapping[str, Any]]
    categories: tuple[str, ...]
    classes: int


@of_labels(
    covers=lambda part, key: bool(part.infer_truths(key["corpus"])),
    inputs=lambda part, key: Choosing(
        part.infer_truths(key["corpus"]), part.corpora[key["corpus"]].modelled_categories, len(_classes(part, key))
    ),
    reads={"labels": annotations, "annotators": annotators, "items": annotated_items},
    code_version="1",
    libraries=("numpy", "scipy"),
    schema=LABEL_CHOICE,
    checks=(checks.not_empty,),
)
def label_choice(inputs: Choosing, labels: pa.Table, annotators: pa.Table, items: pa.Table, run: Run) -> Result:
    """Which method's labels to use: by gold labels, or by truths planted in labels of the same design."""
    first_labels, first_items = _first_draw(labels), _first_draw(items)
    groups = people(_first_draw(annotators))
    groups = groups[[name for name in groups.columns if name in inputs.categories]]
    gold = gold_of(first_items, first_labels, 1.0)
    makers = {name: partial(method, name, settings, groups) for name, settings in inputs.methods.items()}
    known = gold.droplevel("draw") if len(gold) else gold
    table = choose_labels(task_table(first_labels), groups, known, makers, inputs.classes, run.progress)
    return Result(table, tables={"choice": table})


@dataclass(frozen=True)
class Estimated:
    """How the truth is inferred, how the corpus names its groups, and table 5.4."""

    inference: Inference
    corpus: AnnotatedCorpus
    published: Lines


@of_a_method(
    stage="truths",
    inputs=lambda part, key: Estimated(
        _method(part, key),
        part.corpora[key["corpus"]].without("licence", "citation", "published_as", "task", "modelled"),
        tuple((*line, value) for line, value in published.contrasts(part.corpora[key["corpus"]]).items()),
    ),
    reads={"labels": annotations, "annotators": annotators, "truths": truth_inference},
    code_version="3",
    libraries=("numpy", "scipy"),
    schema=BIAS_ESTIMATES,
    checks=(checks.not_empty,),
)
def annotator_bias_estimates(
    inputs: Estimated, labels: pa.Table, annotators: pa.Table, truths: pa.Table, run: Run
) -> Result:
    """Sensitivities and specificities of annotators and groups; of models of groups with intervals (table 5.4)."""
    inference, modelled = inputs.inference, inputs.inference.modelled(annotators)
    if METHODS[inference.method].of_groups:
        printed = _by_line(inputs.published)
        table = of_model(inference.method, inference.settings, labels, modelled, inputs.corpus, printed, run.progress)
    else:
        table = pooled(inference.method, truths, labels, modelled, inputs.corpus)
    return Result(table, tables={"groups": table.filter(pc.not_equal(table["kind"], "annotator"))})


@dataclass(frozen=True)
class Learning:
    """How the truth is inferred, and how classifiers learn from it."""

    inference: Inference
    classifier: ItemClassifierSettings
    seeds: int


@of_a_method(
    stage="scores",
    covers=lambda part, key: part.learns(key),
    inputs=lambda part, key: Learning(_method(part, key), part.settings.classifier, part.settings.seeds),
    reads={"labels": annotations, "annotators": annotators, "items": annotated_items},
    code_version="1",
    libraries=("numpy", "scipy"),
    schema=PREDICTED,
    checks=(checks.not_empty,),
)
def learned_classifiers(inputs: Learning, labels: pa.Table, annotators: pa.Table, items: pa.Table, run: Run) -> Result:
    """Predictions for test items by classifiers that learned from the labels of the others, by seed (section 5.4)."""
    inference = inputs.inference
    table = predicted(
        inference.method, inference.settings, labels, inference.modelled(annotators), items, inputs.classifier,
        inputs.seeds, run.seed % 2**20, run.folder, run.progress,
    )  # fmt: skip
    return Result(table)


@dataclass(frozen=True)
class Scored:
    """The number of classes, the agreement above which the majority's label counts, and tables 5.5 and 5.6."""

    classes: int
    agreement: float
    published: Mapping[str, float]


@of_a_method(
    stage="scores",
    inputs=lambda part, key: Scored(
        len(_classes(part, key)),
        part.settings.agreement,
        published.scores(part.corpora[key["corpus"]], key["method"]),
    ),
    reads={"labels": annotations, "items": annotated_items, "truths": truth_inference, "learned": learned_classifiers},
    code_version="1",
    libraries=("scipy",),
    schema=TRUTH_SCORES,
)
def truth_inference_scores(
    inputs: Scored, labels: pa.Table, items: pa.Table, truths: pa.Table, learned: pa.Table | None
) -> Result:
    """Accuracy and F1 of the inferred truth and of the classifier learned from it (tables 5.5 and 5.6)."""
    rows = []
    if items["gold"].null_count < items.num_rows:
        gold = gold_of(items, labels, 1.0)
        rows += scores(TRUTH, *beside_gold(truths, gold, "draw"), "draws", inputs.classes)
    if learned is not None:
        gold = gold_of(items, labels, inputs.agreement)
        rows += scores(PREDICTION, *beside_gold(learned, gold, "seed"), "seeds")
    table = truth_scores(rows, inputs.published)
    return Result(table, tables={"scores": table.drop_columns(["values"])})


def _group_effects(part: AnnotatorBiasPart, lake: Lake, audits: list[Audit]) -> Pictures:
    pictures = {}
    for key in part.corpora:
        model = group_model(part, key)
        if png := effects_plot(estimates(part, lake, key, model), model == PAPERS):
            pictures[f"group_effects_{key}"] = png
    return pictures


@asset(
    stage="report",
    kind="document",
    inputs=lambda part, key: described(part.project, part, published.TABLES, corpora=part.corpora),
    reads=(
        annotations, annotated_items, annotators, group_positive_rates, annotator_anova, label_agreement_by_group,
        truth_inference, label_choice, annotator_bias_estimates, truth_inference_scores,
    ),
    arrows=(
        group_positive_rates, annotator_anova, label_agreement_by_group, label_choice, annotator_bias_estimates,
        truth_inference_scores,
    ),
    code_version="5",
    libraries=LIBRARIES,
    show=drawn(STUDY, _group_effects),
)  # fmt: skip
def annotator_bias_report(inputs: Described, shelf: Shelf) -> Result:
    """Tables 5.2 to 5.6 with the published values, group effects, and the items on which groups differ most."""
    return report_of(STUDY, shelf, render_report)
