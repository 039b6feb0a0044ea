"""Study 2: does a language model find a stereotype likelier of one group than of the other, and what cures it?

"RedditBias: A Real-World Resource for Bias Evaluation and Debiasing of Conversational Language Models" (Barikeri et al.
2021). Read top to bottom, this file is the lineage: comments, phrases, labels, splits, counterfactuals, models,
perplexities, verdicts, and what debiasing costs.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.downloads import file_as_declared, located
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
from fairness_pipeline.corpora.language.phrase_corpus import DownstreamTask, PhraseCorpus, PhraseSource
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
from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.debiasing.language.registry import METHODS, debias
from fairness_pipeline.debiasing.language.task import Task
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import DataFile, File, optional, unhashed
from fairness_pipeline.foundation.libraries import library_version, library_versions
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.lexicons.counterfactuals import (
    COUNTERFACTUAL_PHRASES,
    DISAGREEMENTS,
    compare_with_released,
    make_counterfactuals,
)
from fairness_pipeline.lexicons.stereotypes import Lexicon, StereotypeTerms, stereotypes_of
from fairness_pipeline.lineage.assets import Asset, Assets, Result, of_base, of_baselines, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.measures.language.downstream import DOWNSTREAM, Given, ResponseSettings, StateTrackingSettings
from fairness_pipeline.measures.language.phrase_bias import (
    LANGUAGE_MODEL_BIAS,
    LANGUAGE_MODEL_EFFECTS,
    LOG,
    OWN,
    PHRASE_PERPLEXITIES,
    Control,
    LanguageModelBiasSettings,
    compare_phrases,
    debiasing_effects,
    scored_versions,
)
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.models.language import registry
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.reporting.document import LIBRARIES, Described, Pictures, described, drawn, report_of
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.reporting.text_plot import judged
from fairness_pipeline.studies.language_model_bias import published
from fairness_pipeline.studies.language_model_bias.plots import t_values
from fairness_pipeline.studies.language_model_bias.profile import NAME, LanguageModelPart, published_perplexities
from fairness_pipeline.studies.language_model_bias.report import render_report
from fairness_pipeline.studies.language_model_bias.study import STUDY
from fairness_pipeline.workspace.distinct import LazyScorer, each_distinct
from fairness_pipeline.workspace.imports import imported_file
from fairness_pipeline.workspace.lake import Key, Lake

asset = Assets(LanguageModelPart)


@dataclass(frozen=True)
class Files:
    """The files that an asset reads, and the grammar that generates its content instead."""

    files: Mapping[str, File]
    grammar: tuple[DataFile, ...]
    folder: Path = unhashed()


def _files(part: LanguageModelPart, *files: CorpusFile | None) -> Files:
    grammar = part.corpus.grammar
    declared_files = {file.path: file_as_declared(file, part.folder) for file in files if file}
    return Files(declared_files, (DataFile.of(grammar.file),) if grammar else (), part.folder)


def _corpus(part: LanguageModelPart, *sections: str) -> PhraseCorpus:
    """The corpus, reduced to its grammar and some sections."""
    excluded = {*PhraseCorpus.model_fields} - {"grammar", *sections}
    return part.corpus.without(*excluded)


def _lexicon(part: LanguageModelPart, key: Key) -> StereotypeTerms:
    return stereotypes_of(part.dimensions[key["dimension"]])


def _has_comments(part: LanguageModelPart, key: Key) -> bool:
    return part.has_comments


def _has_phrases(part: LanguageModelPart, key: Key) -> bool:
    return part.has_phrases(key["dimension"])


of_comments = Assets(LanguageModelPart, stage="phrases", axes=("dimension",), covers=_has_comments)
of_phrases = Assets(LanguageModelPart, stage="phrases", axes=("dimension",), covers=_has_phrases)
of_a_task = Assets(LanguageModelPart, stage="tasks")
of_a_model = Assets(
    LanguageModelPart, stage="verdicts", axes=("dimension", "model"), covers=lambda part, key: part.measured(key)
)


@dataclass(frozen=True)
class Reading:
    """The sections of a corpus that are read, their files, and how much of them is kept."""

    corpus: PhraseCorpus
    source: Files
    maximum: int | None = optional()


@asset(
    stage="comments",
    covers=_has_comments,
    inputs=lambda part, key: Reading(_corpus(part, "comments"), _files(part, *part.corpus.comments)),
    code_version="2",
    schema=COMMENTS,
    checks=(checks.not_empty,),
)
def reddit_comments(inputs: Reading, run: Run) -> Result:
    """The comments of a dump, or generated comments; each id once, without deleted comments."""
    reading = read_comments(inputs.corpus, inputs.source.folder, run.progress)
    figures = {"comments": reading.table.num_rows, "left_out": reading.left_out, "blank_ids_numbered": reading.numbered}
    return Result(reading.table, figures, tables={"sample": reading.table.slice(0, 5)})


@of_comments(
    inputs=_lexicon,
    reads={"comments": reddit_comments},
    code_version="1",
    schema=CANDIDATES,
)
def bias_candidates(terms: StereotypeTerms, comments: pa.Table) -> Result:
    """Comments that hold a target and a term of the stereotype, cleaned, under 150 characters (section 2.2)."""
    table, left_out = find_candidates(comments, Lexicon(terms))
    return Result(table, {"candidates": table.num_rows, "left_out": left_out}, tables={"sample": table.slice(0, 5)})


@of_comments(
    inputs=_lexicon,
    reads={"candidates": bias_candidates},
    code_version="1",
    schema=PHRASES,
)
def bias_phrases(terms: StereotypeTerms, candidates: pa.Table) -> Result:
    """The window of seven tokens around each target (section 2.2)."""
    table = find_phrases(candidates, Lexicon(terms))
    inside = int(pc.sum(table["attribute_in_window"].cast(pa.int64())).as_py() or 0)
    return Result(
        table, {"phrases": table.num_rows, "attribute_in_window": inside}, tables={"sample": table.slice(0, 5)}
    )


@dataclass(frozen=True)
class Annotating:
    """The released and the imported labels of a dimension's phrases, or the grammar that generates them."""

    dimension: str
    corpus: PhraseCorpus
    released: PhraseSource | None
    source: Files
    imported: Mapping[str, File]
    profile: str = unhashed()


