"""Study 2: does a language model find a stereotype likelier of one group than of the other, and what cures it?

"RedditBias: A Real-World Resource for Bias Evaluation and Debiasing of Conversational Language Models" (Barikeri et al.
2021). Read top to bottom, this file is the lineage: comments, phrases, labels, splits, counterfactuals, models,
perplexities, verdicts, and what debiasing costs.
"""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.downloads import file_version, located
from fairness_pipeline.corpora.language.multiwoz import STATE_TURNS, read_state_turns
from fairness_pipeline.corpora.language.phrase_annotations import (
    AGREEMENT,
    LEVELS,
    PHRASE_ANNOTATIONS,
    agreement,
    generated,
    read_annotations,
    ties,
)
from fairness_pipeline.corpora.language.phrase_corpus import DownstreamTask
from fairness_pipeline.corpora.language.phrase_splits import PHRASE_SPLITS, draw_splits, released_splits
from fairness_pipeline.corpora.language.reddit_comments import (
    CANDIDATES,
    COMMENTS,
    PHRASES,
    find_candidates,
    find_phrases,
    read_comments,
)
from fairness_pipeline.corpora.language.response_sets import (
    REFERENCES,
    RESPONSE_SETS,
    read_human_references,
    read_response_sets,
)
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.debiasing.language.registry import METHODS, debias
from fairness_pipeline.debiasing.language.task import Task
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.libraries import library_version, library_versions
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.lexicons.counterfactuals import (
    COUNTERFACTUAL_PHRASES,
    DISAGREEMENTS,
    compare_with_released,
    make_counterfactuals,
)
from fairness_pipeline.lexicons.stereotypes import Lexicon, attributes_of, stereotypes_of
from fairness_pipeline.lineage.assets import Assets
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Recipe, Result
from fairness_pipeline.measures.language.downstream import DOWNSTREAM, Given
from fairness_pipeline.measures.language.phrase_bias import (
    LANGUAGE_MODEL_BIAS,
    LOG,
    OWN,
    PHRASE_PERPLEXITIES,
    compare_phrases,
    debiasing_effect,
    scored_versions,
)
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.models.language import registry
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.models.pretrained import folder_version
from fairness_pipeline.reporting.document import Pictures, report_of, report_settings
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS
from fairness_pipeline.studies.language_model_bias import published
from fairness_pipeline.studies.language_model_bias.plots import t_values
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelPart
from fairness_pipeline.studies.language_model_bias.report import render_report
from fairness_pipeline.studies.language_model_bias.study import STUDY
from fairness_pipeline.workspace.distinct import LazyScorer, each_distinct
from fairness_pipeline.workspace.lake import Key, Lake
from fairness_pipeline.workspace.published import checksums

asset = Assets(LanguageModelPart)


def _files(part: LanguageModelPart, *files: CorpusFile | None) -> dict[str, str]:
    """SHA-256 of the files that something is made from."""
    grammar = part.corpus.grammar
    found = {grammar.file: checksum(data_file(grammar.file)), **grammar.model_dump()} if grammar else {}
    return {**found, **{file.path: file_version(file, part.folder) for file in files if file}}


def _lexicon(part: LanguageModelPart, key: Key) -> dict[str, Any]:
    dimension = part.dimensions[key["dimension"]]
    return {**stereotypes_of(dimension).model_dump(), "attributes": list(attributes_of(dimension))}


def _terms(partition: Partition[LanguageModelPart]) -> Lexicon:
    return Lexicon(partition.part.dimensions[partition.key["dimension"]])


def _has_comments(part: LanguageModelPart, key: Key) -> bool:
    return bool(part.corpus.grammar or part.corpus.comments)


def _has_phrases(part: LanguageModelPart, key: Key) -> bool:
    return part.has_phrases(key["dimension"])


of_a_dimension = partial(asset, axes=("dimension",))


