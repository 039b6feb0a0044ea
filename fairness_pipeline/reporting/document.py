"""Makes the report of a study as an asset: rendered from the lake, and kept in the history when it takes effect."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fairness_pipeline.foundation.inputs import DataFile
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lineage.assets import Glance, Result
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyPart, P, Study
from fairness_pipeline.reporting.audited import audited_by
from fairness_pipeline.reporting.page import publish
from fairness_pipeline.reporting.results import Audit, audits_of
from fairness_pipeline.workspace import published
from fairness_pipeline.workspace.lake import Key, Lake

Pictures = dict[str, bytes]
LIBRARIES = ("matplotlib",)
"""Libraries whose versions decide what a report looks like."""


@dataclass(frozen=True)
class Described:
    """The parts of the profile that a report shows, in their order, and the data files that it reads."""

    description: str
    settings: Specification
    shown: dict[str, Any]
    order: list[list[str]]
    files: tuple[DataFile, ...]


def described(
    project: Project, part: AnyPart, tables: tuple[str, ...] = (), files: tuple[DataFile, ...] = (), **shown: Any
) -> Described:
    """Returns the inputs of a report.

    Args:
        project: The profile.
        part: The study's part of it.
        tables: The papers' tables that it shows, by the stems of their files.
        files: Other data files that it reads.
        shown: Other parts of the profile that it shows.
    """
    order = [list(map(str, values)) for values in part.axes.values()]
    subjects = {  # complete: a report also shows how fast a model is asked
        key: subject.model_dump(mode="json") if isinstance(subject, Specification) else subject.identity()
        for key, subject in part.subjects.items()
    }
    return Described(
        project.profile.description,
        part.settings,
        {"subjects": subjects, "dimensions": project.dimensions, **shown},
        order,
        (*published.files(tables), *files),
    )


def report_of(study: Study[P], shelf: Shelf, render: Callable[[P, Lake, list[Audit]], str]) -> Result:
    """Returns the result of a study's report asset."""
    audits = [
        replace(audit, sha256=audited_by(shelf.lineage, shelf.lake, study, audit.key).sha256)
        if audit.measured
        else audit
        for audit in audits_of(study, shelf.part, shelf.lake, shelf.stale(study.table))
    ]
    html = render(shelf.part, shelf.lake, audits)
    return Result(html, before_it_counts=lambda: publish(study, shelf.lineage, shelf.whole, audits, html))


def drawn(study: Study[P], draw: Callable[[P, Lake, list[Audit]], Pictures]) -> Callable[[P, Key, Result], Glance]:
    """Returns a function for what the UI shows beside a report: its pictures, PNG by name."""

    def show(part: P, key: Key, result: Result) -> Glance:
        lake = Lake(part.project.workspace)
        return Glance(pictures=draw(part, lake, audits_of(study, part, lake)))

    return show