def _annotating(part: LanguageModelPart, key: Key) -> Annotating:
    source, workspace = part.corpus.phrases.get(key["dimension"]), part.project.workspace
    return Annotating(
        key["dimension"],
        _corpus(part, "ignored_labels"),
        source.without("train", "dev", "test", "counterfactuals") if source else None,
        _files(part, *(source.annotations if source else ())),
        {file.path.name: file for path in part.imported(key["dimension"]) if (file := imported_file(path, workspace))},
        part.project.name,
    )


@of_phrases(
    inputs=_annotating,
    reads={"phrases": bias_phrases},
    code_version="2",
    schema=PHRASE_ANNOTATIONS,
    checks=(checks.not_empty,),
)
def phrase_annotations(inputs: Annotating, phrases: pa.Table | None) -> Result:
    """Whether annotators find comment and phrase stereotyped (section 2.3); a label is null where none was given."""
    corpus, source = inputs.corpus, inputs.corpus.grammar
    ignored: Counter[str] = Counter()
    tables = []
    if source and not inputs.imported:
        tables.append(generated(phrases, StereotypeGrammar.load(source.file), source.comments, source.seed))
    released = inputs.released.annotations if inputs.released else ()
    files = [(located(file, inputs.source.folder), file.annotator, file.encoding) for file in released]
    files += [(file.path, file.path.stem, "utf-8") for file in inputs.imported.values()]
    for path, annotator, encoding in files:
        annotations = read_annotations(path, annotator, encoding=encoding, ignored=corpus.ignored_labels)
        tables.append(annotations.table)
        ignored.update(annotations.ignored)
    if not tables:
        count = phrases.num_rows if phrases else 0
        raise FairnessError(
            f"{inputs.dimension}: {count:,} phrases found, none labelled: fairness-pipeline export phrases --dimension "
            f"{inputs.dimension} --output FILE.csv --profile {inputs.profile}, then import"
        )
    table = pa.concat_tables(tables)
    figures = {
        "rows": table.num_rows,
        **{f"{level}_true": int(pc.sum(table[level].cast(pa.int64())).as_py() or 0) for level in LEVELS},
        "ignored_labels": dict(ignored),
        "phrases_with_a_tie": ties(table.to_pylist(), "bias_phrase"),
    }
    return Result(table, figures)