@asset(
    stage="comments",
    covers=_has_comments,
    code_version="2",
    settings=lambda part, key: {
        "files": _files(part, *part.corpus.comments),
        "columns": [file.columns.model_dump() for file in part.corpus.comments],
    },
    schema=COMMENTS,
    checks=(checks.not_empty,),
)
def reddit_comments(partition: Partition[LanguageModelPart]) -> Result:
    """Comments of a dump, or generated ones; each id once, without deleted ones."""
    part = partition.part
    found = read_comments(part.corpus, part.folder, partition.progress)
    figures = {"comments": found.table.num_rows, "left_out": found.left_out, "blank_ids_numbered": found.numbered}
    return Result(found.table, figures, tables={"sample": found.table.slice(0, 5)})


@of_a_dimension(
    stage="phrases",
    covers=_has_comments,
    upstream=("reddit_comments",),
    code_version="1",
    settings=_lexicon,
    schema=CANDIDATES,
)
def bias_candidates(partition: Partition[LanguageModelPart]) -> Result:
    """Comments that hold a target and a term of the stereotype, cleaned, under 150 characters (section 2.2)."""
    table, left_out = find_candidates(partition.read("reddit_comments"), _terms(partition))
    return Result(table, {"candidates": table.num_rows, "left_out": left_out}, tables={"sample": table.slice(0, 5)})


@of_a_dimension(
    stage="phrases",
    covers=_has_comments,
    upstream=("bias_candidates",),
    code_version="1",
    settings=_lexicon,
    schema=PHRASES,
)
def bias_phrases(partition: Partition[LanguageModelPart]) -> Result:
    """The window of seven tokens around each target (section 2.2)."""
    table = find_phrases(partition.read("bias_candidates"), _terms(partition))
    inside = int(pc.sum(table["attribute_in_window"].cast(pa.int64())).as_py() or 0)
    return Result(
        table, {"phrases": table.num_rows, "attribute_in_window": inside}, tables={"sample": table.slice(0, 5)}
    )


def _annotating(part: LanguageModelPart, key: Key) -> dict[str, Any]:
    source = part.corpus.phrases.get(key["dimension"])
    return {
        "files": _files(part, *(source.annotations if source else ())),
        "imported": {path.name: checksum(path) for path in part.imported(key["dimension"])},
        "ignored": part.corpus.ignored_labels,
    }


@of_a_dimension(
    stage="phrases",
    covers=_has_phrases,
    upstream=("bias_phrases",),
    code_version="2",
    settings=_annotating,
    schema=PHRASE_ANNOTATIONS,
    checks=(checks.not_empty,),
)
def phrase_annotations(partition: Partition[LanguageModelPart]) -> Result:
    """Whether annotators find comment and phrase stereotyped (section 2.3); a label is null where none was given."""
    part, dimension = partition.part, partition.key["dimension"]
    ignored: Counter[str] = Counter()
    tables = []
    source = part.corpus.grammar
    if part.grammar and source and not part.imported(dimension):
        tables.append(generated(partition.read("bias_phrases"), part.grammar, source.comments, source.seed))
    released = part.corpus.phrases[dimension].annotations if dimension in part.corpus.phrases else ()
    files = [(located(file, part.folder), file.annotator, file.encoding) for file in released]
    files += [(path, path.stem, "utf-8") for path in part.imported(dimension)]
    for path, annotator, encoding in files:
        read = read_annotations(path, annotator, encoding=encoding, ignored=part.corpus.ignored_labels)
        tables.append(read.table)
        ignored.update(read.ignored)
    if not tables:
        found = partition.read("bias_phrases").num_rows
        raise FairnessError(
            f"{dimension}: {found:,} phrases found, none labelled: fairness-pipeline export-phrases --dimension "
            f"{dimension} --output FILE.csv --profile {partition.project.name}, then import-annotations"
        )
    table = pa.concat_tables(tables)
    figures = {
        "rows": table.num_rows,
        **{f"{level}_true": int(pc.sum(table[level].cast(pa.int64())).as_py() or 0) for level in LEVELS},
        "ignored_labels": dict(ignored),
        "phrases_with_a_tie": ties(table.to_pylist(), "bias_phrase"),
    }
    return Result(table, figures)


