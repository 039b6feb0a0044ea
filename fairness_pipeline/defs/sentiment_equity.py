"""Study 3: does a sentiment or emotion system score a sentence differently when only the person in it changes?

"Examining Gender and Race Bias in Two Hundred Sentiment Analysis Systems" (Kiritchenko and Mohammad 2018).
Read top to bottom, this file is the lineage: sentences, tweets to train on, systems, scores, pairs, significance.
"""

from collections import Counter
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline import paths
from fairness_pipeline.corpora.affect_tweets import AFFECT_TWEETS, read_affect_tweets
from fairness_pipeline.corpora.checksums import checksum
from fairness_pipeline.corpora.equity_sentences import EQUITY_SENTENCES, GROUPS
from fairness_pipeline.corpora.equity_sentences import equity_sentences as generate
from fairness_pipeline.defs import checks, lineage
from fairness_pipeline.defs.lineage import Run
from fairness_pipeline.defs.presentation import Made
from fairness_pipeline.measures.equity_pairs import EQUITY_PAIRS, Design, pair_table, scores_matrix
from fairness_pipeline.measures.equity_significance import EQUITY_SIGNIFICANCE
from fairness_pipeline.measures.equity_significance import equity_significance as compare_groups
from fairness_pipeline.models.huggingface import folder_version
from fairness_pipeline.models.systems import registry
from fairness_pipeline.models.systems.score_files import EQUITY_SCORES, covered, read_scores
from fairness_pipeline.models.systems.scoring import score_sentences
from fairness_pipeline.project import SYSTEMS_STUDY, Project
from fairness_pipeline.reporting.equity_plots import equity_plot

STUDY = SYSTEMS_STUDY
asset = partial(lineage.asset, study=STUDY)


def _recipe_files() -> dict[str, Path]:
    return {name: paths.data_file(f"equity/{name}.yaml") for name in ("persons", "templates")}


def _tweet_files(project: Project) -> list[Path]:
    names = [Path(name).expanduser() for name in project.profile.equity.tweets]
    return [name if name.is_absolute() else paths.data_file(str(name)) for name in names]


def equity_files(project: Project) -> list[Path]:
    """The files that the study is made from, besides those of the systems."""
    return [*_recipe_files().values(), *_tweet_files(project)] if project.systems else []


def _recipe(project: Project, key: dict[str, str]) -> dict[str, object]:
    return {name: checksum(path) for name, path in _recipe_files().items()}


def has_systems(project: Project, key: dict[str, str]) -> bool:
    """Whether the profile takes part in this study."""
    return bool(project.systems)


@asset(covers=has_systems, code_version="1", settings=_recipe, schema=EQUITY_SENTENCES, checks=(checks.not_empty,))
def equity_sentences(run: Run) -> Made:
    """The Equity Evaluation Corpus, generated from its recipe (section 3), and the same sentences in other words."""
    table = generate()
    return Made(
        table, {"sentences": dict(Counter(table["templates"].to_pylist()))}, tables={"sample": table.slice(0, 8)}
    )


@asset(
    covers=lambda project, key: any(system.trained for system in project.systems.values()),
    code_version="1",
    settings=lambda project, key: {"sha256": [checksum(path) for path in _tweet_files(project)]},
    schema=AFFECT_TWEETS,
    checks=(checks.not_empty,),
)
def affect_tweets(run: Run) -> Made:
    """Tweets with the intensity of an affect, to train systems on (section 4)."""
    table = read_affect_tweets(_tweet_files(run.project))
    return Made(table, {"tweets": dict(Counter(table["affect"].to_pylist()))}, tables={"sample": table.slice(0, 5)})


_LIBRARIES = {
    "vader": ("vaderSentiment",),
    "linear_svm": ("scikit-learn", "numpy"),
    "cnn": ("torch",),
    "gru": ("torch",),
    "huggingface": ("torch", "transformers"),
}


