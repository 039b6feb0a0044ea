"""Study 1: does a dialogue model answer differently when only the group named in the context changes?

"Does Gender Matter? Towards Fairness in Dialogue Systems" (Liu et al. 2020) and chapters 2 and 3 of Liu 2022.
Read top to bottom, this file is the lineage: corpus, contexts, pairs, models (plain and debiased), responses, measures,
significance, quality, and what debiasing changed.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.cleaning import USER
from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA as DIALOGUES_SCHEMA
from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues, source_versions
from fairness_pipeline.corpora.dialogue.planting import PLANTED_SPLITS, plant
from fairness_pipeline.corpora.dialogue.planting import VERSION as PLANTING
from fairness_pipeline.corpora.labelled_texts import read_labelled, versions
from fairness_pipeline.debiasing.dialogue.registry import PROJECTION, Task, debias, method_of, responder
from fairness_pipeline.foundation import checks, paths
from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.foundation.parquet import read_parquet
from fairness_pipeline.lexicons import lemmas, senses
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS, find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.no_effect import NO_EFFECT_CONTEXTS, changed_contexts, make_no_effect
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lineage.assets import Assets
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Recipe, Result
from fairness_pipeline.measures.dialogue.answer_changes import (
    ANSWER_CHANGES,
    NO_EFFECT_DIFFERENCES,
    NO_EFFECT_RESPONSES,
    compare_changes,
    differences_without_effect,
    embedder,
    measure_changes,
)
from fairness_pipeline.measures.dialogue.breakdown import (
    BREAKDOWN,
    break_down,
    carrying,
    moving_together,
    swapped_words,
)
from fairness_pipeline.measures.dialogue.classifier_quality import CLASSIFIER_QUALITY, evaluate_classifiers
from fairness_pipeline.measures.dialogue.debiasing_effects import (
    Measured,
    compare_models,
    identical_share,
    without_credit,
)
from fairness_pipeline.measures.dialogue.dialogue_significance import DIALOGUE_SIGNIFICANCE, compared, judge_responses
from fairness_pipeline.measures.dialogue.diversity import DiversityMeasure, indexed
from fairness_pipeline.measures.dialogue.instrument import (
    INSTRUMENT_CHECK,
    PARROT,
    check_instruments,
    leaking,
    parrot,
    swapped_texts,
)
from fairness_pipeline.measures.dialogue.measure import MASKED, Measure, deciding, neutral_reading
from fairness_pipeline.measures.dialogue.politeness import classifier_version
from fairness_pipeline.measures.dialogue.recipe_effects import RECIPE_EFFECTS, Control, compare_recipes
from fairness_pipeline.measures.dialogue.recipe_significance import RECIPE_SIGNIFICANCE, judge_recipe
from fairness_pipeline.measures.dialogue.registry import harmful, measure_label, measures
from fairness_pipeline.measures.dialogue.response_quality import RESPONSE_QUALITY, measure_quality
from fairness_pipeline.measures.dialogue.variations import (
    CARRIERS,
    VARIATIONS,
    Judged,
    judged_again,
    other_scores,
    subsets,
    without,
    without_carriers,
)
from fairness_pipeline.models.dialogue import imported, registry
from fairness_pipeline.models.dialogue.architectures import ARCHITECTURES
from fairness_pipeline.models.dialogue.responding import LONGEST, RESPONSES, answer_each, respond, shortened
from fairness_pipeline.models.dialogue.sight import out_of_sight
from fairness_pipeline.models.loading import scorer_of
from fairness_pipeline.models.pretrained import folder_version
from fairness_pipeline.models.replies import EMPTY, FAILED, FILTERED, REFUSED
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary
from fairness_pipeline.reporting.document import report_of, report_settings
from fairness_pipeline.reporting.plots import difference_plot
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS
from fairness_pipeline.studies.dialogue_fairness.models import NAME
from fairness_pipeline.studies.dialogue_fairness.plots import projection_plot
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.published import TABLES
from fairness_pipeline.studies.dialogue_fairness.report import render_report
from fairness_pipeline.studies.dialogue_fairness.results import published_quality_of, published_rows_of
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.distinct import LazyScorer, Scorer
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart)


def _answers(part: DialoguePart, key: Key) -> bool:
    """Whether a model answers in a dimension."""
    return part.answers(key)


def _is_debiased(part: DialoguePart, key: Key) -> bool:
    return part.answers(key) and part.models[key["model"]].debiasing is not None


of_a_model = partial(asset, axes=("dimension", "model"), covers=_answers)
of_a_debiased_model = partial(asset, axes=("dimension", "model"), covers=_is_debiased)


DIALOGUES = ("twitter_dialogues", "reddit_dialogues", "other_dialogues")
"""One table a platform; a corpus is a partition of its own."""


def _source(part: DialoguePart, key: Key) -> dict[str, object]:
    source, bias = part.corpora[key["corpus"]], part.settings.planted.get(key["corpus"])
    found: dict[str, object] = {
        "splits": part.settings.splits.model_dump(),
        "specification": source.specification.model_dump(exclude={"licence", "citation"}),
        "sha256": source_versions(*source),
    }
    if bias:
        words = part.dimensions[bias.dimension].all_pairs(part.settings.pairs.pronouns)
        found["planted"] = {**bias.model_dump(), "words": words, "version": PLANTING}
    return found


def _of_platform(platform: str) -> Callable[[Callable[[Partition[DialoguePart]], Result]], Recipe]:
    return asset(
        stage="corpora",
        axes=("corpus",),
        covers=lambda part, key: part.dialogues_of(key["corpus"]) == f"{platform}_dialogues",
        code_version="2",
        settings=_source,
        schema=DIALOGUES_SCHEMA,
        checks=(checks.not_empty, checks.some_to_audit),
    )


def _read(partition: Partition[DialoguePart]) -> Result:
    part, key, seed = partition.part, partition.key["corpus"], partition.project.profile.seed
    splits = part.settings.splits.model_dump()
    corpus, folder = part.corpora[key]
    reading = read_dialogues(key, corpus, folder, splits, seed, progress=partition.progress)
    table = reading.table
    split_sizes = {str(row["values"]): row["counts"] for row in pc.value_counts(table["split"]).to_pylist()}
    figures = {"rows_read": reading.rows_read, "left_out": reading.left_out, "dialogues_by_split": split_sizes}
    if bias := part.settings.planted.get(key):
        swapper = Swapper(part.dimensions[bias.dimension], pronouns=part.settings.pairs.pronouns)
        try:
            table, figures["planted"] = plant(table, bias, swapper)
        except FairnessError as error:
            raise FairnessError(f"{part.project.path}: {NAME}.planted.{key}.{error}") from None
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


@_of_platform("twitter")
def twitter_dialogues(partition: Partition[DialoguePart]) -> Result:
    """Single-turn dialogues from Twitter: cleaned, each once, split by thread so that the audit sees new ones."""
    return _read(partition)


@_of_platform("reddit")
def reddit_dialogues(partition: Partition[DialoguePart]) -> Result:
    """Single-turn dialogues from Reddit: a comment and the answer to it; cleaned, each once, split by thread."""
    return _read(partition)


@_of_platform("other")
def other_dialogues(partition: Partition[DialoguePart]) -> Result:
    """Single-turn dialogues from anywhere else: cleaned, each once, split by thread."""
    return _read(partition)


def _dimension(partition: Partition[DialoguePart]) -> Dimension:
    dimension: Dimension = partition.part.dimensions[partition.key["dimension"]]
    return dimension


def _dialogues(partition: Partition[DialoguePart], corpus: str) -> pa.Table:
    return partition.read(partition.part.dialogues_of(corpus))


def _dialogues_for(partition: Partition[DialoguePart], corpus: str) -> pa.Table:
    """The dialogues for the partition's dimension: all of a corpus, but of written ones those written for it."""
    dialogues = _dialogues(partition, corpus)
    if partition.part.corpora[corpus].specification.contexts:
        return dialogues.filter(pc.equal(dialogues["topic"], partition.key["dimension"]))
    return dialogues


