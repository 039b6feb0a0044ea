"""The report of a study as an asset: rendered from the lake, and kept in the history when it takes effect."""

from collections.abc import Callable
from typing import Any

from fairness_pipeline.foundation.libraries import library_version
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Result
from fairness_pipeline.project.study import P, Study
from fairness_pipeline.reporting.page import publish
from fairness_pipeline.reporting.results import Audit, audits_of
from fairness_pipeline.workspace.lake import Lake

Pictures = dict[str, bytes]


def report_of(
    study: Study[P],
    partition: Partition[P],
    render: Callable[[P, Lake, list[Audit]], str],
    draw: Callable[[P, Lake, list[Audit]], Pictures] = lambda part, lake, audits: {},
) -> Result:
    """What a study's report asset gives back.

    Args:
        study: Whose report it is.
        partition: What the asset was given.
        render: Makes the page.
        draw: Draws the pictures that the UI shows beside it, PNG by name.
    """
    part, lake = partition.part, partition.lake
    audits = audits_of(study, part, lake, partition.stale(study.table))
    html = render(part, lake, audits)
    return Result(
        html,
        pictures=draw(part, lake, audits),
        before_it_counts=lambda: publish(study, partition.lineage, lake, audits, html),
    )


def report_settings(description: str, settings: Any, **own: Any) -> dict[str, Any]:
    """The settings of a report asset: what every report reads, and the study's `own`.

    Args:
        description: The profile's.
        settings: The study's section of the profile.
        own: What else the report shows.
    """
    return {
        "description": description,
        "settings": settings.model_dump(),
        "matplotlib": library_version("matplotlib"),
    } | own
