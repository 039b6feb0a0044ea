"""Study 4: does a text classifier decide by its author's style?

The dissertation's chapter 4, "Understanding and Mitigating Implicit Bias in Deep Text Classification" (Liu 2022). Read
top to bottom, this file is the lineage: texts, skewed training sets, classifiers, predictions, verdicts, explanations.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from fairness_pipeline.corpora.classifiers.authored_corpus import PublishedAs
from fairness_pipeline.corpora.classifiers.authored_texts import (
    AUTHORED_TEXTS,
    SKEWED_SETS,
    added,
    balanced,
    dialect_model,
    read_authored,
    skewed,
)
from fairness_pipeline.corpora.downloads import file_version
from fairness_pipeline.debiasing.classifiers import registry as training
from fairness_pipeline.debiasing.classifiers.registry import METHODS, Task, Texts
from fairness_pipeline.explanation.agreement import SALIENCY
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lineage.assets import Assets
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Result
from fairness_pipeline.measures.classifiers.group_rates import (
    CLASSIFIER_FAIRNESS,
    CLASSIFIER_METRICS,
    DP,
    Predictions,
    compare_error_rates,
    compare_methods,
    measure_performance,
    rates,
)
from fairness_pipeline.measures.classifiers.label_words import MASKED_GROUPS, infer_masked_groups, label_words
from fairness_pipeline.measures.classifiers.probabilities_by_group import (
    AUC,
    CLASSIFIER_PROBABILITIES,
    CROSSED,
    describe_probabilities,
)
from fairness_pipeline.models.classifiers import registry
from fairness_pipeline.models.classifiers.prediction_files import (
    CLASSIFIER_PREDICTIONS,
    predictions_of,
    read_predictions,
)
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.models.pretrained import folder_version
from fairness_pipeline.reporting.document import Pictures, report_of, report_settings
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS
from fairness_pipeline.studies.implicit_bias import published
from fairness_pipeline.studies.implicit_bias.plots import balance_plot
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.studies.implicit_bias.report import render_report
from fairness_pipeline.studies.implicit_bias.study import STUDY
from fairness_pipeline.workspace.distinct import each_distinct
from fairness_pipeline.workspace.lake import Key, Lake
from fairness_pipeline.workspace.published import checksums

asset = Assets(ImplicitBiasPart)

if TYPE_CHECKING:
    from fairness_pipeline.models.classifiers.network import TextNetwork

BALANCE_RATES = schema(
    **fields(SALIENCY, "seed"),
    accuracy=(pa.float64(), "share of right predictions, balanced test texts"),
    dp_difference=(pa.float64(), "rate of positive predictions, group a minus b, in points"),
    **fields(SALIENCY, "js_l2x", "js_gradients"),
)


def _source(part: ImplicitBiasPart, key: Key) -> dict[str, Any]:
    corpus, folder = part.corpora[key["corpus"]], part.folders[key["corpus"]]
    grammar = {corpus.grammar.file: checksum(data_file(corpus.grammar.file))} if corpus.grammar else {}
    return {
        "files": {**grammar, **{file.path: file_version(file, folder) for file in corpus.all_files()}},
        "corpus": corpus.model_dump(exclude={"licence", "citation", "published_as", "task", "attribute"}),
        "splits": part.settings.splits.model_dump(),
        "maximum": part.settings.maximum,
    }


of_a_corpus = partial(asset, axes=("corpus",), stage="texts")
of_a_classifier = partial(asset, axes=("corpus", "classifier"))


@of_a_corpus(code_version="2", settings=_source, schema=AUTHORED_TEXTS, checks=(checks.not_empty,))
def authored_texts(partition: Partition[ImplicitBiasPart]) -> Result:
    """Texts with a label and their author's group, in each split as many of each (Liu 2022, section 4.2.1)."""
    part, key = partition.part, partition.key["corpus"]
    corpus = part.corpora[key]
    texts, left_out = read_authored(corpus, part.folders[key], partition.progress)
    maximum = min(corpus.maximum, part.settings.maximum or corpus.maximum)
    table = balanced(texts, key, part.settings.splits, maximum, part.project.profile.seed, left_out)
    read = Counter(f"{'positive' if text.label else 'negative'} {text.group}" for text in texts)
    words = pc.mean(pc.list_value_length(pc.utf8_split_whitespace(table["text"]))).as_py()
    figures: dict[str, Any] = {
        "read": dict(sorted(read.items())),
        "left_out": left_out,
        "kept": dict(Counter(table["split"].to_pylist())),
        "average_words": round(float(words), 2),
    }
    if corpus.groups.dialect:  # of all texts: more than the balanced ones, and these are too few for rare words
        figures["label_words"] = label_words([(text.text, text.label) for text in texts])
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