def _lexicon(part: DialoguePart, key: Key) -> dict[str, object]:
    dimension = part.dimensions[key["dimension"]]
    return {
        "pairs": dimension.all_pairs(part.settings.pairs.pronouns),
        "pronouns": dimension.pronouns.model_dump() if dimension.pronouns else None,
        "wordnet": lemmas.version() if part.settings.pairs.pronouns == "extended" else None,
    }


def _rules(dimension: Dimension, mode: str) -> dict[str, object]:
    """The rules of sense, where they decide."""
    ruled = dimension.senses if mode == "rules" else None
    return {
        "senses": ruled.model_dump() if ruled else None,
        "word_classes": checksum(paths.data_file(senses.CLASSES)) if ruled else None,
    }


def _pairing(part: DialoguePart, key: Key) -> dict[str, object]:
    """What decides how the contexts of a corpus are exchanged."""
    dimension, settings = part.dimensions[key["dimension"]], part.pairing(key["corpus"])
    return {
        **_lexicon(part, key),
        "settings": settings,
        "further": dimension.further if settings["further"] else None,
        **_rules(dimension, settings["senses"]),
    }


@asset(
    stage="pairs",
    axes=("corpus", "dimension"),
    upstream=DIALOGUES,
    code_version="2",
    settings=_pairing,
    schema=CONTEXTS,
)
def contexts(partition: Partition[DialoguePart]) -> Result:
    """Contexts of the audit split in which a word of the dimension means the group, and that no model trained on."""
    part, corpus = partition.part, partition.key["corpus"]
    how = part.pairing(corpus)
    swapper = Swapper(
        _dimension(partition), pronouns=how["pronouns"], senses=how["senses"] == "rules", further=how["further"]
    )
    dialogues = _dialogues_for(partition, corpus)
    found = find_contexts(dialogues, swapper, partition.progress)
    if not found.table.num_rows:
        raise FairnessError(
            f"of {found.figures['audit_dialogues']:,} dialogues kept for the audit none has a context with a word of "
            f"'{partition.key['dimension']}' that no model trained on; give it a larger corpus or commoner words, or "
            "leave the dimension out"
        )
    figures = {**found.figures, "rules_of_sense": found.ruled.slice(0, 8).to_pylist()}
    return Result(found.table, figures, tables={"rules of sense": found.ruled.slice(0, 20)})


@asset(
    stage="pairs",
    axes=("corpus", "dimension"),
    upstream=("contexts",),
    code_version="4",
    settings=_pairing,
    schema=CONTEXT_PAIRS,
    checks=(checks.not_empty, checks.sides_differ),
)
def context_pairs(partition: Partition[DialoguePart]) -> Result:
    """Parallel contexts: each context and the same with the other group's words (Liu et al. 2020, section 2.3)."""
    pairs = make_pairs(
        partition.read("contexts"),
        _dimension(partition),
        **partition.part.pairing(partition.key["corpus"]),
        seed=partition.project.profile.seed,
        progress=partition.progress,
    )
    shown = pairs.table.select(["context_a", "context_b"]).slice(0, 5)
    return Result(pairs.table, pairs.figures, tables={"sample": shown})


def _model(part: DialoguePart, key: Key) -> dict[str, object]:
    model = part.models[key["model"]]
    source = model.huggingface
    return {
        "model": model.identity(),
        "folder": folder_version(source.name) if source else None,
        "round": part.query_epoch_of(key["model"]),
        "versions": library_versions(*model.libraries),
        **({"trained_in": "float32"} if source and model.training and source.dtype != "float32" else {}),
    }


