"""Reports: they read what the lake holds and list the rest as not measured."""

from datetime import UTC, datetime
from importlib.metadata import version

from fairness_pipeline.defs import lineage
from fairness_pipeline.defs.dialogue_fairness import DIALOGUES
from fairness_pipeline.defs.dialogue_fairness import STUDY as DIALOGUE_FAIRNESS
from fairness_pipeline.defs.lineage import Run, State
from fairness_pipeline.defs.presentation import Made
from fairness_pipeline.defs.sentiment_equity import STUDY as SENTIMENT_EQUITY
from fairness_pipeline.defs.sentiment_equity import has_systems
from fairness_pipeline.reporting.dialogue_report import render_dialogue_report
from fairness_pipeline.reporting.equity_report import render_equity_report
from fairness_pipeline.reporting.equity_results import equity_audits, equity_rows
from fairness_pipeline.reporting.history import DIALOGUE, EQUITY, keep
from fairness_pipeline.reporting.results import dialogue_audits, result_rows


@lineage.asset(
    study=DIALOGUE_FAIRNESS,
    kind="document",
    covers=lambda project, key: bool(project.corpora),
    upstream=(
        *DIALOGUES,
        "contexts",
        "context_pairs",
        "dialogue_models",
        "responses",
        "diversity",
        "politeness",
        "sentiment",
        "dialogue_significance",
        "disentanglement",
        "debiased_dialogue_models",
        "response_quality",
        "debiasing_effects",
    ),
    code_version="2",
    settings=lambda project, key: {
        "profile": project.profile.model_dump(),
        "dimensions": {key: dimension.model_dump() for key, dimension in project.dimensions.items()},
        "corpora": {key: source.specification.model_dump() for key, source in project.corpora.items()},
        "models": {key: model.model_dump() for key, model in project.models.items()},
        "matplotlib": version("matplotlib"),
    },
)
def dialogue_fairness_report(run: Run) -> Made:
    """The study's tables and plots beside the published ones, in one self-contained HTML file; kept in the history."""
    project, lake = run.project, run.lake
    html = render_dialogue_report(
        project, lake, stale=_stale(run, "dialogue_significance"), outdated=_stale(run, "debiasing_effects")
    )
    keep(lake.root, DIALOGUE, result_rows(dialogue_audits(project, lake)), html, datetime.now(UTC))
    return Made(html)


@lineage.asset(
    study=SENTIMENT_EQUITY,
    kind="document",
    covers=has_systems,
    upstream=("equity_sentences", "equity_scores", "equity_pairs", "equity_significance"),
    code_version="2",
    settings=lambda project, key: {
        "description": project.profile.description,
        "equity": project.profile.equity.model_dump(),
        "systems": list(project.systems),
        "matplotlib": version("matplotlib"),
    },
)
def equity_report(run: Run) -> Made:
    """Tables 5 to 7 of the paper, each system's box plots and verdicts, and how often another wording turns one.

    The report is kept in the history.
    """
    html = render_equity_report(run.project, run.lake, stale=_stale(run, "equity_significance"))
    keep(run.lake.root, EQUITY, equity_rows(equity_audits(run.project, run.lake)), html, datetime.now(UTC))
    return Made(html)


def _stale(run: Run, table: str) -> list[tuple[str, str]]:
    """The dimension, and model or system, of the partitions made with other settings or data than the profile's."""
    state = State(run.project, run.lake)
    return [
        (key["dimension"], key.get("model") or key["system"])
        for key in lineage.keys(run.project, table)
        if state.stale(table, key)
    ]