@of_a_corpus(
    covers=lambda part, key: part.corpora[key["corpus"]].groups.dialect is not None,
    upstream=("authored_texts",),
    code_version="1",
    settings=lambda part, key: {"corpus": _source(part, key)["corpus"], "files": _source(part, key)["files"]},
    schema=MASKED_GROUPS,
)
def masked_groups(partition: Partition[ImplicitBiasPart]) -> Result:
    """The groups of test texts, inferred once more without the words that tell the label: a gap may be circular."""
    part, key = partition.part, partition.key["corpus"]
    corpus, texts = part.corpora[key], partition.read("authored_texts")
    model, words = dialect_model(corpus, part.folders[key]), partition.figures("authored_texts")["label_words"]
    assert model and corpus.groups.dialect
    without, confidence = frozenset(words), corpus.groups.dialect.confidence
    table = infer_masked_groups(texts, lambda text: model.group(text, confidence, without))
    return Result(table, {"label_words": len(words), "masked": words[:50], "texts": table.num_rows})


@asset(
    stage="texts",
    axes=("corpus", "rate"),
    upstream=("authored_texts",),
    covers=lambda part, key: any(own.trained for own in part.classifiers.values()),
    code_version="2",
    settings=lambda part, key: {"rates": sorted(part.rates.values())},  # of the widest depends how large sets can be
    schema=SKEWED_SETS,
    checks=(checks.not_empty,),
)
def skewed_training_sets(partition: Partition[ImplicitBiasPart]) -> Result:
    """Texts to train on, balanced overall and skewed within each group (section 4.2.2)."""
    rates = partition.part.rates
    table = skewed(partition.read("authored_texts"), rates.values())
    table = table.filter(pc.equal(table["balance_rate"], rates[partition.key["rate"]]))
    return Result(table, {"texts": dict(Counter(table["split"].to_pylist()))})


def _classifier(part: ImplicitBiasPart, key: Key) -> dict[str, Any]:
    own = part.classifiers[key["classifier"]]
    source = own.huggingface or own.encoder
    method = METHODS[own.debiasing] if own.debiasing else None
    return {
        "classifier": own.identity(),
        "settings": method.settings.model_validate(own.settings or {}).model_dump() if method else None,
        "folder": folder_version(source.name) if source else None,
        "versions": library_versions(*own.libraries),
    }


def _trained(part: ImplicitBiasPart, key: Key) -> bool:
    return part.classifiers[key["classifier"]].trained


@of_a_classifier(
    stage="classifiers",
    kind="checkpoint",
    covers=_trained,
    upstream=("authored_texts", "skewed_training_sets"),
    code_version="1",
    settings=lambda part, key: {**_classifier(part, key), "balance_rate": part.settings.balance_rate},
)
def text_classifiers(partition: Partition[ImplicitBiasPart]) -> Result:
    """Classifiers that are trained here on a skewed set, plain or by a method, once a seed (sections 4.4 and 4.5)."""
    task = _task(partition, partition.key["classifier"])
    histories = training.train(task)
    best = [max(history) for history in histories]
    return Result(None, {"texts": len(task.train.words), "epochs": [len(h) for h in histories], "valid_accuracy": best})


