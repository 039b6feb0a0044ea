"""Reports: they read what the lake holds and list the rest as not measured."""

from datetime import UTC, datetime
from importlib.metadata import version

from fairness_pipeline.defs import lineage
from fairness_pipeline.defs.dialogue_fairness import DIALOGUES
from fairness_pipeline.defs.dialogue_fairness import STUDY as DIALOGUE_FAIRNESS
from fairness_pipeline.defs.lineage import Expected, Run
from fairness_pipeline.defs.presentation import Made
from fairness_pipeline.defs.sentiment_equity import STUDY as SENTIMENT_EQUITY
from fairness_pipeline.defs.sentiment_equity import has_systems
from fairness_pipeline.reporting.dialogue_report import render_dialogue_report
from fairness_pipeline.reporting.equity_report import render_equity_report
from fairness_pipeline.reporting.history import keep


@lineage.asset(
    study=DIALOGUE_FAIRNESS,
    kind="document",
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
        "matplotlib": version("matplotlib"),
    },
)
def dialogue_fairness_report(run: Run) -> Made:
    """The study's tables and plots beside the published ones, in one self-contained HTML file; kept in the history."""
    expected = Expected(run.project)

    def stale(table: str) -> list[tuple[str, str]]:
        return [
            (key["dimension"], key["model"])
            for key in lineage.keys(run.project, table)
            if run.lake.fingerprint(table, key) != expected.fingerprint(table, key)
        ]

    html = render_dialogue_report(
        run.project, run.lake, stale=stale("dialogue_significance"), outdated=stale("debiasing_effects")
    )
    keep(run.project, run.lake, html, datetime.now(UTC))
    return Made(html)


@lineage.asset(
    study=SENTIMENT_EQUITY,
    kind="document",
    covers=has_systems,
    upstream=("equity_sentences", "equity_scores", "equity_pairs", "equity_significance"),
    code_version="1",
    settings=lambda project, key: {
        "description": project.profile.description,
        "equity": project.profile.equity.model_dump(),
        "systems": list(project.systems),
        "matplotlib": version("matplotlib"),
    },
)
def equity_report(run: Run) -> Made:
    """Tables 5 to 7 of the paper, each system's box plots and verdicts, and how often another wording turns one."""
    expected = Expected(run.project)
    stale = [
        (key["dimension"], key["system"])
        for key in lineage.keys(run.project, "equity_significance")
        if run.lake.fingerprint("equity_significance", key) != expected.fingerprint("equity_significance", key)
    ]
    return Made(render_equity_report(run.project, run.lake, stale=stale))