@of_a_dimension(
    stage="phrases",
    covers=_has_phrases,
    upstream=("phrase_annotations",),
    code_version="2",
    settings=lambda part, key: {**library_versions("krippendorff"), "published": part.corpus.published_as is not None},
    schema=AGREEMENT,
)
def annotation_agreement(partition: Partition[LanguageModelPart]) -> Result:
    """Krippendorff's alpha of what two annotators labelled; no row where nobody shared items (section 2.3)."""
    published = partition.part.corpus.published_as is not None
    table = agreement(partition.read("phrase_annotations"), published=published)
    return Result(table, tables={"agreement": table})


def _splitting(part: LanguageModelPart, key: Key) -> dict[str, Any]:
    source = part.corpus.phrases.get(key["dimension"])
    files = _files(part, source.train, source.dev, source.test) if source else {}
    return {"released": files, "unbiased": part.settings.significance.unbiased, "seed": part.project.profile.seed}


@of_a_dimension(
    stage="phrases",
    covers=_has_phrases,
    upstream=("phrase_annotations",),
    code_version="1",
    settings=_splitting,
    schema=PHRASE_SPLITS,
    checks=(checks.not_empty,),
)
def phrase_splits(partition: Partition[LanguageModelPart]) -> Result:
    """Biased phrases in train, dev and test: the released splits, or 60/20/20 by comment; and some without bias."""
    part = partition.part
    source = part.corpus.phrases.get(partition.key["dimension"])
    annotations, seed = partition.read("phrase_annotations"), part.project.profile.seed
    figures: dict[str, Any] = {}
    if source and source.train:
        table, found = released_splits(source, part.folder, annotations, seed, part.settings.significance.unbiased)
        figures = {"released": found}
    else:
        table = draw_splits(annotations, seed, part.settings.significance.unbiased)
    return Result(table, {**figures, "phrases": dict(Counter(table["split"].to_pylist()))})


@of_a_dimension(
    stage="phrases",
    covers=_has_phrases,
    upstream=("phrase_splits",),
    code_version="2",
    settings=_lexicon,
    schema=COUNTERFACTUAL_PHRASES,
    checks=(checks.not_empty,),
)
def counterfactual_phrases(partition: Partition[LanguageModelPart]) -> Result:
    """Each phrase and the same about the other group (section 3.1)."""
    table, left_out = make_counterfactuals(partition.read("phrase_splits"), _terms(partition))
    shown = table.select(["text_b", "text_a"]).slice(0, 5)
    figures = {"phrases": dict(Counter(table["split"].to_pylist())), "name_nobody": left_out}
    return Result(table, figures, tables={"sample": shown})


def _has_counterfactuals(part: LanguageModelPart, key: Key) -> bool:
    source = part.corpus.phrases.get(key["dimension"])
    return bool(source and source.counterfactuals)


@of_a_dimension(
    stage="phrases",
    covers=_has_counterfactuals,
    code_version="1",
    settings=lambda part, key: {
        **_lexicon(part, key),
        "files": _files(part, *part.corpus.phrases[key["dimension"]].counterfactuals),
    },
    schema=DISAGREEMENTS,
)
def counterfactual_disagreements(partition: Partition[LanguageModelPart]) -> Result:
    """Where the authors' released counterfactuals are others than ours, each classed."""
    part = partition.part
    released = [
        (str(column(where, row, file.phrase)).strip().lower(), str(column(where, row, file.column)).strip().lower())
        for file in part.corpus.phrases[partition.key["dimension"]].counterfactuals
        for where, row in read_records(located(file, part.folder), file.encoding)
    ]
    table, total = compare_with_released(released, _terms(partition))
    figures = {"compared": total, "differ": table.num_rows, "better": dict(Counter(table["better"].to_pylist()))}
    return Result(table, figures, tables={"disagreements": table.slice(0, 10)})


