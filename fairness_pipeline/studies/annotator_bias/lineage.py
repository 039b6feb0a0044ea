"""Study 5: which annotators lean which way, and what would the labels be without it?

The dissertation's chapter 5, "Understanding and Handling Annotator Group Bias in Crowdsourcing" (Liu 2022). Read top to
bottom, this file is the lineage: labels, who gave them, verdicts on groups, inferred truths, biases, scores.
"""

from collections import Counter
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import BIAS_ESTIMATES, of_model, pooled
from fairness_pipeline.annotation.inference import INFERRED, PREDICTED, beside_gold, gold_of, inferred, predicted
from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.corpora.annotators.annotations import ANNOTATIONS, ANNOTATORS, ITEMS, Annotated, read_annotated
from fairness_pipeline.corpora.downloads import file_version
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lineage.assets import Assets
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Result
from fairness_pipeline.measures.annotators.annotator_groups import (
    ANNOTATOR_ANOVA,
    GROUP_POSITIVE_RATES,
    Labelled,
    analyse_variance,
    compare_positive_rates,
)
from fairness_pipeline.measures.annotators.truth_scores import PREDICTION, TRUTH, TRUTH_SCORES, scores, truth_scores
from fairness_pipeline.reporting.document import Pictures, report_of, report_settings
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.studies.annotator_bias import published
from fairness_pipeline.studies.annotator_bias.plots import effects_plot
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.report import render_report
from fairness_pipeline.studies.annotator_bias.study import STUDY
from fairness_pipeline.workspace.lake import Key, Lake
from fairness_pipeline.workspace.published import checksums

asset = Assets(AnnotatorBiasPart)


def _source(part: AnnotatorBiasPart, key: Key) -> dict[str, Any]:
    corpus, folder = part.corpora[key["corpus"]], part.folders[key["corpus"]]
    return {
        "files": {file.path: file_version(file, folder) for file in corpus.all_files()},
        "corpus": corpus.model_dump(exclude={"licence", "citation", "published_as", "task", "modelled"}),
    }


of_a_corpus = partial(asset, axes=("corpus",))
of_a_method = partial(asset, axes=("corpus", "method"))


def _read(partition: Partition[AnnotatorBiasPart]) -> Annotated:
    key = partition.key["corpus"]
    return read_annotated(partition.part.corpora[key], partition.part.folders[key], partition.progress)


def _first_draw(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["draw"], 1))


