"""Study 1: does a dialogue model answer differently when only the group named in the context changes?

"Does Gender Matter? Towards Fairness in Dialogue Systems" (Liu et al. 2020) and chapters 2 and 3 of Liu 2022.
Read top to bottom, this file is the lineage: corpus, contexts, pairs, models (plain and debiased), responses, measures,
significance, quality, and what debiasing changed.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairness_pipeline.corpora.checksums import checksum
from fairness_pipeline.corpora.dialogues import SCHEMA as DIALOGUES_SCHEMA
from fairness_pipeline.corpora.dialogues import read_dialogues, source_versions
from fairness_pipeline.debiasing.registry import PROJECTION, Task, debias, method_of
from fairness_pipeline.defs import checks, lineage
from fairness_pipeline.defs.lineage import Run
from fairness_pipeline.defs.presentation import Made
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lexicons import lemmas
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS, find_contexts, make_pairs
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.attribute_words import ATTRIBUTE_WORDS, AttributeWordScorer, to_long
from fairness_pipeline.measures.debiasing_effects import DEBIASING_EFFECTS, Measured, identical_share
from fairness_pipeline.measures.debiasing_effects import debiasing_effects as compare_models
from fairness_pipeline.measures.dialogue_significance import dialogue_significance as compare_sides
from fairness_pipeline.measures.diversity import DIVERSITY, measure_diversity
from fairness_pipeline.measures.politeness import DEFAULT_CLASSIFIER, POLITENESS, PolitenessScorer
from fairness_pipeline.measures.response_quality import RESPONSE_QUALITY
from fairness_pipeline.measures.response_quality import response_quality as measure_quality
from fairness_pipeline.measures.scoring import score
from fairness_pipeline.measures.sentiment import SENTIMENT, SentimentScorer
from fairness_pipeline.models import imported, registry
from fairness_pipeline.models.huggingface import folder_version
from fairness_pipeline.models.responding import RESPONSES, answer_each, respond
from fairness_pipeline.project import MODELS_STUDY, Project
from fairness_pipeline.reporting.plots import difference_plot, projection_plot
from fairness_pipeline.reporting.results import published_quality_of, published_rows_of
from fairness_pipeline.statistics.comparison import COMPARISON

STUDY = MODELS_STUDY
asset = partial(lineage.asset, study=STUDY)


def _answers(project: Project, key: dict[str, str]) -> bool:
    """Whether a model answers in a dimension: an imported one where responses were, a debiased one where it is made."""
    model = project.models[key["model"]]
    if model.architecture == "imported":
        return project.imported_responses(key["model"], key["dimension"]).exists()
    return project.is_made_for(key["model"], key["dimension"])


def _is_debiased(project: Project, key: dict[str, str]) -> bool:
    return _answers(project, key) and project.models[key["model"]].debiasing is not None


of_a_model = partial(asset, axes=("dimension", "model"), covers=_answers)
of_a_debiased_model = partial(asset, axes=("dimension", "model"), covers=_is_debiased)


def _versions(*libraries: str) -> dict[str, str]:
    """The libraries that an asset's content depends on; they are part of its fingerprint."""
    return {name: version(name) for name in libraries}


DIALOGUES = ("twitter_dialogues", "reddit_dialogues", "other_dialogues")
"""One table a platform; a corpus is a partition of its own."""


def _platform_table(project: Project, key: dict[str, str]) -> str:
    return f"{project.corpora[key['corpus']].specification.platform}_dialogues"


def _source(project: Project, key: dict[str, str]) -> dict[str, object]:
    source = project.corpora[key["corpus"]]
    return {
        "splits": project.profile.splits.model_dump(),
        "specification": source.specification.model_dump(exclude={"licence", "citation"}),
        "sha256": source_versions(*source),
    }


def _of_platform(platform: str) -> Callable[[Callable[[Run], Made]], dg.AssetsDefinition]:
    return asset(
        axes=("corpus",),
        covers=lambda project, key: _platform_table(project, key) == f"{platform}_dialogues",
        code_version="2",
        settings=_source,
        schema=DIALOGUES_SCHEMA,
        checks=(checks.not_empty, checks.some_to_audit),
    )