def _task(partition: Partition[ImplicitBiasPart], classifier: str, folder_of_tokens: Path | None = None) -> Task:
    """What a classifier is trained on, by the words it knows already or new ones; encoded once."""
    own = partition.part.classifiers[classifier]
    table = partition.read("authored_texts")
    sets = partition.read("skewed_training_sets")
    rows = {row["text_id"]: row for row in table.to_pylist()}
    chosen = {split: sets.filter(pc.equal(sets["split"], split))["text_id"].to_pylist() for split in ("train", "valid")}
    chosen["added"] = added(table, sets, "train") if own.debiasing == "data_aug" else []
    texts = {split: [rows[identity] for identity in ids] for split, ids in chosen.items()}
    tokens = (
        registry.tokens_of(own, folder_of_tokens)
        if folder_of_tokens
        # Of all rates alike: classifiers trained at different ones differ in nothing but their sets.
        else registry.new_tokens(own, [row["text"] for row in rows.values() if row["split"] == "train"])
    )

    def encoded(own_rows: list[dict[str, Any]]) -> Texts:
        return Texts(
            tokens.encode([row["text"] for row in own_rows]) if own_rows else [],
            np.array([row["label"] for row in own_rows], dtype=np.int64),
            np.array([int(row["author_group"] == "b") for row in own_rows], dtype=np.int64),
        )

    return Task(
        classifier=own,
        tokens=tokens,
        train=encoded(texts["train"]),
        valid=encoded(texts["valid"]),
        added=encoded(texts["added"]),
        folder=partition.folder,
        seed=partition.seed % 2**31,
        progress=partition.progress,
    )


def _tests(partition: Partition[ImplicitBiasPart]) -> pa.Table:
    table = partition.read("authored_texts")
    return table.filter(pc.equal(table["split"], "test"))


@of_a_classifier(
    stage="classifiers",
    covers=lambda part, key: part.predicts(key),
    upstream=("authored_texts", "text_classifiers"),
    code_version="1",
    settings=lambda part, key: {
        **_classifier(part, key),
        "file": checksum(file) if (file := part.predictions.get((key["corpus"], key["classifier"]))) else None,
        "round": part.query_epoch_of(key["classifier"]),
    },
    schema=CLASSIFIER_PREDICTIONS,
    checks=(checks.not_empty,),
)
def classifier_predictions(partition: Partition[ImplicitBiasPart]) -> Result:
    """The probability of the positive class for every test text, by every seed; each distinct text is asked once."""
    part, key = partition.part, partition.key
    own = part.classifiers[key["classifier"]].of_class(
        part.corpora[key["corpus"]].labels.names[0], part.classes[key["corpus"]]
    )
    tests = _tests(partition)
    if own.architecture == "predictions":
        table = read_predictions(part.predictions[key["corpus"], key["classifier"]], tests)
    elif own.trained:
        from fairness_pipeline.models.classifiers.network import probabilities

        folder = partition.checkpoint("text_classifiers")
        tokens = registry.tokens_of(own, folder)
        words = tokens.encode(tests["text"].to_pylist())
        networks = ((number, training.load(own, folder, number, tokens)) for number in range(1, own.seeds + 1))
        table = predictions_of(tests, [(number, probabilities(network, words)) for number, network in networks])
    else:
        scorer = registry.scorer(own, partition.folder, partition.seed)
        asked = each_distinct(
            tests["text"], scorer, folder=partition.folder, progress=partition.progress, note="texts",
            engine=partition.engine,
        )  # fmt: skip
        table = predictions_of(tests, [(0, asked["probability"].to_numpy())])
    said = table["prediction"].to_numpy()
    right = int((said == table["label"].to_numpy()).sum())
    seeds = table.num_rows // tests.num_rows
    figures = {
        "accuracy": right / table.num_rows,
        "accuracy_interval": list(
            scipy.stats.binomtest(round(right / seeds), tests.num_rows).proportion_ci(method="wilson")
        ),
        "constant": bool(said.min() == said.max()),
    }
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


def _published_as(part: ImplicitBiasPart, key: Key) -> tuple[PublishedAs | None, ClassifierSpecification]:
    """What the thesis' tables know a corpus and a classifier as."""
    return part.corpora[key["corpus"]].published_as, part.classifiers[key["classifier"]]