@asset(
    stage="tasks",
    covers=lambda part, key: bool(part.corpus.grammar or part.corpus.references),
    code_version="1",
    settings=lambda part, key: _files(part, part.corpus.references),
    schema=REFERENCES,
    checks=(checks.not_empty,),
)
def human_references(partition: Partition[LanguageModelPart]) -> Result:
    """What people wrote in the domain, for the perplexity on it (section 3.2)."""
    return Result(read_human_references(partition.part.corpus, partition.part.folder))


@asset(
    stage="tasks",
    covers=lambda part, key: bool(part.corpus.grammar or part.corpus.state_tracking),
    code_version="1",
    settings=lambda part, key: {
        "files": _files(part, *((*t.train, *t.test) if (t := part.corpus.state_tracking) else ())),
        "maximum": part.settings.state_tracking.maximum,
        "seed": part.project.profile.seed,
    },
    schema=STATE_TURNS,
    checks=(checks.not_empty,),
)
def state_turns(partition: Partition[LanguageModelPart]) -> Result:
    """Turns with a value that the user gives in them, right or wrong (section 3.2)."""
    part = partition.part
    table = read_state_turns(part.corpus, part.folder, part.project.profile.seed, part.settings.state_tracking.maximum)
    return Result(table, {"turns": dict(Counter(table["split"].to_pylist()))}, tables={"sample": table.slice(0, 5)})


@asset(
    stage="tasks",
    covers=lambda part, key: bool(part.corpus.grammar or part.corpus.responses),
    code_version="1",
    settings=lambda part, key: {
        "files": _files(part, *((*t.train, *t.test) if (t := part.corpus.responses) else ())),
        "maximum": part.settings.responses.maximum,
        "seed": part.project.profile.seed,
    },
    schema=RESPONSE_SETS,
    checks=(checks.not_empty,),
)
def response_sets(partition: Partition[LanguageModelPart]) -> Result:
    """Contexts with several human answers each (section 3.2)."""
    part = partition.part
    table = read_response_sets(part.corpus, part.folder, part.project.profile.seed, part.settings.responses.maximum)
    return Result(table, {"contexts": dict(Counter(table["split"].to_pylist()))}, tables={"sample": table.slice(0, 3)})


def _model(part: LanguageModelPart, key: Key) -> dict[str, object]:
    model = part.models[key["model"]]
    return {
        "model": model.identity(),
        "folder": folder_version(model.huggingface.name) if model.huggingface else None,
        "versions": library_versions(*model.libraries),
    }


def _training(part: LanguageModelPart, key: Key) -> dict[str, object]:
    """What decides how a model is trained: also the number format, where it is not the one in which it is asked."""
    source = part.models[key["model"]].huggingface
    return {**_model(part, key), **({"trained_in": "float32"} if source and source.dtype != "float32" else {})}


def _is_base(part: LanguageModelPart, key: Key) -> bool:
    model = part.models[key["model"]]
    return model.weighted and model.base is None


def _is_debiased(part: LanguageModelPart, key: Key) -> bool:
    return part.asked(key) and part.models[key["model"]].base is not None


@asset(
    stage="models",
    kind="checkpoint",
    axes=("model",),
    covers=_is_base,
    upstream=("reddit_comments",),
    code_version="1",
    settings=_model,
)
def language_models(partition: Partition[LanguageModelPart]) -> Result:
    """Language models before debiasing: found by id or folder, or trained here on the comments.

    Training that was killed goes on where it stopped.
    """
    model = partition.part.models[partition.key["model"]]
    comments = partition.read("reddit_comments")["text"].to_pylist() if model.gpt2 else []
    return Result(None, registry.prepare(model, comments, partition.folder, partition.seed, partition.progress))


def _debiasing(part: LanguageModelPart, key: Key) -> dict[str, object]:
    own = part.models[key["model"]]
    method = METHODS[str(own.debiasing)]
    return {
        **_training(part, key),
        "settings": method.settings.model_validate(own.settings or {}).model_dump(),
        "lexicon": _lexicon(part, key),
        "outliers_removed": part.corpus.outliers_removed,
        "accelerate": library_version("accelerate"),
    }


