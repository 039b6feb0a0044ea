"""Writes the page above all reports of a profile: a line for each model, the worst first, and links to the reports."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.history import against, find_entry, time_of
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.next_steps import NextStep, next_steps
from fairness_pipeline.reporting.results import (
    NOT_MEASURED,
    Audit,
    Severity,
    audits_of,
    beside_subject,
    counted,
    findings,
    flat,
    gravest,
    warnings_of,
    worst_first,
)
from fairness_pipeline.workspace.lake import Lake, Row

_HERE = Path(__file__).parent
_CHANGES = 3
"""The number of changes in a line; `results --against previous` prints all."""


@dataclass(frozen=True)
class Line:
    """What a study found about one of its subjects.

    Args:
        subject: The subject's key.
        study: The study.
        anchor: The anchor of its worst audit in the report.
        counts: The number of verdicts of each kind.
        finding: The worst finding in a sentence; empty if nothing is biased.
        degenerate: The audits that leave nothing to judge, and why.
        missing: The audits that were not measured.
        stale: The audits that are out of date.
        turned: The verdicts that turned since the last run.
        worst: The severity of its worst audit.
    """

    subject: str
    study: AnyStudy
    anchor: str
    counts: dict[str, int]
    finding: str
    degenerate: list[str]
    missing: list[str]
    stale: list[str]
    turned: list[str]
    worst: tuple[bool, Severity]


def write_index(project: Project, lake: Lake, state: State | None = None) -> Path | None:
    """Writes `reports/index.html` from what the lake holds now; None where no study has a report yet.

    Args:
        project: The profile.
        lake: Its lake.
        state: The lake's content, if it was read already.
    """
    reported = [study for study in project.studies if lake.document_path(study.report).exists()]
    if not reported:
        return None
    lines, since, steps = [], dict[str, str](), dict[str, list[NextStep]]()
    state = state or State(Lineage(project), lake)
    for study in reported:
        part = project.parts[study.name]
        audits = audits_of(study, part, lake, state.stale_keys(study.table))
        entry, turned = _turned(study, project, audits)
        if entry:
            since[study.title] = time_of(entry)
        lines += _lines(study, project, worst_first(study, audits), turned)
        steps[study.title] = next_steps(study, part, audits)
    html = template(_HERE, "index.html.j2").render(
        profile=project.name,
        description=project.profile.description,
        studies=reported,
        lines=sorted(lines, key=lambda line: line.worst),
        warnings=[warning for study in reported for warning in warnings_of(study, project.parts[study.name], lake)],
        since=since,
        steps=steps,
        told=_CHANGES,
        waiting=[study.title for study in project.studies if study not in reported],
        made=datetime.now(UTC),
    )
    path = lake.document_path("index")
    write_text(path, html)
    return path


def _lines(study: AnyStudy, project: Project, audits: list[Audit], turned: list[Row]) -> list[Line]:
    part, lines = project.parts[study.name], []

    def label(audit: Audit) -> str:
        return beside_subject(study, audit) or audit.name

    for subject in dict.fromkeys(audit.key[study.subject] for audit in audits):
        subject_audits = [audit for audit in audits if audit.key[study.subject] == subject]
        lines.append(
            Line(
                subject,
                study,
                subject_audits[0].anchor,
                counted(study, subject_audits),
                next(iter(findings(study, part, subject_audits)), ""),
                [f"{label(audit)}: {audit.degenerate}" for audit in subject_audits if audit.degenerate],
                [label(audit) for audit in subject_audits if not audit.measured],
                [label(audit) for audit in subject_audits if audit.stale],
                [_change(study, row) for row in turned if row[study.subject] == subject],
                min(gravest(study, audit) for audit in subject_audits),
            )
        )
    return lines


def _turned(study: AnyStudy, project: Project, audits: list[Audit]) -> tuple[str, list[Row]]:
    """Returns the last run with other results, and the verdicts that turned since; empty if there is none."""
    rows = flat(study, audits)
    try:
        entry = find_entry(project.workspace, study, "previous", rows)
        return entry, against(project.workspace, study, entry, rows, {})
    except FairnessError:  # no other run is kept, or it is damaged
        return "", []


def _change(study: AnyStudy, row: Row) -> str:
    names = [*(row[axis] for axis in study.axes if axis != study.subject), study.label(row)]
    then, now = (row[f"verdict_{when}"] or NOT_MEASURED for when in ("then", "now"))
    return f"{' · '.join(map(str, names))}: {then} → {now}"