@of_phrases(
    inputs=lambda part, key: part.corpus.published_as is not None,
    reads={"annotations": phrase_annotations},
    code_version="2",
    libraries=("krippendorff",),
    schema=AGREEMENT,
)
def annotation_agreement(published: bool, annotations: pa.Table) -> Result:
    """Krippendorff's alpha of what two annotators labelled; no row where nobody shared items (section 2.3)."""
    table = agreement(annotations, published=published)
    return Result(table, tables={"agreement": table})


@dataclass(frozen=True)
class Splitting:
    """The released splits, if there are any; and how many phrases without bias are drawn."""

    released: PhraseSource | None
    source: Files
    unbiased: int


def _splitting(part: LanguageModelPart, key: Key) -> Splitting:
    source = part.corpus.phrases.get(key["dimension"])
    splits = source if source and source.train else None
    return Splitting(
        splits.without("annotations", "counterfactuals") if splits else None,
        _files(part, *((splits.train, splits.dev, splits.test) if splits else ())),
        part.settings.significance.unbiased,
    )


@of_phrases(
    inputs=_splitting,
    reads={"annotations": phrase_annotations},
    code_version="1",
    schema=PHRASE_SPLITS,
    checks=(checks.not_empty,),
)
def phrase_splits(inputs: Splitting, annotations: pa.Table, run: Run) -> Result:
    """Biased phrases in train, dev and test: the released splits, or 60/20/20 by comment; and some without bias."""
    figures: dict[str, Any] = {}
    if inputs.released:
        table, released_figures = released_splits(
            inputs.released, inputs.source.folder, annotations, run.profile_seed, inputs.unbiased
        )
        figures = {"released": released_figures}
    else:
        table = draw_splits(annotations, run.profile_seed, inputs.unbiased)
    return Result(table, {**figures, "phrases": dict(Counter(table["split"].to_pylist()))})


@of_phrases(
    inputs=_lexicon,
    reads={"splits": phrase_splits},
    code_version="2",
    schema=COUNTERFACTUAL_PHRASES,
    checks=(checks.not_empty,),
)
def counterfactual_phrases(terms: StereotypeTerms, splits: pa.Table) -> Result:
    """Each phrase and the same about the other group (section 3.1)."""
    table, left_out = make_counterfactuals(splits, Lexicon(terms))
    excerpt = table.select(["text_b", "text_a"]).slice(0, 5)
    figures = {"phrases": dict(Counter(table["split"].to_pylist())), "name_nobody": left_out}
    return Result(table, figures, tables={"sample": excerpt})


def _has_counterfactuals(part: LanguageModelPart, key: Key) -> bool:
    source = part.corpus.phrases.get(key["dimension"])
    return bool(source and source.counterfactuals)


@dataclass(frozen=True)
class Released:
    """The terms of the stereotype, and the authors' counterfactuals."""

    terms: StereotypeTerms
    released: PhraseSource
    source: Files


def _released(part: LanguageModelPart, key: Key) -> Released:
    source = part.corpus.phrases[key["dimension"]]
    return Released(
        _lexicon(part, key),
        source.without("annotations", "train", "dev", "test"),
        _files(part, *source.counterfactuals),
    )


@of_phrases(
    covers=_has_counterfactuals,
    inputs=_released,
    code_version="1",
    schema=DISAGREEMENTS,
)
def counterfactual_disagreements(inputs: Released) -> Result:
    """The authors' released counterfactuals that differ from ours, with the kind of difference."""
    released = [
        (
            str(column(location, row, file.phrase)).strip().lower(),
            str(column(location, row, file.column)).strip().lower(),
        )
        for file in inputs.released.counterfactuals
        for location, row in read_records(located(file, inputs.source.folder), file.encoding)
    ]
    table, total = compare_with_released(released, Lexicon(inputs.terms))
    figures = {"compared": total, "differ": table.num_rows, "better": dict(Counter(table["better"].to_pylist()))}
    return Result(table, figures, tables={"disagreements": table.slice(0, 10)})