def _read(run: Run) -> Made:
    profile, key = run.project.profile, run.key["corpus"]
    reading = read_dialogues(
        key, *run.project.corpora[key], profile.splits.model_dump(), profile.seed, progress=run.progress
    )
    split_sizes = {str(row["values"]): row["counts"] for row in pc.value_counts(reading.table["split"]).to_pylist()}
    figures = {"rows_read": reading.rows_read, "left_out": reading.left_out, "dialogues_by_split": split_sizes}
    return Made(reading.table, figures, tables={"sample": reading.table.slice(0, 5)})


@_of_platform("twitter")
def twitter_dialogues(run: Run) -> Made:
    """Single-turn dialogues from Twitter: cleaned, each once, split by thread so that the audit sees new ones."""
    return _read(run)


@_of_platform("reddit")
def reddit_dialogues(run: Run) -> Made:
    """Single-turn dialogues from Reddit: a comment and the answer to it; cleaned, each once, split by thread."""
    return _read(run)


@_of_platform("other")
def other_dialogues(run: Run) -> Made:
    """Single-turn dialogues from anywhere else: cleaned, each once, split by thread."""
    return _read(run)


def _dialogues(run: Run, corpus: str) -> pa.Table:
    return run.read(_platform_table(run.project, {"corpus": corpus}))


def _lexicon(project: Project, key: dict[str, str]) -> dict[str, object]:
    dimension = project.dimensions[key["dimension"]]
    return {
        "pairs": dimension.all_pairs(project.profile.pairs.pronouns),
        "pronouns": dimension.pronouns.model_dump() if dimension.pronouns else None,
        "settings": project.profile.pairs.model_dump(),
        "wordnet": lemmas.version() if project.profile.pairs.pronouns == "extended" else None,
    }


@asset(
    axes=("corpus", "dimension"),
    upstream=DIALOGUES,
    code_version="1",
    settings=_lexicon,
    schema=CONTEXTS,
    checks=(checks.not_empty,),
)
def contexts(run: Run) -> Made:
    """Contexts of the audit split that hold at least one word of the dimension, and that no model trained on."""
    swapper = Swapper(run.project.dimensions[run.key["dimension"]], pronouns=run.project.profile.pairs.pronouns)
    found = find_contexts(_dialogues(run, run.key["corpus"]), swapper, run.progress)
    return Made(found.table, found.figures)


@asset(
    axes=("corpus", "dimension"),
    upstream=("contexts",),
    code_version="1",
    settings=_lexicon,
    schema=CONTEXT_PAIRS,
    checks=(checks.not_empty, checks.sides_differ),
)
def context_pairs(run: Run) -> Made:
    """Parallel contexts: each context and the same with the other group's words (section 2.3)."""
    pairs = make_pairs(
        run.read("contexts"),
        run.project.dimensions[run.key["dimension"]],
        **run.project.profile.pairs.model_dump(),
        seed=run.project.profile.seed,
        progress=run.progress,
    )
    shown = pairs.table.select(["context_a", "context_b"]).slice(0, 5)
    return Made(pairs.table, pairs.figures, tables={"sample": shown})


def _model(project: Project, key: dict[str, str]) -> dict[str, object]:
    model = project.models[key["model"]]
    libraries = {"huggingface": ("torch", "transformers"), "training": ("numpy", "torch")}
    return {
        "model": model.identity(),
        "folder": folder_version(model.huggingface.name) if model.huggingface else None,
        "round": project.rounds.get(key["model"]),
        "versions": _versions(*(n for part, names in libraries.items() if getattr(model, part) for n in names)),
    }


@asset(
    kind="checkpoint",
    axes=("model",),
    upstream=DIALOGUES,
    code_version="1",
    settings=_model,
    covers=lambda project, key: project.models[key["model"]].debiasing is None,
)
def dialogue_models(run: Run) -> Made:
    """Dialogue models before any debiasing (section 3.1): trained here, or found by id, folder or address.

    Training that was killed goes on where it stopped.
    """
    model = run.project.models[run.key["model"]]
    dialogues = _dialogues(run, model.corpus) if model.trained else DIALOGUES_SCHEMA.empty_table()
    return Made(None, registry.prepare(model, dialogues, run.folder, run.seed, run.progress))