@asset(
    stage="models",
    kind="checkpoint",
    axes=("dimension", "model"),
    covers=_is_debiased,
    upstream=("counterfactual_phrases", "human_references"),
    upstream_of_base=("language_models",),
    code_version="1",
    settings=_debiasing,
)
def debiased_language_models(partition: Partition[LanguageModelPart]) -> Result:
    """LMD, ADD, HD and CDA, and fine-tuning without a cure as their control (section 4); the grid's table is kept."""
    part = partition.part
    task = Task(
        model=part.models[partition.key["model"]],
        lexicon=_terms(partition),
        phrases=partition.read("counterfactual_phrases"),
        references=_references(partition),
        base=partition.of_base.checkpoint("language_models"),
        folder=partition.folder,
        seed=partition.seed,
        outliers=not part.corpus.outliers_removed,
        progress=partition.progress,
    )
    figures = debias(task)
    grid = pa.Table.from_pylist(figures["grid"]) if "grid" in figures else None
    return Result(None, figures, tables={"grid": grid} if grid else {})


def _references(partition: Partition[LanguageModelPart]) -> list[str]:
    """Human references, where the corpus has any."""
    corpus = partition.part.corpus
    if not (corpus.grammar or corpus.references):
        return []
    texts: list[str] = partition.read("human_references")["text"].to_pylist()
    return texts


def _saved(partition: Partition[LanguageModelPart]) -> tuple[LanguageModelSpecification, Path]:
    """This partition's model, and the folder that holds it."""
    model = partition.part.models[partition.key["model"]]
    made = "debiased_language_models" if model.base else "language_models"
    return model, partition.checkpoint(made)


@asset(
    stage="perplexities",
    axes=("dimension", "model"),
    covers=lambda part, key: part.measured(key),
    upstream=("counterfactual_phrases", "language_models", "debiased_language_models"),
    code_version="3",
    settings=lambda part, key: {
        **_model(part, key),
        "published": checksum(data_file(own)) if (own := part.models[key["model"]].perplexities) else None,
        **({"logprobs": checksum(Path(file))} if (file := part.models[key["model"]].logprobs) else {}),
    },
    schema=PHRASE_PERPLEXITIES,
    checks=(checks.not_empty, checks.perplexities_in_range),
)
def phrase_perplexities(partition: Partition[LanguageModelPart]) -> Result:
    """The perplexity of each phrase of dev, test and without bias, and of its counterfactual; each text once."""
    part, key = partition.part, partition.key
    if not part.models[key["model"]].scored:
        rows = [
            {
                "phrase_id": row["phrase"], "comment_id": row["comment"], "split": "test", "target": row["target"],
                "side": side, "reading": OWN, "attribute": "", "text": "", "tokens": 0,
                "perplexity": float(row[f"perplexity_{side}"]),
            }
            for row in part.published(key)
            for side in "ab"
        ]  # fmt: skip
        return Result(pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES), {"published": True})
    versions = scored_versions(partition.read("counterfactual_phrases"))
    model = part.models[key["model"]]
    scorer = registry.perplexity_scorer(*(_saved(partition) if model.weighted else (model, None)))
    scored = each_distinct(
        versions["text"], scorer, folder=partition.folder, progress=partition.progress, note="phrases",
        engine=partition.engine,
    )  # fmt: skip
    table = versions.append_column("tokens", scored["tokens"]).append_column("perplexity", scored["perplexity"])
    mean = float(np.log(scored["perplexity"].to_numpy()).mean())
    examined = partition.engine.examine(scorer) if isinstance(scorer, LazyScorer) else {}
    guesses = "tokens" in examined and mean > 0.95 * math.log(examined["tokens"])
    begins = {"begins_with": examined["begins_with"]} if examined.get("begins_with") else {}
    return Result(table, {"mean_log_perplexity": round(mean, 4), "guesses": guesses, **begins})