@of_a_task(
    covers=lambda part, key: bool(part.corpus.grammar or part.corpus.references),
    inputs=lambda part, key: Reading(_corpus(part, "references"), _files(part, part.corpus.references)),
    code_version="1",
    schema=REFERENCES,
    checks=(checks.not_empty,),
)
def human_references(inputs: Reading) -> Result:
    """Human texts of the domain, on which models' perplexity is measured (section 3.2)."""
    return Result(read_human_references(inputs.corpus, inputs.source.folder))


def _task_data(part: LanguageModelPart, task: DownstreamTask) -> Reading:
    """The data of a downstream task, and how many items are kept."""
    source = getattr(part.corpus, task)
    maximum: int = getattr(part.settings, task).maximum
    return Reading(_corpus(part, task), _files(part, *((*source.train, *source.test) if source else ())), maximum)


@of_a_task(
    covers=lambda part, key: bool(part.corpus.grammar or part.corpus.state_tracking),
    inputs=lambda part, key: _task_data(part, "state_tracking"),
    code_version="1",
    schema=STATE_TURNS,
    checks=(checks.not_empty,),
)
def state_turns(inputs: Reading, run: Run) -> Result:
    """Turns, each with a value that the user gives in it or with a wrong value (section 3.2)."""
    assert inputs.maximum
    table = read_state_turns(inputs.corpus, inputs.source.folder, run.profile_seed, inputs.maximum)
    return Result(table, {"turns": dict(Counter(table["split"].to_pylist()))}, tables={"sample": table.slice(0, 5)})


@of_a_task(
    covers=lambda part, key: bool(part.corpus.grammar or part.corpus.responses),
    inputs=lambda part, key: _task_data(part, "responses"),
    code_version="1",
    schema=RESPONSE_SETS,
    checks=(checks.not_empty,),
)
def response_sets(inputs: Reading, run: Run) -> Result:
    """Contexts with several human answers each (section 3.2)."""
    assert inputs.maximum
    table = read_response_sets(inputs.corpus, inputs.source.folder, run.profile_seed, inputs.maximum)
    return Result(table, {"contexts": dict(Counter(table["split"].to_pylist()))}, tables={"sample": table.slice(0, 3)})


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model, the folder of its weights if it has one, the libraries that run it, the number format of its training if
    it is queried in another one, and the query epoch of a model that may change."""

    model: LanguageModelSpecification
    folder: File | None
    versions: Mapping[str, str]
    trained_in: str | None = optional()
    round: str | None = optional()


def _model(part: LanguageModelPart, key: Key, *, trains: bool = False) -> Model:
    model = part.models[key["model"]]
    source = model.huggingface
    return Model(
        model=model,
        folder=model_folder(source.name) if source else None,
        versions=library_versions(*model.libraries),
        trained_in="float32" if trains and source and source.dtype != "float32" else None,
        round=part.project.query_epochs.get((NAME, key["model"])),
    )


def _is_base(part: LanguageModelPart, key: Key) -> bool:
    model = part.models[key["model"]]
    return model.weighted and model.base is None


def _is_tried(part: LanguageModelPart, key: Key) -> bool:
    return _is_base(part, key) and part.models[key["model"]].causal


def _is_debiased(part: LanguageModelPart, key: Key) -> bool:
    return part.asked(key) and part.models[key["model"]].base is not None


@asset(
    stage="models",
    kind="checkpoint",
    axes=("model",),
    covers=_is_base,
    inputs=_model,
    reads={"comments": reddit_comments},
    code_version="1",
)
def language_models(inputs: Model, comments: pa.Table | None, run: Run) -> Result:
    """Language models before debiasing: found by id or folder, or trained here on the comments.

    Training that was killed goes on where it stopped.
    """
    texts = comments["text"].to_pylist() if inputs.model.gpt2 and comments else []
    return Result(run.folder, registry.prepare(inputs.model, texts, run.folder, run.seed, run.progress))


@dataclass(frozen=True, kw_only=True)
class Debiasing(Model):
    """A model, its method's settings with their defaults, and the terms of the stereotype."""

    settings: Mapping[str, Any]
    lexicon: StereotypeTerms
    outliers_removed: bool
    accelerate: str