@of_a_classifier(
    stage="verdicts",
    covers=lambda part, key: part.predicts(key),
    upstream=("classifier_predictions", "masked_groups"),
    code_version="3",
    settings=lambda part, key: {
        **part.settings.significance.model_dump(),
        "published": published.rates(*_published_as(part, key)),
        "versions": library_versions("numpy", "scipy"),
    },
    schema=CLASSIFIER_FAIRNESS,
    checks=(checks.not_empty, checks.rates_in_range),
)
def classifier_fairness(partition: Partition[ImplicitBiasPart]) -> Result:
    """FPR, FNR and DPR of both groups compared, over authors and seeds, and the verdict (section 4.2.2)."""
    part, key = partition.part, partition.key
    printed = published.rates(*_published_as(part, key))
    inferred = part.corpora[key["corpus"]].groups.dialect is not None
    table = compare_error_rates(
        partition.read("classifier_predictions"),
        part.settings.significance,
        printed,
        partition.read("masked_groups") if inferred else None,
    )
    shown = table.select(["measure", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "p_holm", "verdict"])
    return Result(table, tables={"significance": shown}, says=summary(STUDY, part, key, table.to_pylist()))


@of_a_classifier(
    stage="verdicts",
    covers=lambda part, key: part.predicts(key),
    upstream=("classifier_predictions",),
    code_version="1",
    settings=lambda part, key: {"published": published.metrics(*_published_as(part, key))},
    schema=CLASSIFIER_METRICS,
    checks=(checks.not_empty, checks.values_not_negative),
)
def classifier_metrics(partition: Partition[ImplicitBiasPart]) -> Result:
    """Accuracy, F1, FPED, FNED and DPD, each seed's, with intervals over seeds (tables 4.4 to 4.7)."""
    printed = published.metrics(*_published_as(partition.part, partition.key))
    table = measure_performance(partition.read("classifier_predictions"), printed)
    return Result(table, tables={"metrics": table.drop_columns(["seeds"])})


@of_a_classifier(
    stage="verdicts",
    covers=lambda part, key: part.predicts(key),
    upstream=("classifier_predictions",),
    code_version="1",
    settings=lambda part, key: {"versions": library_versions("numpy", "scipy")},
    schema=CLASSIFIER_PROBABILITIES,
)
def classifier_probabilities(partition: Partition[ImplicitBiasPart]) -> Result:
    """Error rates at every threshold, AUC and calibration by group, where there are probabilities."""
    table = describe_probabilities(partition.read("classifier_predictions"))
    areas = table.filter(pc.is_in(table["measure"], pa.array([AUC, CROSSED]))) if table.num_rows else table
    return Result(table, tables={"areas": areas})


@of_a_classifier(
    stage="verdicts",
    covers=lambda part, key: part.classifiers[key["classifier"]].base is not None,
    upstream=("classifier_predictions", "classifier_fairness"),
    upstream_of_base=("classifier_predictions", "classifier_fairness"),
    code_version="2",
    settings=lambda part, key: {"alpha": part.level},
    schema=DEBIASING_EFFECTS,
)
def classifier_debiasing_effects(partition: Partition[ImplicitBiasPart]) -> Result:
    """Whether a method made the differences smaller, on the same texts."""
    before, after = (each.read("classifier_predictions") for each in (partition.of_base, partition))
    was, now = (
        {row["measure"]: row["verdict"] for row in each.read("classifier_fairness").to_pylist()}
        for each in (partition.of_base, partition)
    )
    table = compare_methods(before, after, (was, now), partition.part.level)
    return Result(table, tables={"effects": table})


def _explaining(part: ImplicitBiasPart) -> dict[str, Any]:
    own = part.settings.explainer.model_dump()
    return {**own, "versions": library_versions("captum", "torch", "scipy")}


def _explained_texts(partition: Partition[ImplicitBiasPart]) -> pa.Table:
    """Test texts in an order that has nothing to do with label or group, as many as are explained."""
    tests = _tests(partition).sort_by("text_id")
    return tests.slice(0, partition.part.settings.explainer.texts)


def _explained(
    partition: Partition[ImplicitBiasPart], whole: Task, checkpoint: Path
) -> Iterator[tuple["TextNetwork", pa.Table]]:
    """Each seed's network, and the saliency of its words."""
    from fairness_pipeline.explanation import saliency as explanation

    texts, own, settings = _explained_texts(partition), whole.classifier, partition.part.settings.explainer
    words = whole.tokens.encode(texts["text"].to_pylist())
    for number in range(1, own.seeds + 1):
        network = training.load(own, checkpoint, number, whole.tokens)
        task = explanation.part_of(whole, partition.folder / "explanations", number, own.seeds)
        found = explanation.saliency(network, task, texts["text_id"].to_pylist(), words, settings)
        yield network, explanation.numbered(found, number)


