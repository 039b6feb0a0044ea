"""Study 3: does a sentiment or emotion system score a sentence differently when only the person in it changes?

"Examining Gender and Race Bias in Two Hundred Sentiment Analysis Systems" (Kiritchenko and Mohammad 2018).
Read top to bottom, this file is the lineage: sentences, tweets to train on, systems, scores, pairs, significance.
"""

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.sentiment.affect_tweets import AFFECT_TWEETS, read_affect_tweets
from fairness_pipeline.corpora.sentiment.equity_sentences import EQUITY_SENTENCES, GROUPS, make_equity_sentences
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lineage.assets import Assets
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Result
from fairness_pipeline.measures.sentiment.equity_pairs import (
    EQUITY_PAIRS,
    Design,
    commonest_share,
    pair_table,
    reads,
    scores_matrix,
    told_apart,
)
from fairness_pipeline.measures.sentiment.equity_significance import EQUITY_SIGNIFICANCE, judge_equity
from fairness_pipeline.models.pretrained import folder_version
from fairness_pipeline.models.sentiment import registry
from fairness_pipeline.models.sentiment.score_files import EQUITY_SCORES, covered, read_scores
from fairness_pipeline.models.sentiment.scoring import score_sentences
from fairness_pipeline.reporting.document import report_of, report_settings
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.studies.sentiment_equity.plots import equity_plot
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart
from fairness_pipeline.studies.sentiment_equity.report import render_report
from fairness_pipeline.studies.sentiment_equity.study import STUDY
from fairness_pipeline.workspace.lake import Key

asset = Assets(EquityPart)


def _recipe(part: EquityPart, key: Key) -> dict[str, Any]:
    return {name: checksum(path) for name, path in part.recipe_files().items()}


def _has_systems(part: EquityPart, key: Key) -> bool:
    return bool(part.systems)


@asset(
    stage="sentences",
    covers=_has_systems,
    code_version="2",
    settings=_recipe,
    schema=EQUITY_SENTENCES,
    checks=(checks.not_empty,),
)
def equity_sentences(partition: Partition[EquityPart]) -> Result:
    """The Equity Evaluation Corpus, generated from its recipe (Kiritchenko and Mohammad 2018), and in other words."""
    table = make_equity_sentences()
    return Result(
        table, {"sentences": dict(Counter(table["templates"].to_pylist()))}, tables={"sample": table.slice(0, 8)}
    )


@asset(
    stage="systems",
    covers=lambda part, key: any(system.trained for system in part.systems.values()),
    code_version="1",
    settings=lambda part, key: {"sha256": [checksum(path) for path in part.tweet_files()]},
    schema=AFFECT_TWEETS,
    checks=(checks.not_empty,),
)
def affect_tweets(partition: Partition[EquityPart]) -> Result:
    """Tweets with the intensity of an affect, to train systems on (Kiritchenko and Mohammad 2018, section 4)."""
    table = read_affect_tweets(partition.part.tweet_files())
    return Result(table, {"tweets": dict(Counter(table["affect"].to_pylist()))}, tables={"sample": table.slice(0, 5)})


def _system(part: EquityPart, key: Key) -> dict[str, object]:
    system = part.systems[key["system"]]
    return {
        "system": system.identity(),
        "folder": folder_version(system.huggingface.name) if system.huggingface else None,
        "versions": library_versions(*system.libraries),
    }


@asset(
    stage="systems",
    kind="checkpoint",
    axes=("system",),
    covers=lambda part, key: part.systems[key["system"]].trained,
    upstream=("affect_tweets",),
    code_version="1",
    settings=_system,
)
def sentiment_systems(partition: Partition[EquityPart]) -> Result:
    """Systems that are trained here: a linear support vector machine, a CNN, a GRU (Kiritchenko and Mohammad 2018)."""
    system = partition.part.systems[partition.key["system"]]
    return Result(
        None,
        registry.prepare(system, partition.read("affect_tweets"), partition.folder, partition.seed, partition.progress),
    )


def _scoring(part: EquityPart, key: Key) -> dict[str, object]:
    file = part.score_files.get(key["system"])
    return {
        **_system(part, key),
        "file": checksum(file) if file else None,
        "round": part.query_epoch_of(key["system"]),
    }