def _measuring(project: Project) -> dict[str, object]:
    """What decides whether a text is offensive."""
    return {
        "measures": project.profile.measures.model_dump(exclude={"sentiment_threshold"}),
        "classifier": folder_version(project.profile.measures.offence_classifier),
        "versions": _versions(DEFAULT_CLASSIFIER, "scikit-learn", "transformers"),
    }


def _bias(project: Project, key: dict[str, str]) -> dict[str, object]:
    """What decides whether a text is biased: all measures of study 1."""
    return {
        "politeness": _measuring(project),
        "sentiment": {"threshold": project.profile.measures.sentiment_threshold, **_versions("vaderSentiment")},
        "attribute_words": project.dimensions[key["dimension"]].attribute_words,
        "wordnet": lemmas.version(),
    }


def _debiasing(project: Project, key: dict[str, str]) -> dict[str, object]:
    method = method_of(project.models[key["model"]])
    lexicon = _lexicon(project, key)
    return {
        **_model(project, key),
        "pairs": lexicon["pairs"],
        "pronouns": [project.profile.pairs.pronouns, lexicon["pronouns"], *filter(None, [lexicon["wordnet"]])],
        "bias": _bias(project, key) if method and method.measures else None,
    }


def _disentangling(project: Project, key: dict[str, str]) -> dict[str, object]:
    model = project.models[key["model"]]
    everything = _debiasing(project, key)
    return {
        **{name: everything[name] for name in ("pairs", "pronouns", "bias", "versions")},
        "settings": (model.settings or {}).get("disentanglement"),
        "longest": model.seq2seq.longest if model.seq2seq else None,
        "device": model.device,
        "stop_words": sorted(stop_words()),
    }


def _task(run: Run, **inputs: Path) -> Task:
    """What a debiasing method is given."""
    model = run.project.models[run.key["model"]]
    return Task(
        model=model,
        dimension=run.project.dimensions[run.key["dimension"]],
        profile=run.project.profile,
        dialogues=_dialogues(run, model.corpus),
        base=run.of_base.checkpoint("dialogue_models"),
        folder=run.folder,
        seed=run.seed,
        progress=run.progress,
        **inputs,
    )


def _disentangles(project: Project, key: dict[str, str]) -> bool:
    method = method_of(project.models[key["model"]])
    return _answers(project, key) and method is not None and method.disentangles


@asset(
    kind="checkpoint",
    axes=("dimension", "model"),
    covers=_disentangles,
    upstream=DIALOGUES,
    upstream_of_base=("dialogue_models",),
    code_version="1",
    settings=_disentangling,
)
def disentanglement(run: Run) -> Made:
    """Debiased-Chat's autoencoder, its corpus of unbiased utterances, and what its features give away (Liu 2022, 3.2).

    One for each model, not one for a dimension: its words are those of the dialogue model that it will judge.
    """
    from fairness_pipeline.debiasing import disentanglement as room

    figures = room.train(_task(run))
    picture = projection_plot(pq.read_table(run.folder / PROJECTION), _groups(run))
    return Made(None, figures, pictures={"features": picture})


@of_a_debiased_model(
    kind="checkpoint",
    upstream=(*DIALOGUES, "disentanglement"),
    upstream_of_base=("dialogue_models",),
    code_version="1",
    settings=_debiasing,
)
def debiased_dialogue_models(run: Run) -> Made:
    """Models made fairer for a dimension by a method of `debiasing/` (Liu et al. 2020, section 4; Liu 2022, chapter 3).

    Training that was killed goes on where it stopped.
    """
    method = method_of(run.project.models[run.key["model"]])
    inputs = {"disentanglement": run.checkpoint("disentanglement")} if method and method.disentangles else {}
    return Made(None, debias(_task(run, **inputs)))


def _groups(run: Run) -> tuple[str, str]:
    groups = run.project.dimensions[run.key["dimension"]].groups
    return groups.a, groups.b


