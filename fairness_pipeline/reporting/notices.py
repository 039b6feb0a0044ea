"""Who is told of what a run found: verdicts that turned, and what a first run found."""

import os
from pathlib import Path

from fairness_pipeline.foundation.notifications import Event, Message, notify, shortened
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.foundation.processes import PARENT
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.history import Rows, time_of
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.statistics.verdicts import FINDINGS


def tell_turned(study: AnyStudy, project: Project, audits: list[Audit], turned: Rows, since: str, report: Path) -> None:
    """Tells of verdicts that are other ones than in the run before.

    Args:
        study: Whose.
        project: The profile.
        audits: All of them, as they are now.
        turned: As `history.against` gives them.
        since: The entry of the run before.
        report: The report's file.
    """
    now = {_place(study, {**audit.key, **row}): (audit, row) for audit in audits for row in audit.rows}
    lines = []
    for change in turned:
        place = _place(study, change)
        then, said = change["verdict_then"] or "not measured", change["verdict_now"] or "not measured"
        if not change["verdict_then"] and said not in FINDINGS:
            continue  # a model or a dimension that is new, and nothing is found
        line = f"{' '.join(map(str, place))}: {then} -> {said}"
        if place in now:
            audit, row = now[place]
            line += f": {study.finding(project.parts[study.name], audit.key, row)}"
        lines.append(line)
    if lines:
        title = f"{study.title}: {number_of(len(lines), 'verdict')} turned since {time_of(since)}"
        _tell(project, study, "verdict", title, lines, report)


def tell_first(study: AnyStudy, project: Project, audits: list[Audit], report: Path) -> None:
    """Tells of what a first run found, if it found anything."""
    part = project.parts[study.name]
    lines = [
        study.finding(part, audit.key, row)
        for audit in audits
        if not audit.degenerate
        for row in audit.rows
        if study.gated(row) and row["verdict"] in FINDINGS
    ]
    if lines:
        title = f"{study.title}: the check no_verdict_is_biased fails, {number_of(len(lines), 'finding')}"
        _tell(project, study, "check", title, lines, report)


def _tell(project: Project, study: AnyStudy, event: Event, title: str, lines: list[str], report: Path) -> None:
    settings = project.profile.notify
    if settings:
        # A run of Dagster's knows its page; the report's has a prefix in a location of somebody's own.
        parent = os.environ.get(PARENT)
        page = f"runs/{parent}" if parent else f"assets/{study.report}"
        link = f"{settings.link}/{page}" if settings.link else str(report)
        notify(settings, Message(event, project.name, title, shortened(lines), link))


def _place(study: AnyStudy, row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in study.identity)
