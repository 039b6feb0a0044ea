"""The report of the study."""

from functools import partial

from fairness_pipeline.lineage.assets import Assets, Result
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.reporting.document import LIBRARIES, Described, described, report_of
from fairness_pipeline.studies.dialogue_fairness.lineage.answers import responses
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES
from fairness_pipeline.studies.dialogue_fairness.lineage.effects import (
    base_response_quality,
    debiasing_effects,
    recipe_effects,
    response_quality,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.instruments import classifier_quality
from fairness_pipeline.studies.dialogue_fairness.lineage.measures import (
    MEASURED,
    distinguishable_answers,
    named_groups,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.models import (
    debiased_dialogue_models,
    dialogue_models,
    disentanglement,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs, contexts
from fairness_pipeline.studies.dialogue_fairness.lineage.verdicts import (
    dialogue_breakdown,
    dialogue_significance,
    recipe_significance,
    verdict_variations,
)
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.published import TABLES
from fairness_pipeline.studies.dialogue_fairness.report import render_report
from fairness_pipeline.studies.dialogue_fairness.study import STUDY

asset = Assets(DialoguePart)


@asset(
    stage="report",
    kind="document",
    inputs=lambda part, key: described(
        part.project, part, TABLES, corpora={key: source.specification for key, source in part.corpora.items()}
    ),
    reads=(
        *DIALOGUES,
        contexts,
        context_pairs,
        dialogue_models,
        responses,
        *MEASURED,
        distinguishable_answers,
        named_groups,
        dialogue_significance,
        disentanglement,
        debiased_dialogue_models,
        base_response_quality,
        response_quality,
        debiasing_effects,
        dialogue_breakdown,
        verdict_variations,
        recipe_significance,
        recipe_effects,
        classifier_quality,
    ),
    arrows=(dialogue_significance, recipe_significance, response_quality, debiasing_effects, recipe_effects),
    code_version="12",
    libraries=LIBRARIES,
)
def dialogue_fairness_report(inputs: Described, shelf: Shelf) -> Result:
    """The study's tables and plots beside the published ones, in one self-contained HTML file; kept in the history."""
    outdated = shelf.stale(debiasing_effects.name)
    return report_of(STUDY, shelf, partial(render_report, outdated=outdated))