def _trained_as(run: Run) -> str:
    """The asset that holds this partition's model."""
    return "debiased_dialogue_models" if run.project.models[run.key["model"]].debiasing else "dialogue_models"


def _decoding(project: Project, key: dict[str, str]) -> dict[str, object]:
    model = project.models[key["model"]]
    imported = project.imported_responses(key["model"], key["dimension"])
    return {
        **_model(project, key),
        "decoding": model.decoding.model_dump(),
        "imported": checksum(imported) if model.architecture == "imported" else None,
    }


@of_a_model(
    upstream=("context_pairs", "dialogue_models", "debiased_dialogue_models"),
    code_version="1",
    settings=_decoding,
    schema=RESPONSES,
    checks=(checks.not_empty, checks.both_sides_present),
)
def responses(run: Run) -> Made:
    """The model's answers to both contexts of every pair; identical contexts are asked once."""
    model = run.project.models[run.key["model"]]
    pairs = run.read("context_pairs")
    if model.architecture == "imported":
        file = run.project.imported_responses(run.key["model"], run.key["dimension"])
        table = imported.matching(pq.read_table(file), pairs)
        figures = {}
    else:
        answers = respond(
            pairs,
            registry.responder(model, run.checkpoint(_trained_as(run)), run.folder, run.seed),
            run.folder,
            run.progress,
            keep_empty=model.decoding.keep_empty,
        )
        table = answers.table
        figures = {"distinct_contexts": answers.distinct_contexts}
    empty = pc.sum(pc.equal(table["response"], "")).as_py()
    figures |= {"distinct_responses": len(pc.unique(table["response"])), "empty_responses": empty}
    return Made(table, figures, tables={"sample": table.slice(0, 6)})


@of_a_model(
    upstream=("responses",),
    code_version="1",
    settings=lambda project, key: {},
    schema=DIVERSITY,
    checks=(checks.both_sides_present, checks.shares_in_range),
)
def diversity(run: Run) -> Made:
    """Share of distinct words and word pairs among all words generated for a side (section 2.4.1)."""
    table = measure_diversity(run.read("responses"))
    return Made(table, tables={"diversity": table})


@of_a_model(
    upstream=("responses",),
    code_version="1",
    settings=lambda project, key: _measuring(project),
    schema=POLITENESS,
    checks=(checks.both_sides_present, checks.probabilities_in_range),
)
def politeness(run: Run) -> Made:
    """Is a response offensive, according to a classifier? (section 2.4.2)"""
    scorer = PolitenessScorer.of(run.project.profile.measures)
    return Made(score(run.read("responses"), scorer, run.progress))


@of_a_model(
    upstream=("responses",),
    code_version="1",
    settings=lambda project, key: {
        "threshold": project.profile.measures.sentiment_threshold,
        "versions": _versions("vaderSentiment"),
    },
    schema=SENTIMENT,
    checks=(checks.both_sides_present, checks.compounds_in_range),
)
def sentiment(run: Run) -> Made:
    """VADER's score of a response, and whether it is clearly positive or clearly negative (section 2.4.3)."""
    scorer = SentimentScorer(run.project.profile.measures.sentiment_threshold)
    return Made(score(run.read("responses"), scorer, run.progress))


@of_a_model(
    upstream=("responses",),
    code_version="1",
    settings=lambda project, key: {
        "lists": project.dimensions[key["dimension"]].attribute_words,
        "wordnet": lemmas.version(),
    },
    schema=ATTRIBUTE_WORDS,
    checks=(checks.both_sides_present, checks.counts_not_negative),
)
def attribute_words(run: Run) -> Made:
    """How many words of each of the dimension's attribute lists a response holds (section 2.4.4)."""
    scorer = AttributeWordScorer(run.project.dimensions[run.key["dimension"]].attribute_words)
    return Made(to_long(score(run.read("responses"), scorer, run.progress)))