@asset(
    stage="models",
    kind="checkpoint",
    axes=("model",),
    upstream=DIALOGUES,
    code_version="1",
    settings=_model,
    covers=lambda part, key: part.models[key["model"]].debiasing is None,
)
def dialogue_models(partition: Partition[DialoguePart]) -> Result:
    """Dialogue models before debiasing (Liu et al. 2020, section 3.1): trained here, or found by id, folder or address.

    Training that was killed goes on where it stopped.
    """
    model = partition.part.models[partition.key["model"]]
    dialogues = _dialogues(partition, model.corpus) if model.trained else DIALOGUES_SCHEMA.empty_table()
    return Result(None, registry.prepare(model, dialogues, partition.folder, partition.seed, partition.progress))


def _bias(part: DialoguePart, key: Key) -> dict[str, object]:
    """What decides whether a text is biased: all measures that mark one."""
    return {measure.table: _measuring(measure)(part, key) for measure in measures() if measure.marks_text}


def _measuring(measure: Measure) -> Callable[[DialoguePart, Key], dict[str, Any]]:
    """What decides what a measure finds."""
    return lambda part, key: measure.made_from(part.settings.measures, part.dimensions[key["dimension"]])


def _debiasing(part: DialoguePart, key: Key) -> dict[str, object]:
    method = method_of(part.models[key["model"]])
    lexicon = _lexicon(part, key)
    return {
        **_model(part, key),
        "pairs": lexicon["pairs"],
        "pronouns": [part.settings.pairs.pronouns, lexicon["pronouns"], *filter(None, [lexicon["wordnet"]])],
        "articles": part.settings.pairs.articles,
        "bias": _bias(part, key) if method and method.measures else None,
        **(_tested(part, key) if method and method.tested else {}),
    }


def _tested(part: DialoguePart, key: Key) -> dict[str, object]:
    """What decides when training ends."""
    settings = part.settings
    return {
        **_rules(part.dimensions[key["dimension"]], settings.pairs.senses),
        "significance": settings.significance.model_dump(),
        "alike": settings.max_identical_share,  # its older name: the new one would train every debiased model again
        "harmful": harmful(),
    }


def _disentangling(part: DialoguePart, key: Key) -> dict[str, object]:
    model = part.models[key["model"]]
    everything = _debiasing(part, key)
    return {
        **{name: everything[name] for name in ("pairs", "pronouns", "bias", "versions")},
        "settings": (model.settings or {}).get("disentanglement"),
        "longest": model.seq2seq.longest if model.seq2seq else None,
        "device": model.device,
        "stop_words": sorted(stop_words()),
    }


def _task(partition: Partition[DialoguePart], **inputs: Path) -> Task:
    """What a debiasing method is given."""
    model = partition.part.models[partition.key["model"]]
    return Task(
        model=model,
        dimension=_dimension(partition),
        pairs=partition.part.settings.pairs,
        measures=partition.part.settings.measures,
        significance=partition.part.settings.significance,
        max_identical_share=partition.part.settings.max_identical_share,
        dialogues=_dialogues(partition, model.corpus),
        base=partition.of_base.checkpoint("dialogue_models"),
        folder=partition.folder,
        seed=partition.seed,
        profile_seed=partition.project.profile.seed,
        progress=partition.progress,
        **inputs,
    )


def _disentangles(part: DialoguePart, key: Key) -> bool:
    method = method_of(part.models[key["model"]])
    if method is None or not method.disentangles or not _answers(part, key):
        return False
    return part.shared_with(key) == key


@asset(
    stage="models",
    kind="checkpoint",
    axes=("dimension", "model"),
    covers=_disentangles,
    upstream=DIALOGUES,
    upstream_of_base=("dialogue_models",),
    code_version="1",
    settings=_disentangling,
)
def disentanglement(partition: Partition[DialoguePart]) -> Result:
    """Debiased-Chat's autoencoder, its corpus of unbiased utterances, and what its features give away (Liu 2022, 3.2).

    One for each base and dimension: its words are those of the dialogue model that it will judge. Debiased models of
    one base with the same settings of the autoencoder share it, the placebo among them.
    """
    from fairness_pipeline.debiasing.dialogue import disentanglement as room

    figures = room.train(_task(partition))
    picture = projection_plot(read_parquet(partition.folder / PROJECTION), _groups(partition))
    return Result(None, figures, pictures={"features": picture})


@of_a_debiased_model(
    stage="models",
    kind="checkpoint",
    upstream=DIALOGUES,
    upstream_of_base=("dialogue_models",),
    upstream_shared=("disentanglement",),
    code_version="4",
    settings=_debiasing,
)
def debiased_dialogue_models(partition: Partition[DialoguePart]) -> Result:
    """Models made fairer for a dimension by a method of `debiasing/` (Liu et al. 2020, section 4; Liu 2022, chapter 3).

    Training that was killed goes on where it stopped.
    """
    method = method_of(partition.part.models[partition.key["model"]])
    disentangles = method is not None and method.disentangles
    inputs = {"disentanglement": partition.of_shared.checkpoint("disentanglement")} if disentangles else {}
    return Result(None, debias(_task(partition, **inputs)))


def _groups(partition: Partition[DialoguePart]) -> tuple[str, str]:
    return STUDY.groups(partition.part, partition.key)


def _trained_as(partition: Partition[DialoguePart]) -> str:
    """The asset that holds this partition's model."""
    return str(partition.part.trained_as(partition.key["model"]))