def _findings(part: LanguageModelPart, key: Key) -> dict[str, str]:
    """What the paper finds, where it is of the same phrases."""
    model = part.models[key["model"]]
    same = part.corpus.published_as is not None or not model.scored
    return published.findings(model.published_as, key["dimension"]) if same else {}


@asset(
    stage="verdicts",
    axes=("dimension", "model"),
    covers=lambda part, key: part.measured(key),
    upstream=("phrase_perplexities",),
    upstream_of_base=("phrase_perplexities",),
    code_version="3",
    settings=lambda part, key: {
        "names_the_group": part.dimensions[key["dimension"]].names_the_group,
        **part.settings.significance.model_dump(exclude={"unbiased"}),
        "outliers_removed": part.corpus.outliers_removed,
        "published": _findings(part, key),
        "versions": library_versions("numpy", "scipy"),
    },
    schema=LANGUAGE_MODEL_BIAS,
    checks=(checks.not_empty,),
)
def language_model_bias(partition: Partition[LanguageModelPart]) -> Result:
    """LMB: the paper's paired t test after its outlier rule, beside tests that fit perplexities, and the verdict."""
    part, key = partition.part, partition.key
    model, own = part.models[key["model"]], partition.read("phrase_perplexities")
    base = partition.of_base.read("phrase_perplexities") if model.base else own
    removed = part.corpus.outliers_removed or not model.scored
    table = compare_phrases(
        own,
        None if removed else base,
        part.settings.significance,
        _findings(part, key),
        names_the_group=part.dimensions[key["dimension"]].names_the_group,
    )
    shown = table.select(["measure", "n", "difference", "statistic", "p", "p_paired", "survives", "verdict"])
    says = summary(STUDY, part, key, table.to_pylist())
    pairs = next(row["n"] for row in table.to_pylist() if row["measure"] == LOG)
    return Result(table, {"pairs": pairs}, tables={"significance": shown}, says=says)


@asset(
    name="language_model_debiasing_effects",
    stage="verdicts",
    axes=("dimension", "model"),
    covers=_is_debiased,
    upstream=("phrase_perplexities", "language_model_bias"),
    upstream_of_base=("phrase_perplexities", "language_model_bias"),
    code_version="2",
    settings=lambda part, key: part.settings.significance.model_dump(include={"alpha"}),
    schema=DEBIASING_EFFECTS,
)
def effects(partition: Partition[LanguageModelPart]) -> Result:
    """Whether the gap got smaller, paired on the same phrases."""
    before, after = (each.read("phrase_perplexities") for each in (partition.of_base, partition))
    was, now = (
        {row["measure"]: row["verdict"] for row in each.read("language_model_bias").to_pylist()}[STEREOTYPE]
        for each in (partition.of_base, partition)
    )
    table = debiasing_effect(before, after, (was, now), partition.part.settings.significance.alpha)
    return Result(table, tables={"effects": table})


def _task(
    name: str,
    data: str,
    make: Callable[[Given, Partition[LanguageModelPart]], pa.Table],
    settings: DownstreamTask | None,
) -> list[Recipe]:
    """A downstream task: of base models once, of debiased ones in each dimension. One with settings trains."""
    return [
        asset(
            name=f"base_{name}" if base else name,
            description=f"{make.__doc__}",
            stage="tasks",
            axes=("model",) if base else ("dimension", "model"),
            covers=partial(_does, data, base),
            upstream=(data, "language_models" if base else "debiased_language_models"),
            code_version="1",
            settings=partial(_settings, settings),
            trains=settings is not None,
            schema=DOWNSTREAM,
            checks=(checks.not_empty,),
        )(partial(_done, make, settings is not None))
        for base in (True, False)
    ]


def _does(data: str, base: bool, part: LanguageModelPart, key: Key) -> bool:
    source = {"human_references": "references", "state_turns": "state_tracking", "response_sets": "responses"}[data]
    there = bool(part.corpus.grammar or getattr(part.corpus, source))
    return there and (_is_base if base else _is_debiased)(part, key)