@asset(
    stage="scores",
    axes=("system",),
    upstream=("equity_sentences", "sentiment_systems"),
    code_version="3",
    settings=_scoring,
    schema=EQUITY_SCORES,
    checks=(checks.not_empty, checks.scores_in_range),
)
def equity_scores(partition: Partition[EquityPart]) -> Result:
    """A score in 0..1 for each sentence and affect that the system predicts; each distinct sentence is scored once."""
    name = partition.key["system"]
    system, sentences = partition.part.systems[name], partition.read("equity_sentences")
    if name in partition.part.score_files:
        table = read_scores(partition.part.score_files[name], sentences)
    else:
        trained = partition.checkpoint("sentiment_systems") if system.trained else partition.folder
        scorer = registry.scorer(system, trained, partition.folder, partition.seed)
        table = score_sentences(sentences, scorer, partition.folder, partition.progress, partition.engine)
    affects, scores = scores_matrix(sentences, table)
    means = dict(zip(affects, np.nanmean(scores, axis=0).tolist(), strict=True))
    figures = {
        "mean_scores": means,
        "commonest_share": round(commonest_share(scores), 4),
        "reads_names": reads(sentences, scores, names=True),
        "reads_persons": reads(sentences, scores, names=False),
        "told_apart": round(told_apart(sentences, affects, scores), 4),
    }
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


of_a_system = partial(
    asset,
    axes=("dimension", "system"),
    upstream=("equity_sentences", "equity_scores"),
)


@of_a_system(
    stage="verdicts", code_version="1", settings=lambda part, key: {}, schema=EQUITY_PAIRS, checks=(checks.not_empty,)
)
def equity_pairs(partition: Partition[EquityPart]) -> Result:
    """Pairs of scores, 1,584 for gender and 288 for race, by affect and templates (Kiritchenko and Mohammad 2018)."""
    designs, affects, scores = _compared(partition)
    table = pa.concat_tables([pair_table(design, affects, scores) for design in designs])
    picture = equity_plot(table, *GROUPS[partition.key["dimension"]])
    return Result(table, {"pairs": table.num_rows}, pictures={"differences": picture})


@of_a_system(
    stage="verdicts",
    code_version="3",
    settings=lambda part, key: {
        **part.settings.model_dump(include={"alpha", "margin"}),
        "versions": library_versions("numpy", "scipy"),
    },
    schema=EQUITY_SIGNIFICANCE,
    checks=(checks.not_empty,),
)
def equity_significance(partition: Partition[EquityPart]) -> Result:
    """The groups' scores compared: the paper's paired t test, the test that respects the person, and the verdict."""
    designs, affects, scores = _compared(partition)
    settings = partition.part.settings
    table = judge_equity(designs, partition.key["dimension"], affects, scores, settings.margin, settings.alpha)
    shown = table.select(["templates", "subset", "affect", "difference", "p", "p_paired", "verdict"])
    says = summary(STUDY, partition.part, partition.key, table.to_pylist())
    return Result(table, tables={"significance": shown}, says=says)


def _compared(partition: Partition[EquityPart]) -> tuple[list[Design], list[str], np.ndarray]:
    """The designs of the sets of templates that the system scored, its affects, and its scores."""
    sentences = partition.read("equity_sentences")
    affects, scores = scores_matrix(sentences, partition.read("equity_scores"))
    kinds = covered(sentences, scores)
    return [Design(sentences, partition.key["dimension"], kind) for kind in kinds], affects, np.nan_to_num(scores)


@asset(
    stage="report",
    kind="document",
    covers=_has_systems,
    upstream=("equity_sentences", "equity_scores", "equity_pairs", "equity_significance"),
    arrows=("equity_significance",),
    code_version="5",
    settings=lambda part, key: report_settings(
        part.project.profile.description,
        part.settings,
        systems={key: system.identity() for key, system in part.systems.items()},
        labels=[[key, dimension.label] for key, dimension in part.project.dimensions.items()],
        order=list(part.systems),
    ),
)
def equity_report(partition: Partition[EquityPart]) -> Result:
    """Tables 5 to 7 of Kiritchenko and Mohammad 2018, each system's verdicts, and how often another wording turns one.

    The report is kept in the history.
    """
    return report_of(STUDY, partition, render_report)