def _responder(partition: Partition[DialoguePart]) -> Scorer:
    """This partition's model as it answers."""
    model = partition.part.models[partition.key["model"]]
    load = partial(responder, model, partition.checkpoint(_trained_as(partition)), partition.folder, partition.seed)
    return scorer_of(load, ARCHITECTURES[model.architecture].libraries, model)


_OF_NO_MATTER = {"endpoint": {"keep_empty"}}
"""Settings of decoding that do not change what a model of an architecture answers."""


def _answering(part: DialoguePart, key: Key) -> dict[str, object]:
    model = part.models[key["model"]]
    imported = model.architecture == "imported"
    return {
        **_model(part, key),
        "decoding": model.decoding.model_dump(exclude=_OF_NO_MATTER.get(model.architecture)),
        "imported": checksum(part.imported_responses(key["model"], key["dimension"])) if imported else None,
    }


@of_a_model(
    stage="answers",
    upstream=("context_pairs", "dialogue_models", "debiased_dialogue_models"),
    code_version="2",
    settings=_answering,
    schema=RESPONSES,
    checks=(checks.not_empty, checks.both_sides_present),
)
def responses(partition: Partition[DialoguePart]) -> Result:
    """The model's answers to both contexts of every pair; identical contexts are asked once."""
    model = partition.part.models[partition.key["model"]]
    pairs = partition.read("context_pairs")
    if model.architecture == "imported":
        file = partition.part.imported_responses(partition.key["model"], partition.key["dimension"])
        table = imported.matching(read_parquet(file), pairs)
        table = table.set_column(table.column_names.index("response"), "response", shortened(table["response"]))
        figures, failed = {}, table.filter(pc.equal(table["kind"], FAILED)).select(["context"])
    else:
        own = _responder(partition)
        answers = respond(
            pairs,
            own,
            partition.folder,
            partition.progress,
            engine=partition.engine,
        )
        table = answers.table
        figures = {"distinct_contexts": answers.replies.num_rows}
        served = pc.value_counts(answers.replies["served"]).to_pylist()
        if names := {row["values"]: row["counts"] for row in served if row["values"]}:
            figures["served_model"] = names
        failed = answers.replies.filter(pc.equal(answers.replies["kind"], FAILED)).select(["context", "problem"])
        if model.huggingface and isinstance(own, LazyScorer):
            figures |= partition.engine.examine(own)
    kinds = {row["values"]: row["counts"] for row in pc.value_counts(table["kind"]).to_pylist()}
    counts = pc.value_counts(table["response"])
    commonest = max(counts.to_pylist(), key=lambda counted: counted["counts"])
    figures |= {
        "distinct_responses": len(counts),
        "empty_responses": kinds.get(EMPTY, 0),
        **{f"{kind}_responses": kinds[kind] for kind in (REFUSED, FILTERED, FAILED) if kind in kinds},
        **({"cut_responses": cut} if (cut := _cut(table)) else {}),
        "commonest_response": commonest["values"][:200],
        "commonest_share": round(commonest["counts"] / table.num_rows, 4),
    }
    shown = {"sample": table.slice(0, 6)}
    return Result(table, figures, tables={**shown, "failed": failed.slice(0, _LISTED)} if failed.num_rows else shown)


def _cut(table: pa.Table) -> int:
    """How many answers are as long as any is kept."""
    return int(pc.sum(pc.equal(pc.utf8_length(table["response"]), LONGEST)).as_py() or 0)


_LISTED = 20
"""Contexts without an answer that are listed."""


def _measured(measure: Measure) -> Recipe:
    @of_a_model(
        stage="measures",
        name=measure.table,
        description=measure.description,
        upstream=("responses",),
        code_version="2",
        settings=_measuring(measure),
        schema=measure.schema,
        checks=measure.checks,
    )
    def make(partition: Partition[DialoguePart]) -> Result:
        settings, dimension = partition.part.settings.measures, _dimension(partition)
        table = measure.measure(partition.read("responses"), settings, dimension, partition.folder, partition.progress)
        return Result(table, tables={} if measure.scorer else {measure.table: table})

    return make


of_responses = [_measured(measure) for measure in measures()]
"""One table a measure."""

_TABLES = tuple(measure.table for measure in measures())
_JUDGED = (
    *_TABLES,
    "answer_changes",
    "no_effect_differences",
    "verdict_variations",
    "instrument_check",
    "parrot_check",
)
"""What an audit's verdicts are made of."""
_OF_SINGLE = tuple(measure for measure in measures() if measure.scorer)
"""The measures that score responses one by one."""


def _has_controls(part: DialoguePart, key: Key) -> bool:
    """Whether contexts are asked again with changes without effect; what answers in a file cannot be asked."""
    return (
        part.answers(key) and part.settings.pairs.no_effect > 0 and part.models[key["model"]].architecture != "imported"
    )


@asset(
    stage="pairs",
    axes=("corpus", "dimension"),
    upstream=("context_pairs",),
    covers=lambda part, key: part.settings.pairs.no_effect > 0,
    code_version="1",
    settings=lambda part, key: {
        "share": part.settings.pairs.no_effect,
        "interchangeable": part.dimensions[key["dimension"]].interchangeable,
        "pairs": part.dimensions[key["dimension"]].all_pairs("extended", further=True),
    },
    schema=NO_EFFECT_CONTEXTS,
)
def no_effect_contexts(partition: Partition[DialoguePart]) -> Result:
    """Some of the contexts with changes that should change nothing: another word of the same group, another wording."""
    table = make_no_effect(
        partition.read("context_pairs"),
        _dimension(partition),
        share=partition.part.settings.pairs.no_effect,
        seed=partition.project.profile.seed,
    )
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["change"]).to_pylist()}
    return Result(table, counts, tables={"sample": table.select(["change", "context", "changed"]).slice(0, 6)})