def _settings(name: DownstreamTask | None, part: LanguageModelPart, key: Key) -> dict[str, Any]:
    own = {**_training(part, key), **getattr(part.settings, name).model_dump()} if name else _model(part, key)
    if name:
        own["data"] = part.corpus.data_of(name)
    return {**own, "versions": library_versions("nltk", "sacrebleu", "scikit-learn")}


def _done(
    make: Callable[[Given, Partition[LanguageModelPart]], pa.Table],
    trains: bool,
    partition: Partition[LanguageModelPart],
) -> Result:
    model, tokenizer = registry.load(*_saved(partition), trains=trains)
    table = make(Given(model, tokenizer, partition.folder, partition.seed, partition.progress), partition)
    return Result(table, tables={"metrics": table})


def _printed(partition: Partition[LanguageModelPart], task: DownstreamTask) -> dict[str, float]:
    """The paper's figures of a task, where ours are from the same data."""
    part = partition.part
    if part.corpus.data_of(task) != published.DATA[task]:
        return {}
    return published.downstream(part.models[partition.key["model"]].published_as, partition.key.get("dimension"))


def _perplexity(given: Given, partition: Partition[LanguageModelPart]) -> pa.Table:
    """LMP: the perplexity of human references (section 3.2, figure 1b)."""
    from fairness_pipeline.measures.language.reddit_perplexity import reddit_perplexity

    return reddit_perplexity(given, partition.read("human_references"))


def _tracking(given: Given, partition: Partition[LanguageModelPart]) -> pa.Table:
    """DST: F1 and accuracy of a model tuned to tell what a user wants (section 3.2, table 4)."""
    from fairness_pipeline.measures.language.dialogue_state_tracking import dialogue_state_tracking

    settings = partition.part.settings.state_tracking
    return dialogue_state_tracking(
        given, partition.read("state_turns"), settings, _printed(partition, "state_tracking")
    )


def _responses(given: Given, partition: Partition[LanguageModelPart]) -> pa.Table:
    """CRG: BLEU-4, METEOR, NIST-2, Entropy-4 and Dist-2 of a tuned model's answers (section 3.2, table 5)."""
    from fairness_pipeline.measures.language.response_generation import response_generation

    settings = partition.part.settings.responses
    return response_generation(given, partition.read("response_sets"), settings, _printed(partition, "responses"))


reddit_perplexity = _task("reddit_perplexity", "human_references", _perplexity, None)
dialogue_state_tracking = _task("dialogue_state_tracking", "state_turns", _tracking, "state_tracking")
response_generation = _task("response_generation", "response_sets", _responses, "responses")
_TASKS = tuple(
    recipe.name for task in (reddit_perplexity, dialogue_state_tracking, response_generation) for recipe in task
)


def _t_values(part: LanguageModelPart, lake: Lake, audits: list[Audit]) -> Pictures:
    return {"t_values": t_values(part, audits)} if any(audit.measured for audit in audits) else {}


@asset(
    stage="report",
    kind="document",
    covers=lambda part, key: bool(part.models),
    upstream=(
        "bias_phrases", "phrase_annotations", "annotation_agreement", "phrase_splits", "counterfactual_phrases",
        "counterfactual_disagreements", "debiased_language_models", "phrase_perplexities", "language_model_bias",
        "language_model_debiasing_effects", *_TASKS,
    ),
    arrows=("language_model_bias", "language_model_debiasing_effects", *_TASKS),
    code_version="2",
    settings=lambda part, key: report_settings(
        part.project.profile.description,
        part.settings,
        models={key: model.identity() for key, model in part.models.items()},
        published=checksums(published.TABLES),
        labels=[[key, dimension.label] for key, dimension in part.dimensions.items()],
        order=list(part.models),
    ),
)  # fmt: skip
def language_model_bias_report(partition: Partition[LanguageModelPart]) -> Result:
    """Figure 1, tables 3 to 5 and appendix C beside ours, verdicts, phrases with the widest gaps; kept in history."""
    return report_of(STUDY, partition, render_report, _t_values)