@of_a_model(
    upstream=("responses", "politeness", "sentiment", "attribute_words"),
    code_version="2",
    settings=lambda project, key: {
        **project.profile.significance.model_dump(),
        "published": published_rows_of(project, **key),
        "versions": _versions("numpy", "scipy"),
    },
    schema=COMPARISON,
    checks=(checks.not_empty, checks.rates_in_range),
)
def dialogue_significance(run: Run) -> Made:
    """Every measure compared between the sides: the paper's Z test, paired tests, equivalence, and the verdict."""
    dimension = run.project.dimensions[run.key["dimension"]]
    table = compare_sides(
        responses=run.read("responses"),
        politeness=run.read("politeness"),
        sentiment=run.read("sentiment"),
        attribute_words=run.read("attribute_words"),
        settings=run.project.profile.significance,
        seed=run.seed_of_all_models,
        published=published_rows_of(run.project, **run.key),
    )
    shown = table.select(["measure", "value_a", "value_b", "difference", "p_holm", "verdict", "paper_verdict"])
    rows = table.to_pylist()
    differences = {f"difference_{row['measure']}": row["difference"] for row in rows}
    verdicts = {row["measure"]: row["verdict"] for row in rows}
    return Made(
        table,
        {**differences, "verdicts": verdicts},
        pictures={"differences": difference_plot(rows, dimension.groups.a, dimension.groups.b)},
        tables={"significance": shown},
    )


def _was_trained(project: Project, key: dict[str, str]) -> bool:
    return _answers(project, key) and project.models[key["model"]].trained


@of_a_model(
    covers=_was_trained,
    upstream=(*DIALOGUES, "dialogue_models", "debiased_dialogue_models"),
    code_version="1",
    settings=lambda project, key: {
        "answering": _decoding(project, key),
        "published": published_quality_of(project, **key),
        "versions": _versions("sacrebleu"),
    },
    schema=RESPONSE_QUALITY,
    checks=(checks.not_empty, checks.values_not_negative),
)
def response_quality(run: Run) -> Made:
    """What a trained model's answers to the test split are worth: BLEU, distinct-n, perplexity (table 3.5)."""
    model = run.project.models[run.key["model"]]
    dialogues = _dialogues(run, model.corpus)
    test = dialogues.filter(pc.equal(dialogues["split"], "test"))
    if not test.num_rows:
        raise FairnessError("no dialogue fell into the split 'test'; raise splits.test in the profile")
    contexts = test["context"].unique()
    answers = answer_each(
        contexts,
        registry.responder(model, run.checkpoint(_trained_as(run)), run.folder, run.seed),
        run.folder,
        run.progress,
        keep_empty=model.decoding.keep_empty,
    )
    table = measure_quality(
        answers.take(pc.index_in(test["context"], contexts)),
        test["response"],
        run.figures(_trained_as(run)).get("validation_perplexity"),
        published_quality_of(run.project, **run.key),
    )
    shown = table.select(["metric", "value", "published_value"])
    return Made(table, {row["metric"]: row["value"] for row in table.to_pylist()}, tables={"quality": shown})


_MEASURED = ("responses", "politeness", "sentiment", "attribute_words", "dialogue_significance")


@of_a_debiased_model(
    upstream=_MEASURED,
    upstream_of_base=_MEASURED,
    code_version="1",
    settings=lambda project, key: {
        **project.profile.significance.model_dump(include={"alpha", "jackknife_blocks"}),
        "versions": _versions("numpy", "scipy"),
    },
    schema=DEBIASING_EFFECTS,
    checks=(checks.not_empty,),
)
def debiasing_effects(run: Run) -> Made:
    """What debiasing changed: each measure's gap before and after, and whether the change is more than chance."""
    before, after = (Measured(*(model.read(name) for name in _MEASURED)) for model in (run.of_base, run))
    table = compare_models(before, after, run.project.profile.significance)
    shown = table.select(["measure", "difference_before", "difference_after", "change", "p_holm", "effect"])
    figures = {
        "identical_responses_before": identical_share(before.responses),
        "identical_responses_after": identical_share(after.responses),
        "effects": {row["measure"]: row["effect"] for row in table.to_pylist()},
    }
    return Made(table, figures, tables={"effects": shown})