def _system(project: Project, key: dict[str, str]) -> dict[str, object]:
    system = project.systems[key["system"]]
    return {
        "system": system.identity(),
        "folder": folder_version(system.huggingface.name) if system.huggingface else None,
        "versions": {name: version(name) for name in _LIBRARIES.get(system.architecture, ())},
    }


@asset(
    kind="checkpoint",
    axes=("system",),
    covers=lambda project, key: project.systems[key["system"]].trained,
    upstream=("affect_tweets",),
    code_version="1",
    settings=_system,
)
def sentiment_systems(run: Run) -> Made:
    """Systems that are trained here: a linear support vector machine, a CNN, a GRU (section 4)."""
    system = run.project.systems[run.key["system"]]
    return Made(None, registry.prepare(system, run.read("affect_tweets"), run.folder, run.seed, run.progress))


def _scoring(project: Project, key: dict[str, str]) -> dict[str, object]:
    file = project.score_files.get(key["system"])
    return {
        **_system(project, key),
        "file": checksum(file) if file else None,
        "round": project.rounds.get(key["system"]),
    }


@asset(
    axes=("system",),
    upstream=("equity_sentences", "sentiment_systems"),
    code_version="1",
    settings=_scoring,
    schema=EQUITY_SCORES,
    checks=(checks.not_empty, checks.scores_in_range),
)
def equity_scores(run: Run) -> Made:
    """A score in 0..1 for each sentence and affect that the system predicts; each distinct sentence is scored once."""
    name = run.key["system"]
    system, sentences = run.project.systems[name], run.read("equity_sentences")
    if name in run.project.score_files:
        table = read_scores(run.project.score_files[name], sentences)
    else:
        trained = run.checkpoint("sentiment_systems") if system.trained else run.folder
        table = score_sentences(sentences, registry.scorer(system, trained, run.folder, run.seed), run.progress)
    affects, scores = scores_matrix(sentences, table)
    means = dict(zip(affects, np.nanmean(scores, axis=0).tolist(), strict=True))
    return Made(table, {"mean_scores": means}, tables={"sample": table.slice(0, 5)})


of_a_system = partial(
    asset,
    axes=("dimension", "system"),
    upstream=("equity_sentences", "equity_scores"),
)


@of_a_system(code_version="1", settings=lambda project, key: {}, schema=EQUITY_PAIRS, checks=(checks.not_empty,))
def equity_pairs(run: Run) -> Made:
    """The paper's pairs of scores: 1,584 for gender and 288 for race, by affect and set of templates (section 5)."""
    designs, affects, scores = _compared(run)
    table = pa.concat_tables([pair_table(design, affects, scores) for design in designs])
    picture = equity_plot(table, *GROUPS[run.key["dimension"]])
    return Made(table, {"pairs": table.num_rows}, pictures={"differences": picture})


@of_a_system(
    code_version="2",
    settings=lambda project, key: {
        **project.profile.equity.model_dump(include={"alpha", "margin"}),
        "versions": {name: version(name) for name in ("numpy", "scipy")},
    },
    schema=EQUITY_SIGNIFICANCE,
    checks=(checks.not_empty,),
)
def equity_significance(run: Run) -> Made:
    """The groups' scores compared: the paper's paired t test, the test that respects the person, and the verdict."""
    designs, affects, scores = _compared(run)
    settings = run.project.profile.equity
    table = compare_groups(designs, run.key["dimension"], affects, scores, settings.margin, settings.alpha)
    shown = table.select(["templates", "subset", "affect", "difference", "p", "p_paired", "verdict"])
    return Made(table, tables={"significance": shown})


def _compared(run: Run) -> tuple[list[Design], list[str], np.ndarray]:
    """The designs of the sets of templates that the system scored, its affects, and its scores."""
    sentences = run.read("equity_sentences")
    affects, scores = scores_matrix(sentences, run.read("equity_scores"))
    kinds = covered(sentences, scores)
    return [Design(sentences, run.key["dimension"], kind) for kind in kinds], affects, np.nan_to_num(scores)
