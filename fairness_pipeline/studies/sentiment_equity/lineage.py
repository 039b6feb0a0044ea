"""Study 3: does a sentiment or emotion system score a sentence differently when only the person in it changes?

"Examining Gender and Race Bias in Two Hundred Sentiment Analysis Systems" (Kiritchenko and Mohammad 2018).
Read top to bottom, this file is the lineage: sentences, tweets to train on, systems, scores, pairs, significance.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.sentiment.affect_tweets import AFFECT_TWEETS, read_affect_tweets
from fairness_pipeline.corpora.sentiment.equity_sentences import (
    EQUITY_SENTENCES,
    FILES,
    GROUPS,
    make_equity_sentences,
)
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import DataFile, File
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lineage.assets import Assets, Glance, Result
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.measures.sentiment.equity_pairs import (
    EQUITY_PAIRS,
    Design,
    commonest_share,
    measure_separation,
    pair_table,
    reads,
    scores_matrix,
)
from fairness_pipeline.measures.sentiment.equity_significance import EQUITY_SIGNIFICANCE, judge_equity
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.models.sentiment import registry
from fairness_pipeline.models.sentiment.score_files import EQUITY_SCORES, covered, read_scores
from fairness_pipeline.models.sentiment.scoring import score_sentences
from fairness_pipeline.models.sentiment.specification import SystemSpecification
from fairness_pipeline.reporting.document import LIBRARIES, Described, described, report_of
from fairness_pipeline.reporting.text_plot import judged
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.studies.sentiment_equity.plots import equity_plot
from fairness_pipeline.studies.sentiment_equity.profile import NAME, EquityPart
from fairness_pipeline.studies.sentiment_equity.report import render_report
from fairness_pipeline.studies.sentiment_equity.study import STUDY
from fairness_pipeline.workspace.imports import imported_file
from fairness_pipeline.workspace.lake import Key

asset = Assets(EquityPart)
of_verdicts = Assets(EquityPart, stage="verdicts", axes=("dimension", "system"))


def _has_systems(part: EquityPart, key: Key) -> bool:
    return bool(part.systems)


@asset(
    stage="sentences",
    covers=_has_systems,
    inputs=lambda part, key: tuple(map(DataFile.of, FILES)),
    code_version="2",
    schema=EQUITY_SENTENCES,
    checks=(checks.not_empty,),
)
def equity_sentences(files: tuple[DataFile, ...]) -> Result:
    """The Equity Evaluation Corpus, generated from its recipe (Kiritchenko and Mohammad 2018), and reworded."""
    table = make_equity_sentences()
    return Result(
        table, {"sentences": dict(Counter(table["templates"].to_pylist()))}, tables={"sample": table.slice(0, 8)}
    )


@asset(
    stage="systems",
    covers=lambda part, key: any(system.trained for system in part.systems.values()),
    inputs=lambda part, key: tuple(map(File.of, part.tweet_files())),
    code_version="1",
    schema=AFFECT_TWEETS,
    checks=(checks.not_empty,),
)
def affect_tweets(files: tuple[File, ...]) -> Result:
    """Tweets with the intensity of an affect, to train systems on (Kiritchenko and Mohammad 2018, section 4)."""
    table = read_affect_tweets([file.path for file in files])
    return Result(table, {"tweets": dict(Counter(table["affect"].to_pylist()))}, tables={"sample": table.slice(0, 5)})


@dataclass(frozen=True)
class System:
    """A system, the folder of its weights if it has one, and the libraries that run it."""

    system: SystemSpecification
    folder: File | None
    versions: Mapping[str, str]


def _system(part: EquityPart, key: Key) -> System:
    system = part.systems[key["system"]]
    folder = model_folder(system.huggingface.name) if system.huggingface else None
    return System(system, folder, library_versions(*system.libraries))


@asset(
    stage="systems",
    kind="checkpoint",
    axes=("system",),
    covers=lambda part, key: part.systems[key["system"]].trained,
    inputs=_system,
    reads={"tweets": affect_tweets},
    code_version="1",
)
def sentiment_systems(inputs: System, tweets: pa.Table, run: Run) -> Result:
    """Systems that are trained here: a linear support vector machine, a CNN, a GRU (Kiritchenko and Mohammad 2018)."""
    return Result(run.folder, registry.prepare(inputs.system, tweets, run.folder, run.seed, run.progress))


@dataclass(frozen=True)
class Scoring(System):
    """A system that scores, the file of its scores if they are imported, and its query epoch if it may change."""

    file: File | None
    round: str | None


def _scoring(part: EquityPart, key: Key) -> Scoring:
    base, file = _system(part, key), part.score_files.get(key["system"])
    epoch = part.project.query_epochs.get((NAME, key["system"]))
    scores = imported_file(file, part.project.workspace)
    return Scoring(base.system, base.folder, base.versions, scores, epoch)


@asset(
    stage="scores",
    axes=("system",),
    inputs=_scoring,
    reads={"sentences": equity_sentences, "trained": sentiment_systems},
    code_version="3",
    schema=EQUITY_SCORES,
    checks=(checks.not_empty, checks.scores_in_range),
    asks=True,
)
def equity_scores(inputs: Scoring, sentences: pa.Table, trained: Path | None, run: Run) -> Result:
    """A score in 0..1 for each sentence and affect that the system predicts; each distinct sentence is scored once."""
    if inputs.file:
        table = read_scores(inputs.file.path, sentences)
    else:
        scorer = registry.scorer(inputs.system, trained or run.folder, run.folder, run.seed)
        table = score_sentences(sentences, scorer, run.folder, run.progress, run.engine)
    affects, scores = scores_matrix(sentences, table)
    means = dict(zip(affects, np.nanmean(scores, axis=0).tolist(), strict=True))
    figures = {
        "mean_scores": means,
        "commonest_share": round(commonest_share(scores), 4),
        "reads_names": reads(sentences, scores, names=True),
        "reads_persons": reads(sentences, scores, names=False),
        "told_apart": round(measure_separation(sentences, affects, scores), 4),
    }
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


@dataclass(frozen=True)
class Compared:
    """The dimension whose groups are compared."""

    dimension: str


@of_verdicts(
    inputs=lambda part, key: Compared(key["dimension"]),
    reads={"sentences": equity_sentences, "scores": equity_scores},
    code_version="1",
    libraries=("scipy",),
    schema=EQUITY_PAIRS,
    checks=(checks.not_empty,),
    show=lambda part, key, result: Glance(
        pictures={"differences": equity_plot(result.content, *GROUPS[key["dimension"]])}
    ),
)
def equity_pairs(inputs: Compared, sentences: pa.Table, scores: pa.Table) -> Result:
    """Pairs of scores, 1,584 for gender and 288 for race, by affect and templates (Kiritchenko and Mohammad 2018)."""
    designs, affects, matrix = _compared(inputs.dimension, sentences, scores)
    table = pa.concat_tables([pair_table(design, affects, matrix) for design in designs])
    return Result(table, {"pairs": table.num_rows})


@dataclass(frozen=True)
class Judged(Compared):
    """The dimension, and how its groups are judged."""

    alpha: float
    margin: Margin


@of_verdicts(
    inputs=lambda part, key: Judged(key["dimension"], part.settings.alpha, part.settings.margin),
    reads={"sentences": equity_sentences, "scores": equity_scores},
    code_version="4",
    libraries=("numpy", "scipy"),
    schema=EQUITY_SIGNIFICANCE,
    checks=(checks.not_empty,),
    show=judged(STUDY),
)
def equity_significance(inputs: Judged, sentences: pa.Table, scores: pa.Table) -> Result:
    """The groups' scores compared: the paper's paired t test, the test clustered by person, and the verdict."""
    designs, affects, matrix = _compared(inputs.dimension, sentences, scores)
    table = judge_equity(designs, inputs.dimension, affects, matrix, inputs.margin, inputs.alpha)
    preview = table.select(["templates", "subset", "affect", "difference", "p", "p_paired", "verdict"])
    return Result(table, tables={"significance": preview})


def _compared(dimension: str, sentences: pa.Table, scored: pa.Table) -> tuple[list[Design], list[str], np.ndarray]:
    """The designs of the sets of templates that the system scored, its affects, and its scores."""
    affects, scores = scores_matrix(sentences, scored)
    kinds = covered(sentences, scores)
    return [Design(sentences, dimension, kind) for kind in kinds], affects, np.nan_to_num(scores)


@asset(
    stage="report",
    kind="document",
    covers=_has_systems,
    inputs=lambda part, key: described(part.project, part),
    reads=(equity_sentences, equity_scores, equity_pairs, equity_significance),
    arrows=(equity_significance,),
    code_version="6",
    libraries=LIBRARIES,
)
def equity_report(inputs: Described, shelf: Shelf) -> Result:
    """Tables 5 to 7 of Kiritchenko and Mohammad 2018, each system's verdicts, and how often rewording changes one.

    The report is kept in the history.
    """
    return report_of(STUDY, shelf, render_report)