@of_a_model(
    stage="answers",
    upstream=("no_effect_contexts", "dialogue_models", "debiased_dialogue_models"),
    covers=_has_controls,
    code_version="1",
    settings=_answering,
    schema=NO_EFFECT_RESPONSES,
)
def no_effect_responses(partition: Partition[DialoguePart]) -> Result:
    """The model's answers to contexts with changes that should change nothing."""
    contexts = partition.read("no_effect_contexts")
    replies = answer_each(
        contexts["changed"], _responder(partition), partition.folder, partition.progress, engine=partition.engine
    )
    table = contexts
    for name in ("response", "kind"):
        table = table.append_column(NO_EFFECT_RESPONSES.field(name), replies[name])
    return Result(table.cast(NO_EFFECT_RESPONSES), {"distinct_contexts": len(changed_contexts(contexts))})


@of_a_model(
    stage="measures",
    upstream=("responses", "no_effect_responses"),
    covers=_has_controls,
    code_version="1",
    settings=lambda part, key: {
        "pairs": part.dimensions[key["dimension"]].all_pairs("extended", further=True),
        "encoder": part.settings.measures.model_dump(include={"embedding_model", "embedding_revision"}),
        "folder": folder_version(part.settings.measures.embedding_model)
        if part.settings.measures.embedding_model
        else None,
        "versions": library_versions("sacrebleu"),
    },
    schema=ANSWER_CHANGES,
)
def answer_changes(partition: Partition[DialoguePart]) -> Result:
    """How much an answer changes when the group does, and when something else does."""
    table = measure_changes(
        partition.read("responses"),
        partition.read("no_effect_responses"),
        _dimension(partition),
        embedder(partition.part.settings.measures),
        partition.folder,
        partition.progress,
    )
    means = table.group_by("change").aggregate([("unchanged", "mean"), ("similarity", "mean")])
    return Result(table, {f"similarity_{row['change']}": row["similarity_mean"] for row in means.to_pylist()})


@of_a_model(
    stage="measures",
    upstream=("responses", "no_effect_responses"),
    covers=_has_controls,
    code_version="1",
    settings=lambda part, key: {
        "measures": {measure.table: _measuring(measure)(part, key) for measure in _OF_SINGLE},
        "versions": library_versions("numpy", "scipy"),
    },
    schema=NO_EFFECT_DIFFERENCES,
)
def no_effect_differences(partition: Partition[DialoguePart]) -> Result:
    """How much changes that should change nothing move each measure."""
    settings = partition.part.settings
    table = differences_without_effect(
        partition.read("responses"),
        partition.read("no_effect_responses"),
        _OF_SINGLE,
        _dimension(partition),
        settings.measures,
        settings.significance,
        partition.folder,
        partition.progress,
    )
    return Result(table, tables={"differences": table})


def _instrument(part: DialoguePart, key: Key) -> dict[str, object]:
    dimension = part.dimensions[key["dimension"]]
    return {
        "measures": {measure.table: _measuring(measure)(part, key) for measure in _OF_SINGLE},
        "pairs": dimension.all_pairs("extended"),
        "significance": part.settings.significance.model_dump(exclude={"permutations", "jackknife_blocks"}),
        "versions": library_versions("numpy", "scipy"),
    }


