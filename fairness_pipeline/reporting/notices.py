"""Sends notices of the results of a run: verdicts that turned, and findings of a first run."""

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


def notify_turned(
    study: AnyStudy, project: Project, audits: list[Audit], turned: Rows, since: str, report: Path
) -> None:
    """Sends a notice of verdicts that turned since the run before.

    Args:
        study: The study.
        project: The profile.
        audits: All present audits.
        turned: The verdicts that turned, as `history.against` gives them.
        since: The entry of the run before.
        report: The report's file.
    """
    now = {_identity(study, {**audit.key, **row}): (audit, row) for audit in audits for row in audit.rows}
    lines = []
    for change in turned:
        identity = _identity(study, change)
        then, verdict = change["verdict_then"] or "not measured", change["verdict_now"] or "not measured"
        if not change["verdict_then"] and verdict not in FINDINGS:
            continue  # a new model or dimension without a finding
        line = f"{' '.join(map(str, identity))}: {then} -> {verdict}"
        if identity in now:
            audit, row = now[identity]
            line += f": {study.finding(project.parts[study.name], audit.key, row)}"
        lines.append(line)
    if lines:
        title = f"{study.title}: {number_of(len(lines), 'verdict')} turned since {time_of(since)}"
        _send(project, study, "verdict", title, lines, report)


def notify_first(study: AnyStudy, project: Project, audits: list[Audit], report: Path) -> None:
    """Sends a notice of the findings of a first run, if there are any."""
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
        _send(project, study, "check", title, lines, report)


def _send(project: Project, study: AnyStudy, event: Event, title: str, lines: list[str], report: Path) -> None:
    settings = project.profile.notify
    if settings:
        # A run of Dagster has its own page; the asset of a report has a prefix in a user's own code location.
        parent = os.environ.get(PARENT)
        page = f"runs/{parent}" if parent else f"assets/{study.report}"
        link = f"{settings.link}/{page}" if settings.link else str(report)
        notify(settings, Message(event, project.name, title, shortened(lines), link))


def _identity(study: AnyStudy, row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in study.identity)