def _debiasing(part: LanguageModelPart, key: Key) -> Debiasing:
    model = part.models[key["model"]]
    method = METHODS[str(model.debiasing)]
    return Debiasing(
        **vars(_model(part, key, trains=True)),
        settings=dict(sorted(method.settings.model_validate(model.settings or {}).model_dump().items())),
        lexicon=part.debiasing_terms(key["dimension"]),
        outliers_removed=part.corpus.outliers_removed,
        accelerate=library_version("accelerate"),
    )


@asset(
    stage="models",
    kind="checkpoint",
    axes=("dimension", "model"),
    covers=_is_debiased,
    inputs=_debiasing,
    reads={"phrases": counterfactual_phrases, "references": human_references, "base": of_base(language_models)},
    code_version="1",
)
def debiased_language_models(
    inputs: Debiasing, phrases: pa.Table, references: pa.Table | None, base: Path, run: Run
) -> Result:
    """LMD, ADD, HD and CDA, and fine-tuning without a cure as their control (section 4); the grid's table is kept."""
    task = Task(
        model=inputs.model,
        lexicon=Lexicon(inputs.lexicon),
        phrases=phrases,
        references=references["text"].to_pylist() if references else [],
        base=base,
        folder=run.folder,
        seed=run.seed,
        outliers=not inputs.outliers_removed,
        progress=run.progress,
    )
    figures = debias(task)
    grid = pa.Table.from_pylist(figures["grid"]) if "grid" in figures else None
    return Result(run.folder, figures, tables={"grid": grid} if grid else {})


@dataclass(frozen=True, kw_only=True)
class Perplexities(Model):
    """A model that scores phrases; or a file of published perplexities, or of log-probabilities, instead."""

    dimension: str = unhashed()  # in every fingerprint already, as part of the partition
    published: File | None
    logprobs: File | None = optional()


def _perplexities(part: LanguageModelPart, key: Key) -> Perplexities:
    model = part.models[key["model"]]
    return Perplexities(
        **vars(_model(part, key)),
        dimension=key["dimension"],
        published=File.of(data_file(model.perplexities)) if model.perplexities else None,
        logprobs=part.log_probabilities(key["model"]),
    )


@asset(
    stage="perplexities",
    axes=("dimension", "model"),
    covers=lambda part, key: part.measured(key),
    inputs=_perplexities,
    reads={"phrases": counterfactual_phrases, "weights": one_of(language_models, debiased_language_models)},
    code_version="3",
    schema=PHRASE_PERPLEXITIES,
    checks=(checks.not_empty, checks.perplexities_in_range),
    asks=True,
)
def phrase_perplexities(inputs: Perplexities, phrases: pa.Table | None, weights: Path | None, run: Run) -> Result:
    """The perplexity of each phrase (dev, test and unbiased) and of its counterfactual; each text is scored once."""
    if inputs.published:
        rows = [
            {
                "phrase_id": row["phrase"], "comment_id": row["comment"], "split": "test", "target": row["target"],
                "side": side, "reading": OWN, "attribute": "", "text": "", "tokens": 0,
                "perplexity": float(row[f"perplexity_{side}"]),
            }
            for row in published_perplexities(inputs.published.path)
            if row["dimension"] == inputs.dimension
            for side in "ab"
        ]  # fmt: skip
        return Result(pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES), {"published": True})
    versions = scored_versions(phrases)
    scorer = registry.perplexity_scorer(inputs.model, weights)
    scored = each_distinct(
        versions["text"], scorer, folder=run.folder, progress=run.progress, note="phrases", engine=run.engine
    )
    table = versions.append_column("tokens", scored["tokens"]).append_column("perplexity", scored["perplexity"])
    mean = float(np.log(scored["perplexity"].to_numpy()).mean())
    examined = run.engine.examine(scorer) if isinstance(scorer, LazyScorer) else {}
    guesses = "tokens" in examined and mean > 0.95 * math.log(examined["tokens"])
    begins = {"begins_with": examined["begins_with"]} if examined.get("begins_with") else {}
    return Result(table, {"mean_log_perplexity": round(mean, 4), "guesses": guesses, **begins})