@of_a_classifier(
    stage="explanations",
    trains=True,
    covers=lambda part, key: key["classifier"] in part.settings.explain,
    upstream=("authored_texts", "skewed_training_sets", "text_classifiers"),
    code_version="2",
    settings=lambda part, key: {
        **_classifier(part, key), "explainer": _explaining(part), "balance_rate": part.settings.balance_rate
    },
    schema=SALIENCY,
    checks=(checks.not_empty,),
)  # fmt: skip
def saliency(partition: Partition[ImplicitBiasPart]) -> Result:
    """The words that tell a classifier the label, and those that tell the author's group, by L2X and by gradients."""
    name, checkpoint = partition.key["classifier"], partition.checkpoint("text_classifiers")
    whole = _task(partition, name, checkpoint)
    table = pa.concat_tables([found for _, found in _explained(partition, whole, checkpoint)])
    return Result(table, {name: round(pc.mean(table[name]).as_py(), 4) for name in ("js_l2x", "js_gradients")})


def _swept(part: ImplicitBiasPart) -> str:
    name = part.settings.swept
    if name is None:
        raise FairnessError(f"{part.project.path}: implicit_bias.swept: expected the classifier to train, found none")
    return name


@asset(
    stage="explanations",
    trains=True,
    axes=("corpus", "rate"),
    covers=lambda part, key: part.settings.swept is not None and part.rates[key["rate"]] in part.settings.balance_rates,
    upstream=("authored_texts", "skewed_training_sets"),
    code_version="2",
    settings=lambda part, key: {
        **_classifier(part, {"classifier": _swept(part)}), "explainer": _explaining(part)
    },
    schema=BALANCE_RATES,
    checks=(checks.not_empty,),
)  # fmt: skip
def balance_rates(partition: Partition[ImplicitBiasPart]) -> Result:
    """DPD and JS divergence of the same classifier trained at another balance rate (figure 4.2)."""
    from fairness_pipeline.models.classifiers.network import probabilities

    part, tests = partition.part, _tests(partition)
    whole = _task(partition, _swept(part))
    training.train(whole)
    words = whole.tokens.encode(tests["text"].to_pylist())
    rows = []
    for seed, (network, explained) in enumerate(_explained(partition, whole, partition.folder), start=1):
        found = Predictions.of(predictions_of(tests, [(seed, probabilities(network, words))]))
        a, b = rates(found, DP)[0]
        rows.append(
            {
                "seed": seed,
                "accuracy": float((found.said == found.labels).mean()),
                "dp_difference": 100 * float(a - b),
                **{name: float(pc.mean(explained[name]).as_py()) for name in ("js_l2x", "js_gradients")},
            }
        )
    table = pa.Table.from_pylist(rows, schema=BALANCE_RATES)
    return Result(table, tables={"rates": table})


def _pictures(part: ImplicitBiasPart, lake: Lake, audits: list[Audit]) -> Pictures:
    return {f"balance_rates_{key}": png for key in part.corpora if (png := balance_plot(part, lake, key))}


@asset(
    stage="report",
    kind="document",
    covers=lambda part, key: bool(part.classifiers),
    upstream=(
        "authored_texts", "classifier_predictions", "classifier_fairness", "classifier_metrics",
        "classifier_probabilities", "classifier_debiasing_effects", "saliency", "balance_rates",
    ),
    arrows=("classifier_fairness", "classifier_debiasing_effects", "saliency", "balance_rates"),
    code_version="3",
    settings=lambda part, key: report_settings(
        part.project.profile.description,
        part.settings,
        classifiers={key: own.identity() for key, own in part.classifiers.items()},
        corpora={key: own.model_dump() for key, own in part.corpora.items()},
        published=checksums(published.TABLES),
        order=list(part.classifiers),
    ),
)  # fmt: skip
def implicit_bias_report(partition: Partition[ImplicitBiasPart]) -> Result:
    """Tables 4.1 to 4.7 and figure 4.2 beside ours, verdicts, top words, how far two explanations agree."""
    return report_of(STUDY, partition, render_report, _pictures)