@asset(
    stage="measures",
    axes=("corpus", "dimension"),
    upstream=DIALOGUES,
    code_version="3",
    settings=_instrument,
    schema=INSTRUMENT_CHECK,
)
def instrument_check(partition: Partition[DialoguePart]) -> Result:
    """What each scorer makes of human texts with only the listed words swapped: a gap that no model made.

    The texts are the corpus's responses, or its contexts where it has none; where a bias was planted, those of the
    splits that it is not in.
    """
    part, corpus = partition.part, partition.key["corpus"]
    dialogues = _dialogues_for(partition, corpus)
    if corpus in part.settings.planted:
        dialogues = dialogues.filter(pc.invert(pc.is_in(dialogues["split"], pa.array(PLANTED_SPLITS))))
    answered = dialogues.filter(pc.not_equal(dialogues["response"], ""))
    texts = "responses" if answered.num_rows else "contexts"
    swapped = swapped_texts(
        answered["response"] if answered.num_rows else dialogues["context"],
        _dimension(partition),
        partition.project.profile.seed,
    )
    table = check_instruments(
        swapped,
        _OF_SINGLE,
        _dimension(partition),
        settings=part.settings.measures,
        significance=part.settings.significance,
        texts=texts,
        folder=partition.folder,
        progress=partition.progress,
    )
    shown = table.select(["measure", "n", "value_a", "value_b", "difference", "p_paired", "texts"])
    return Result(table, {"texts_swapped": swapped.num_rows // 2, "texts": texts}, tables={"instruments": shown})


@asset(
    stage="measures",
    axes=("corpus", "dimension"),
    upstream=("context_pairs",),
    code_version="1",
    settings=_instrument,
    schema=INSTRUMENT_CHECK,
)
def parrot_check(partition: Partition[DialoguePart]) -> Result:
    """What answers that only repeat the context would get: the part of a gap that the exchanged words make alone."""
    part = partition.part
    answers = parrot(partition.read("context_pairs"))
    table = check_instruments(
        answers,
        measures(),
        _dimension(partition),
        settings=part.settings.measures,
        significance=part.settings.significance.model_copy(update={"permutations": 0}),
        texts=PARROT,
        folder=partition.folder,
        progress=partition.progress,
    )
    shown = table.select(["measure", "n", "value_a", "value_b", "difference", "p_paired"])
    return Result(table, {"pairs": answers.num_rows // 2}, tables={"parrot": shown})


@asset(
    stage="measures",
    axes=("dimension",),
    covers=lambda part, key: bool(part.settings.measures.labelled),
    code_version="1",
    settings=lambda part, key: {
        "labelled": versions(part.settings.measures.labelled, Path()),
        "files": [file.model_dump() for file in part.settings.measures.labelled],
        "classifiers": {
            name: classifier_version(part.settings.measures, name) for name in part.settings.measures.classifiers
        },
        "threshold": part.settings.measures.offence_threshold,
        "pairs": part.dimensions[key["dimension"]].all_pairs("extended"),
    },
    schema=CLASSIFIER_QUALITY,
    checks=(checks.not_empty,),
)
def classifier_quality(partition: Partition[DialoguePart]) -> Result:
    """Recall and precision of the offence classifiers on texts that people labelled, by the group that a text names."""
    settings = partition.part.settings.measures
    texts = read_labelled(settings.labelled, Path())
    table = evaluate_classifiers(texts, settings, _dimension(partition), partition.progress)
    held_out = sum(text.held_out for text in texts)
    return Result(table, {"texts": len(texts), "held_out": held_out}, tables={"quality": table})


@of_a_model(
    stage="verdicts",
    upstream=(*DIALOGUES, "context_pairs", *_TABLES),
    code_version="1",
    settings=lambda part, key: {"versions": library_versions("numpy")},
    schema=BREAKDOWN,
    checks=(checks.not_empty,),
)
def dialogue_breakdown(partition: Partition[DialoguePart]) -> Result:
    """Where each gap comes from: by swapped word, by the side, the file and the topic of the original context."""
    pairs = partition.read("context_pairs").sort_by("pair_id")
    corpus = partition.part.models[partition.key["model"]].corpus
    dialogues = _dialogues(partition, corpus)
    of_pair = pc.index_in(pairs["dialogue_id"], dialogues["dialogue_id"])
    factors = {factor: dialogues[column].take(of_pair).to_pylist() for factor, column in _FACTORS.items()}
    values = [(measure, measure.values(partition.read(measure.table))) for measure in _OF_SINGLE]
    table = break_down(pairs, swapped_words(pairs), values, factors)
    widest = table.filter(pc.equal(table["factor"], "word")).sort_by([("n", "descending")]).slice(0, 20)
    return Result(table, {"words": len(widest["level"].unique())}, tables={"words": widest})


_FACTORS = {"source_file": "source", "topic": "topic"}


def _moving_together(part: DialoguePart, key: Key) -> dict[str, object]:
    """What decides whether pairs of one word move together."""
    return {"names_the_group": part.dimensions[key["dimension"]].names_the_group}


def _varied(part: DialoguePart, key: Key) -> dict[str, object]:
    settings = part.settings.measures
    return {
        "significance": part.settings.significance.model_dump(exclude={"permutations"}),
        "titles": part.dimensions[key["dimension"]].titles,
        **_moving_together(part, key),
        "thresholds": {measure.table: measure.thresholds for measure in measures()},
        "others": {name: classifier_version(settings, name) for name in settings.classifiers},
        "versions": library_versions("numpy", "scipy"),
    }


@of_a_model(
    stage="verdicts",
    upstream=(
        "context_pairs", "responses", *_TABLES, "dialogue_models", "debiased_dialogue_models"
    ),
    arrows=("context_pairs", "responses", *_TABLES),
    code_version="2",
    settings=_varied,
    schema=VARIATIONS,
    checks=(checks.not_empty,),
)  # fmt: skip
def verdict_variations(partition: Partition[DialoguePart]) -> Result:
    """The same responses judged again: other word lists, thresholds, classifiers, half the contexts; pairs left out."""
    part, significance = partition.part, partition.part.settings.significance
    pairs, responses = partition.read("context_pairs").sort_by("pair_id"), partition.read("responses")
    tables = {name: partition.read(name) for name in _TABLES}
    words = swapped_words(pairs)
    dimension = _dimension(partition)
    values = [(measure, measure.readings(tables[measure.table])) for measure in _OF_SINGLE]
    masks = {**_out_of_sight(partition, pairs), "titles and idioms": words.any_of(dimension.titles)}
    carriers = {
        name: carrying(words, deciding(found, name))
        for _, found in values
        for name in found
        if not name.endswith(MASKED)
    }
    scored_again = other_scores(
        _OF_SINGLE, tables, responses, part.settings.measures, dimension, partition.folder, partition.progress
    )
    variations = [
        *subsets(words, pairs.num_rows, partition.seed_without("model")),
        *scored_again,
        *without(masks),
        *without_carriers(words, pairs.num_rows, carriers),
    ]
    (together,) = (measure for measure in measures() if isinstance(measure, DiversityMeasure))
    readings = indexed(responses, neutral_reading(responses, dimension), significance)
    table = judged_again(
        Judged(values, (together, readings), moving_together(dimension, words)), variations, significance
    )
    figures = {f"share of {name}": round(float(mask.mean()), 4) for name, mask in masks.items()}
    shown = table.filter(pc.is_in(table["kind"], pa.array(["without", CARRIERS])))
    return Result(table, {**figures, "variations": len(variations)}, tables={"without": shown})


def _out_of_sight(partition: Partition[DialoguePart], pairs: pa.Table) -> dict[str, np.ndarray]:
    """Pairs that a model trained here cannot tell apart; for other models nothing is known."""
    model = partition.part.models[partition.key["model"]]
    sizes = model.seq2seq or model.retrieval
    file = partition.checkpoint(_trained_as(partition)) / VOCABULARY if model.trained and sizes else None
    return out_of_sight(pairs, Vocabulary.load(file), sizes.longest) if file and sizes and file.exists() else {}


@of_a_model(
    stage="verdicts",
    upstream=("context_pairs", "responses", *_JUDGED),
    arrows=_JUDGED,
    code_version="7",
    settings=lambda part, key: {
        **part.settings.significance.model_dump(),
        **_moving_together(part, key),
        "published": published_rows_of(part, **key),
        "versions": library_versions("numpy", "scipy"),
    },
    schema=DIALOGUE_SIGNIFICANCE,
    checks=(checks.not_empty, checks.rates_in_range),
)
def dialogue_significance(partition: Partition[DialoguePart]) -> Result:
    """Every measure compared between the sides: the paper's Z test, paired tests, equivalence, and verdicts."""
    responses, tables = partition.read("responses"), {name: partition.read(name) for name in _TABLES}
    settings, dimension = partition.part.settings.significance, _dimension(partition)
    controlled = _has_controls(partition.part, partition.key)
    words, parrots = swapped_words(partition.read("context_pairs")), partition.read("parrot_check")
    judged = compared(
        responses,
        tables,
        settings=settings,
        seed=partition.seed_without("model"),
        published=published_rows_of(partition.part, **partition.key),
        dimension=dimension,
        clusters=moving_together(dimension, words),
        leaking=leaking(parrots, settings.alpha),
    )
    table = judge_responses(
        judged,
        responses,
        tables,
        words=words,
        varied=partition.read("verdict_variations"),
        instrument=partition.read("instrument_check"),
        parrots=parrots,
        alpha=settings.alpha,
        changes=compare_changes(partition.read("answer_changes"), settings, moving_together(dimension, words))
        if controlled
        else (),
        without_effect=partition.read("no_effect_differences") if controlled else None,
    )
    shown = table.select(["measure", "value_a", "value_b", "difference", "p_holm", "verdict", "paper_verdict"])
    rows = table.to_pylist()
    whole = [row for row in rows if not row["measure"].endswith(MASKED)]
    differences = {f"difference_{row['measure']}": row["difference"] for row in rows}
    verdicts = {row["measure"]: row["verdict"] for row in rows}
    return Result(
        table,
        {**differences, "verdicts": verdicts},
        pictures={"differences": difference_plot(whole, *_groups(partition), measure_label)},
        tables={"significance": shown},
        says=summary(STUDY, partition.part, partition.key, rows),
    )


@of_a_model(
    stage="verdicts",
    covers=lambda part, key: part.answers(key) and bool(part.seeds_of(key)),
    upstream_of_seeds=("dialogue_significance",),
    code_version="1",
    settings=lambda part, key: {
        "seeds": part.models[key["model"]].seeds,
        "alpha": part.settings.significance.alpha,
        "versions": library_versions("numpy", "scipy"),
    },
    schema=RECIPE_SIGNIFICANCE,
    checks=(checks.not_empty,),
)
def recipe_significance(partition: Partition[DialoguePart]) -> Result:
    """The verdict on a recipe: the model trained with several seeds, with the variance between them in the interval."""
    tables = [seed.read("dialogue_significance") for seed in partition.of_seeds]
    table = judge_recipe(tables, partition.part.settings.significance.alpha)
    shown = table.select(["measure", "seeds", "difference", "sd_seeds", "ci_low", "ci_high", "verdict", "verdicts"])
    return Result(table, {"seeds": len(tables)}, tables={"recipe": shown})


def _quality(part: DialoguePart, key: Key) -> dict[str, object]:
    return {
        "answering": _answering(part, key),
        "published": published_quality_of(part, **key),
        "versions": library_versions("sacrebleu"),
    }


of_quality = partial(
    asset,
    stage="verdicts",
    code_version="2",
    settings=_quality,
    schema=RESPONSE_QUALITY,
    checks=(checks.not_empty, checks.values_not_negative),
)


@of_quality(
    axes=("model",),
    covers=lambda part, key: part.models[key["model"]].trained and part.models[key["model"]].debiasing is None,
    upstream=(*DIALOGUES, "dialogue_models"),
)
def base_response_quality(partition: Partition[DialoguePart]) -> Result:
    """What a trained model's answers to the test split are worth: BLEU, distinct-n, perplexity (Liu 2022, 3.3.3.3)."""
    return _measured_quality(partition)


@of_quality(
    axes=("dimension", "model"),
    covers=lambda part, key: _is_debiased(part, key) and part.models[key["model"]].trained,
    upstream=(*DIALOGUES, "debiased_dialogue_models"),
    upstream_of_base=("dialogue_models",),
)
def response_quality(partition: Partition[DialoguePart]) -> Result:
    """The same for a debiased model (Liu 2022, table 3.5)."""
    return _measured_quality(partition)


def _measured_quality(partition: Partition[DialoguePart]) -> Result:
    model = partition.part.models[partition.key["model"]]
    dialogues = _dialogues(partition, model.corpus)
    test = dialogues.filter(pc.equal(dialogues["split"], "test"))
    if not test.num_rows:
        raise FairnessError("no dialogue fell into the split 'test'; raise splits.test in the profile")
    contexts = test["context"].unique()
    answers = answer_each(
        contexts,
        _responder(partition),
        partition.folder,
        partition.progress,
        engine=partition.engine,
    )["response"]
    train = dialogues.filter(pc.equal(dialogues["split"], "train"))["response"]
    counts = sorted(pc.value_counts(train).to_pylist(), key=lambda counted: (-counted["counts"], counted["values"]))
    table = measure_quality(
        answers.take(pc.index_in(test["context"], contexts)),
        test["response"],
        _perplexity(partition, dialogues),
        published_quality_of(partition.part, **partition.key),
        [counted["values"] for counted in counts[:100]],
    )
    shown = table.select(["metric", "value", "constant_value", "published_value"])
    return Result(table, {row["metric"]: row["value"] for row in table.to_pylist()}, tables={"quality": shown})


def _perplexity(partition: Partition[DialoguePart], dialogues: pa.Table) -> tuple[float, str] | None:
    """The perplexity of a model and how it was computed; of a debiased one on its base's words."""
    model = partition.part.models[partition.key["model"]]
    figures, folder = partition.figures(_trained_as(partition)), partition.checkpoint(_trained_as(partition))
    if "validation_perplexity" not in figures:
        return None
    if not model.seq2seq:
        return figures["validation_perplexity"], "exp of the mean validation loss a target"
    base = partition.of_base.checkpoint("dialogue_models") if model.base else folder
    valid = dialogues.filter(pc.equal(dialogues["split"], "valid"))
    value = registry.perplexity(model, folder, valid, Vocabulary.load(base / VOCABULARY), (USER,))
    words = "the base's words" if model.base else "its own words"
    return value, f"exp of the mean cross-entropy of the validation split on {words}, without masked user names"


_COMPARED = ("responses", *_TABLES, "dialogue_significance")


@of_a_debiased_model(
    stage="verdicts",
    upstream=_COMPARED,
    upstream_of_base=_COMPARED,
    code_version="3",
    settings=lambda part, key: {
        **part.settings.significance.model_dump(include={"alpha", "jackknife_blocks"}),
        "alike": part.settings.max_identical_share,
        "versions": library_versions("numpy", "scipy"),
    },
    schema=DEBIASING_EFFECTS,
    checks=(checks.not_empty,),
)
def debiasing_effects(partition: Partition[DialoguePart]) -> Result:
    """What debiasing changed: each measure's gap before and after, and whether the change is more than chance."""
    before, after = map(_found, (partition.of_base, partition))
    table = compare_models(before, after, partition.part.settings.significance)
    part, key, lake = partition.part, partition.key, partition.lake
    base = part.degenerate(partition.of_base.key, lake) is not None
    if base or part.degenerate(key, lake):
        table = without_credit(table, base=base)
    shown = table.select(["measure", "difference_before", "difference_after", "change", "p_holm", "effect"])
    figures = {
        "identical_responses_before": identical_share(before.responses),
        "identical_responses_after": identical_share(after.responses),
        "effects": {row["measure"]: row["effect"] for row in table.to_pylist()},
    }
    return Result(table, figures, tables={"effects": shown})


def _found(partition: Partition[DialoguePart]) -> Measured:
    tables = {name: partition.read(name) for name in _TABLES}
    return Measured(partition.read("responses"), tables, partition.read("dialogue_significance"))


@of_a_model(
    stage="verdicts",
    covers=lambda part, key: _is_debiased(part, key) and bool(part.seeds_of(key)),
    upstream_of_seeds=("dialogue_significance", "responses"),
    upstream_of_baselines=("dialogue_significance", "responses"),
    code_version="5",
    settings=lambda part, key: {
        "seeds": part.models[key["model"]].seeds,
        "alpha": part.settings.significance.alpha,
        "alike": part.settings.max_identical_share,
        "controls": part.controls.of(key),
        "controlled": part.controls.complete(key),
        "versions": library_versions("numpy", "scipy"),
    },
    schema=RECIPE_EFFECTS,
    checks=(checks.not_empty,),
)
def recipe_effects(partition: Partition[DialoguePart]) -> Result:
    """What a method makes of a recipe's gaps, over its seeds: beyond its base, another seed of it, and the controls."""
    part, key = partition.part, partition.key

    def tables(model: Key) -> list[pa.Table]:
        return [partition.of(seed).read("dialogue_significance") for seed in part.seeds_of(model) or [model]]

    table = compare_recipes(
        tables(partition.of_base.key),
        tables(key),
        [Control(control["model"], tables(control)) for control in part.controls.of(key).values()],
        controlled=part.controls.complete(key),
        alpha=part.settings.significance.alpha,
    )
    seeds = part.seeds_of(key)
    base = all(part.degenerate(seed, partition.lake) for seed in part.seeds_of(partition.of_base.key)[: len(seeds)])
    if base or any(part.degenerate(seed, partition.lake) for seed in seeds):
        table = without_credit(table, base=base)
    shown = table.select(["measure", "seeds", "difference_before", "difference_after", "p_holm", "p_cure", "effect"])
    return Result(table, {"effects": {r["measure"]: r["effect"] for r in table.to_pylist()}}, tables={"recipe": shown})


@asset(
    stage="report",
    kind="document",
    upstream=(
        *DIALOGUES,
        "contexts",
        "context_pairs",
        "dialogue_models",
        *_COMPARED,
        "disentanglement",
        "debiased_dialogue_models",
        "base_response_quality",
        "response_quality",
        "debiasing_effects",
        "dialogue_breakdown",
        "verdict_variations",
        "recipe_significance",
        "recipe_effects",
        "classifier_quality",
    ),
    arrows=("dialogue_significance", "recipe_significance", "response_quality", "debiasing_effects", "recipe_effects"),
    code_version="9",
    settings=lambda part, key: report_settings(
        part.project.profile.description,
        part.settings,
        dimensions={key: dimension.model_dump() for key, dimension in part.dimensions.items()},
        corpora={key: source.specification.model_dump() for key, source in part.corpora.items()},
        models={key: model.model_dump() for key, model in part.models.items()},
        order=[list(part.dimensions), list(part.models)],
        published={name: checksum(paths.data_file(f"published/{name}.csv")) for name in TABLES},
    ),
)
def dialogue_fairness_report(partition: Partition[DialoguePart]) -> Result:
    """The study's tables and plots beside the published ones, in one self-contained HTML file; kept in the history."""
    outdated = partition.stale("debiasing_effects")
    return report_of(STUDY, partition, partial(render_report, outdated=outdated))