def _findings(part: LanguageModelPart, key: Key) -> dict[str, str]:
    """The paper's findings, if they are about the same phrases."""
    model = part.models[key["model"]]
    same = part.corpus.published_as is not None or not model.scored
    return published.findings(model.published_as, key["dimension"]) if same else {}


@dataclass(frozen=True)
class Judged:
    """How perplexities are judged, and whether outliers were removed before."""

    significance: LanguageModelBiasSettings
    names_the_group: bool
    outliers_removed: bool
    published: Mapping[str, str]


def _judged(part: LanguageModelPart, key: Key) -> Judged:
    return Judged(
        part.settings.significance.without("unbiased"),
        part.dimensions[key["dimension"]].names_the_group,
        part.corpus.outliers_removed or not part.models[key["model"]].scored,
        _findings(part, key),
    )


@of_a_model(
    inputs=_judged,
    reads={"perplexities": phrase_perplexities, "of_its_base": of_base(phrase_perplexities)},
    code_version="5",
    libraries=("numpy", "scipy"),
    schema=LANGUAGE_MODEL_BIAS,
    checks=(checks.not_empty,),
    show=judged(STUDY),
)
def language_model_bias(inputs: Judged, perplexities: pa.Table, of_its_base: pa.Table | None) -> Result:
    """LMB: the paper's paired t test after its outlier rule, beside tests that fit perplexities, and the verdict."""
    base = perplexities if of_its_base is None else of_its_base
    table = compare_phrases(
        perplexities,
        None if inputs.outliers_removed else base,
        inputs.significance,
        inputs.published,
        names_the_group=inputs.names_the_group,
    )
    excerpt = table.select(["measure", "n", "difference", "statistic", "p", "p_paired", "survives", "verdict"])
    pairs = next(row["n"] for row in table.to_pylist() if row["measure"] == LOG)
    return Result(table, {"pairs": pairs}, tables={"significance": excerpt})


@dataclass(frozen=True)
class Compared:
    """How changes are judged."""

    alpha: float
    names_the_group: bool


@of_a_model(
    name="language_model_debiasing_effects",
    covers=_is_debiased,
    inputs=lambda part, key: Compared(part.level, part.dimensions[key["dimension"]].names_the_group),
    reads={
        "before": of_base(phrase_perplexities),
        "after": phrase_perplexities,
        "controls": of_baselines(phrase_perplexities),
        "judged_before": of_base(language_model_bias),
        "judged_after": language_model_bias,
    },
    code_version="4",
    schema=LANGUAGE_MODEL_EFFECTS,
)
def effects(
    inputs: Compared,
    before: pa.Table,
    after: pa.Table,
    controls: Mapping[str, pa.Table],
    judged_before: pa.Table,
    judged_after: pa.Table,
) -> Result:
    """Whether the gap is smaller than the base's and than that of training without a cure, on the same phrases."""
    verdict_before, verdict_after = (
        {row["measure"]: row["verdict"] for row in judged_table.to_pylist()}[STEREOTYPE]
        for judged_table in (judged_before, judged_after)
    )
    control = next((Control(*item) for item in controls.items()), None)
    table = debiasing_effects(
        before,
        after,
        (verdict_before, verdict_after),
        inputs.alpha,
        names_the_group=inputs.names_the_group,
        control=control,
    )
    return Result(table, tables={"effects": table})


@dataclass(frozen=True, kw_only=True)
class Tried(Model):
    """A model in a downstream task, the settings of a task that trains, and the paper's values if its data are the
    same."""

    settings: StateTrackingSettings | ResponseSettings | None = None
    printed: Mapping[str, float]


def _tried(task: DownstreamTask | None, part: LanguageModelPart, key: Key) -> Tried:
    same = task is not None and part.corpus.data_of(task) == published.DATA[task]
    name = part.models[key["model"]].published_as
    return Tried(
        **vars(_model(part, key, trains=task is not None)),
        settings=getattr(part.settings, task).without("maximum") if task else None,
        printed=published.downstream(name, key.get("dimension")) if same else {},
    )