@of_a_corpus(stage="labels", code_version="1", settings=_source, schema=ANNOTATIONS, checks=(checks.not_empty,))
def annotations(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Who labelled what as which class (section 5.2.1)."""
    found = _read(partition)
    first = _first_draw(found.annotations)
    classes = _classes(partition)
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
        "draws": int(pc.max(found.annotations["draw"]).as_py()),
        "left_out": found.left_out,
    }
    return Result(found.annotations, figures, tables={"sample": first.slice(0, 5)})


@of_a_corpus(stage="labels", code_version="1", settings=_source, schema=ITEMS, checks=(checks.not_empty,))
def annotated_items(partition: Partition[AnnotatorBiasPart]) -> Result:
    """What was labelled, and what it truly is where that is known."""
    table = _read(partition).items
    return Result(table, {"gold": table.num_rows - table["gold"].null_count}, tables={"sample": table.slice(0, 5)})


@of_a_corpus(stage="labels", code_version="1", settings=_source, schema=ANNOTATORS, checks=(checks.not_empty,))
def annotators(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Who labelled, and in which group of each category they are."""
    table = _read(partition).annotators
    counts = Counter((row["category"], row["side"] or "unknown") for row in _first_draw(table).to_pylist())
    figures = {
        name: {side: counts[name, side] for side in ("a", "b", "unknown")}
        for name in partition.part.corpora[partition.key["corpus"]].groups
    }
    return Result(table, {"groups": figures}, tables={"sample": table.slice(0, 5)})


def _grouped(part: AnnotatorBiasPart, key: Key) -> bool:
    return part.grouped(key["corpus"])


def _labelled(partition: Partition[AnnotatorBiasPart]) -> Labelled:
    labels, who = (_first_draw(partition.read(name)) for name in ("annotations", "annotators"))
    return Labelled.of(labels, who, len(_classes(partition)))


def _classes(partition: Partition[AnnotatorBiasPart]) -> tuple[str, ...]:
    return partition.part.corpora[partition.key["corpus"]].labels.class_names


@of_a_corpus(
    stage="verdicts",
    covers=_grouped,
    upstream=("annotations", "annotators"),
    code_version="2",
    settings=lambda part, key: {
        **part.settings.significance.model_dump(),
        "published": published.positive_rates(part.corpora[key["corpus"]]),
        "versions": library_versions("numpy", "scipy"),
    },
    schema=GROUP_POSITIVE_RATES,
    checks=(checks.not_empty, checks.rates_in_range),
)
def group_positive_rates(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Positive rates of both groups of each category over the items that both labelled, compared (table 5.2)."""
    part, key = partition.part, partition.key
    corpus = part.corpora[key["corpus"]]
    table = compare_positive_rates(
        _labelled(partition), part.settings.significance, published.positive_rates(corpus), _classes(partition)
    )
    missing = [name for name in corpus.compared if name not in table["measure"].to_pylist()]
    shown = table.select(["measure", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "p_holm", "verdict"])
    says = summary(STUDY, part, key, table.to_pylist())
    return Result(table, {"no_item_of_both_groups": missing}, tables={"significance": shown}, says=says)


@of_a_corpus(
    stage="verdicts",
    covers=lambda part, key: part.grouped(key["corpus"]) and not part.corpora[key["corpus"]].several,
    upstream=("annotations", "annotators"),
    code_version="1",
    settings=lambda part, key: {
        "published": [[*k, *v] for k, v in published.anova(part.corpora[key["corpus"]]).items()],
        "versions": library_versions("numpy", "scipy"),
    },
    schema=ANNOTATOR_ANOVA,
    checks=(checks.not_empty,),
)
def annotator_anova(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Annotators' sensitivities and specificities against the majority vote, by group (table 5.3)."""
    table = analyse_variance(_labelled(partition), published.anova(partition.part.corpora[partition.key["corpus"]]))
    return Result(table, tables={"anova": table})


def _method(part: AnnotatorBiasPart, key: Key) -> dict[str, Any]:
    modelled = part.modelled(key)
    return {
        "settings": part.settings.methods[key["method"]],
        "versions": library_versions("numpy", "scipy"),
        **({"categories": modelled} if modelled else {}),
    }


@of_a_method(
    stage="truths",
    covers=lambda part, key: part.infers(key),
    upstream=("annotations", "annotators"),
    code_version="2",
    settings=_method,
    schema=INFERRED,
    checks=(checks.not_empty,),
)
def truth_inference(partition: Partition[AnnotatorBiasPart]) -> Result:
    """The inferred label of each item, and how sure it is (section 5.3, tables 5.5 and 5.6)."""
    own = partition.part.settings.methods[partition.key["method"]]
    classes = len(_classes(partition))
    found = inferred(partition.key["method"], own, *_two(partition), partition.progress, classes)
    return Result(found, {"positive": round(float(pc.mean(found["label"]).as_py()), 4)} if classes == 2 else {})


def _two(partition: Partition[AnnotatorBiasPart]) -> tuple[pa.Table, pa.Table]:
    """The labels, and the annotators in the categories that the method models."""
    annotators, modelled = partition.read("annotators"), partition.part.modelled(partition.key)
    if modelled:
        annotators = annotators.filter(pc.is_in(annotators["category"], pa.array(modelled)))
    return partition.read("annotations"), annotators


@of_a_method(
    stage="truths",
    covers=lambda part, key: part.infers(key),
    upstream=("annotations", "annotators", "truth_inference"),
    code_version="1",
    settings=lambda part, key: {
        **_method(part, key), "alpha": part.level,
        "published": [[*k, v] for k, v in published.contrasts(part.corpora[key["corpus"]]).items()],
        "categories": part.corpora[key["corpus"]].groups,
    },
    schema=BIAS_ESTIMATES,
    checks=(checks.not_empty,),
)  # fmt: skip
def annotator_bias_estimates(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Sensitivities and specificities of annotators and groups; of GroupAnno with intervals (table 5.4)."""
    part, key = partition.part, partition.key
    corpus, method = part.corpora[key["corpus"]], key["method"]
    if METHODS[method].of_groups:
        table = of_model(
            method, part.settings.methods[method], *_two(partition), corpus, published.contrasts(corpus),
            partition.progress,
        )  # fmt: skip
    else:
        table = pooled(method, partition.read("truth_inference"), *_two(partition), corpus)
    return Result(table, tables={"groups": table.filter(pc.not_equal(table["kind"], "annotator"))})


@of_a_method(
    stage="scores",
    covers=lambda part, key: part.learns(key),
    upstream=("annotations", "annotators", "annotated_items"),
    code_version="1",
    settings=lambda part, key: {
        **_method(part, key), "classifier": part.settings.classifier.model_dump(exclude={"threads"}),
        "seeds": part.settings.seeds,
    },
    schema=PREDICTED,
    checks=(checks.not_empty,),
)  # fmt: skip
def learned_classifiers(partition: Partition[AnnotatorBiasPart]) -> Result:
    """What a classifier says of test items that learned from the labels of the others, every seed (section 5.4)."""
    part, method = partition.part, partition.key["method"]
    table = predicted(
        method, part.settings.methods[method], *_two(partition), partition.read("annotated_items"),
        part.settings.classifier, part.settings.seeds, partition.seed % 2**20, partition.folder, partition.progress,
    )  # fmt: skip
    return Result(table)


def _scored(part: AnnotatorBiasPart, key: Key) -> bool:
    return part.infers(key)


@of_a_method(
    stage="scores",
    covers=_scored,
    upstream=("annotations", "annotated_items", "truth_inference", "learned_classifiers"),
    code_version="1",
    settings=lambda part, key: {
        "published": published.scores(part.corpora[key["corpus"]], key["method"]),
        "agreement": part.settings.agreement,
    },
    schema=TRUTH_SCORES,
)
def truth_inference_scores(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Accuracy and F1 of the inferred truth and of the classifier learned from it (tables 5.5 and 5.6)."""
    part, key = partition.part, partition.key
    items, labels = partition.read("annotated_items"), partition.read("annotations")
    rows = []
    if items["gold"].null_count < items.num_rows:
        gold = gold_of(items, labels, 1.0)
        found = beside_gold(partition.read("truth_inference"), gold, "draw")
        rows += scores(TRUTH, *found, "draws", len(_classes(partition)))
    if part.learns(key):
        gold = gold_of(items, labels, part.settings.agreement)
        rows += scores(PREDICTION, *beside_gold(partition.read("learned_classifiers"), gold, "seed"), "seeds")
    table = truth_scores(rows, published.scores(part.corpora[key["corpus"]], key["method"]))
    return Result(table, tables={"scores": table.drop_columns(["values"])})


def _group_effects(part: AnnotatorBiasPart, lake: Lake, audits: list[Audit]) -> Pictures:
    return {f"group_effects_{key}": png for key in part.corpora if (png := effects_plot(part, lake, key))}


@asset(
    stage="report",
    kind="document",
    upstream=(
        "annotations", "annotated_items", "annotators", "group_positive_rates", "annotator_anova", "truth_inference",
        "annotator_bias_estimates", "truth_inference_scores",
    ),
    arrows=("group_positive_rates", "annotator_anova", "annotator_bias_estimates", "truth_inference_scores"),
    code_version="2",
    settings=lambda part, key: report_settings(
        part.project.profile.description,
        part.settings,
        corpora={key: own.model_dump() for key, own in part.corpora.items()},
        published=checksums(published.TABLES),
    ),
)  # fmt: skip
def annotator_bias_report(partition: Partition[AnnotatorBiasPart]) -> Result:
    """Tables 5.2 to 5.6 beside the published ones, group effects, the items on which groups differ most."""
    return report_of(STUDY, partition, render_report, _group_effects)
