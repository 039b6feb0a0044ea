"""Reports: they read what the lake holds and list the rest as not measured."""

from importlib.metadata import version

from fairness_pipeline.defs import lineage
from fairness_pipeline.defs.dialogue_fairness import STUDY
from fairness_pipeline.defs.lineage import Run
from fairness_pipeline.defs.presentation import Made
from fairness_pipeline.reporting.dialogue_report import render_dialogue_report


@lineage.asset(
    study=STUDY,
    kind="document",
    upstream=(
        "twitter_dialogues",
        "contexts",
        "context_pairs",
        "dialogue_models",
        "responses",
        "diversity",
        "politeness",
        "sentiment",
        "dialogue_significance",
    ),
    code_version="1",
    settings=lambda project, key: {
        "profile": project.profile.model_dump(),
        "dimensions": {key: dimension.model_dump() for key, dimension in project.dimensions.items()},
        "matplotlib": version("matplotlib"),
    },
)
def dialogue_fairness_report(run: Run) -> Made:
    """The study's tables and plots beside the published ones, in one self-contained HTML file."""
    return Made(render_dialogue_report(run.project, run.lake))