def _task(
    name: str,
    data: Asset,
    source: Literal["references", "state_tracking", "responses"],
    task: DownstreamTask | None,
    measure: Callable[[Given, pa.Table, Tried], pa.Table],
) -> list[Asset]:
    """The assets of a downstream task: for base models once, for debiased models in each dimension. A task with
    settings trains."""

    def tried(inputs: Tried, texts: pa.Table, weights: Path, run: Run) -> Result:
        model, tokenizer = registry.load(inputs.model, weights, trains=task is not None)
        table = measure(Given(model, tokenizer, run.folder, run.seed, run.progress), texts, inputs)
        return Result(table, tables={"metrics": table})

    def covers(applies: Callable[[LanguageModelPart, Key], bool]) -> Callable[[LanguageModelPart, Key], bool]:
        return lambda part, key: bool(part.corpus.grammar or getattr(part.corpus, source)) and applies(part, key)

    def declared(prefix: str, axes: tuple[str, ...], weights: Asset, applies: Callable[..., bool]) -> Asset:
        return asset(
            name=f"{prefix}{name}",
            description=f"{measure.__doc__}",
            stage="tasks",
            axes=axes,
            covers=covers(applies),
            inputs=lambda part, key: _tried(task, part, key),
            reads={"texts": data, "weights": weights},
            code_version="1",
            libraries=("nltk", "sacrebleu", "scikit-learn"),
            trains=task is not None,
            schema=DOWNSTREAM,
            checks=(checks.not_empty,),
        )(tried)

    return [
        declared("base_", ("model",), language_models, _is_tried),
        declared("", ("dimension", "model"), debiased_language_models, _is_debiased),
    ]


def _perplexity(given: Given, texts: pa.Table, inputs: Tried) -> pa.Table:
    """LMP: the perplexity of human references (section 3.2, figure 1b)."""
    from fairness_pipeline.measures.language.reddit_perplexity import reddit_perplexity

    return reddit_perplexity(given, texts)


def _tracking(given: Given, texts: pa.Table, inputs: Tried) -> pa.Table:
    """DST: F1 and accuracy of a model tuned to tell what a user wants (section 3.2, table 4)."""
    from fairness_pipeline.measures.language.dialogue_state_tracking import dialogue_state_tracking

    assert isinstance(inputs.settings, StateTrackingSettings)
    return dialogue_state_tracking(given, texts, inputs.settings, inputs.printed)


def _responses(given: Given, texts: pa.Table, inputs: Tried) -> pa.Table:
    """CRG: BLEU-4, METEOR, NIST-2, Entropy-4 and Dist-2 of a tuned model's answers (section 3.2, table 5)."""
    from fairness_pipeline.measures.language.response_generation import response_generation

    assert isinstance(inputs.settings, ResponseSettings)
    return response_generation(given, texts, inputs.settings, inputs.printed)


reddit_perplexity = _task("reddit_perplexity", human_references, "references", None, _perplexity)
dialogue_state_tracking = _task("dialogue_state_tracking", state_turns, "state_tracking", "state_tracking", _tracking)
response_generation = _task("response_generation", response_sets, "responses", "responses", _responses)
_TASKS = (*reddit_perplexity, *dialogue_state_tracking, *response_generation)


def _t_values(part: LanguageModelPart, lake: Lake, audits: list[Audit]) -> Pictures:
    return {"t_values": t_values(part, audits)} if any(audit.measured for audit in audits) else {}


@asset(
    stage="report",
    kind="document",
    covers=lambda part, key: bool(part.models),
    inputs=lambda part, key: described(
        part.project, part, published.TABLES, _files(part).grammar, corpus=part.corpus
    ),
    reads=(
        reddit_comments,
        bias_phrases, phrase_annotations, annotation_agreement, phrase_splits, counterfactual_phrases,
        counterfactual_disagreements, debiased_language_models, phrase_perplexities, language_model_bias, effects,
        *_TASKS,
    ),
    arrows=(language_model_bias, effects, *_TASKS),
    code_version="5",
    libraries=LIBRARIES,
    show=drawn(STUDY, _t_values),
)  # fmt: skip
def language_model_bias_report(inputs: Described, shelf: Shelf) -> Result:
    """Figure 1, tables 3 to 5 and appendix C beside ours, verdicts, phrases with the widest gaps; kept in history."""
    return report_of(STUDY, shelf, render_report)
