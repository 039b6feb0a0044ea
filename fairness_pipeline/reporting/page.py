"""What every report says first, and how it is published: findings, one picture, links to the tables; knows no study."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.csv_cells import write_rows
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.origins import origins_of
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.gaps import gaps_table
from fairness_pipeline.reporting.history import against, entries, keep
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.next_steps import next_steps
from fairness_pipeline.reporting.notices import tell_first, tell_turned
from fairness_pipeline.reporting.plots import overview_plot
from fairness_pipeline.reporting.results import (
    NOT_MEASURED,
    Audit,
    artefacts,
    counted,
    drawn_rows,
    ends,
    flat,
    gravest_rows,
    said,
    together,
    warnings_of,
    worst_first,
)
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Lake, Row

_TOLD = 8
"""How many findings are told in words; the tables show all."""
DRAWN = 24
"""How many differences the picture shows, the worst first."""

Striking = Callable[[Audit, Row], dict[str, Any] | None]


def render(
    study: AnyStudy,
    project: Project,
    lake: Lake,
    audits: list[Audit],
    folder: Path,
    *,
    striking: Striking,
    filters: dict[str, Callable[..., Any]] | None = None,
    **content: Any,
) -> str:
    """A study's report: its `report.html.j2` in the frame that all share.

    Args:
        study: Whose.
        project: The profile.
        lake: What has been made.
        audits: All of them.
        folder: The study's, which holds the template.
        striking: A pair that shows a finding: `a` and `b`, each with `group`, `context`, `response`; or None.
        filters: Of the template.
        content: What the study's own part shows.
    """
    part = project.parts[study.name]
    ordered = worst_first(study, audits)
    measured = [audit for audit in ordered if audit.measured]
    judged = [audit for audit in measured if not audit.degenerate]
    rows = gravest_rows(study, judged)
    biased = [(audit, row) for audit, row in rows if said(row) in FINDINGS]
    # What single responses show goes first, and of it what harms or has no reservations.
    biased.sort(
        key=lambda found: (
            together(found[1]),
            bool(study.reservations(part, found[0].key, found[1])) and not study.harmful(found[1]),
        )
    )
    told = _one_each(biased)[:_TOLD]
    drawn = drawn_rows(study, part, rows)
    table = template(folder, "report.html.j2", **(filters or {}))
    return table.render(
        study=study,
        profile=project.name,
        description=project.profile.description,
        dimensions=project.dimensions,
        made=datetime.now(UTC),
        counts=counted(study, audits),
        ends=ends(study, ordered),
        steps=next_steps(study, part, ordered),
        warnings=warnings_of(study, part, lake),
        findings=[
            (audit, study.finding(part, audit.key, row), study.doubts(part, audit.key, row))
            for audit, row in told
        ],
        more=len(biased) - len(told),
        artefacts=artefacts(study, part, ordered),
        asides=[told for audit in judged for told in study.asides(part, audit.key, audit.rows)],
        striking=next(
            (
                {"sentence": study.finding(part, a.key, row), **pair}
                for a, row in biased
                if not a.stale and (pair := striking(a, row))
            ),
            None,
        ),
        overview=_overview(study, drawn[:DRAWN]),
        drawn=(min(DRAWN, len(drawn)), len(drawn)),
        audits=ordered,
        missing=[audit for audit in audits if not audit.measured],
        degenerate=[audit for audit in measured if audit.degenerate],
        choices={axis: list(dict.fromkeys(audit.key[axis] for audit in ordered)) for axis in study.axes},
        verdicts=[*counted(study, audits), *([NOT_MEASURED] if len(measured) < len(audits) else [])],
        verdicts_of=lambda audit: [said(row) for row in audit.rows if study.gated(row)] or [NOT_MEASURED],
        parquet=lambda audit: os.path.relpath(lake.table_path(study.table, audit.key), lake.document_path("x").parent),
        **content,
    )  # fmt: skip


def _one_each(rows: list[tuple[Audit, Row]]) -> list[tuple[Audit, Row]]:
    """The worst row of each audit first, then the others, so that one audit does not fill the list."""
    seen: set[str] = set()
    first: list[tuple[Audit, Row]] = []
    others: list[tuple[Audit, Row]] = []
    for audit, row in rows:
        (others if audit.name in seen else first).append((audit, row))
        seen.add(audit.name)
    return first + others


def _overview(study: AnyStudy, rows: list[tuple[str, Row, str]]) -> tuple[bytes, bytes] | None:
    """The picture for a wide screen, and the one for a phone."""
    return (overview_plot(rows, study.contrast), overview_plot(rows, study.contrast, narrow=True)) if rows else None


def publish(study: AnyStudy, lineage: Lineage, lake: Lake, audits: list[Audit], html: str) -> None:
    """Keeps the tables, their pairs and the report in the history, and the tables as one CSV file beside the report.

    Whoever the profile names is told of verdicts that turned, or of what the first run found.

    Args:
        study: Whose.
        lineage: The lineage of the profile.
        lake: Its lake.
        audits: All of them.
        html: The report.
    """
    rows = flat(study, audits)
    names = list(dict.fromkeys(name for row in rows for name in row))
    path = lake.document_path(study.report).with_name(f"{study.table}.csv")
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        write_rows(stream, names, ([row.get(name, "") for name in names] for row in rows))
    origins = origins_of(lineage, lake, study.table, [audit.key for audit in audits if audit.measured])
    pairs = partial(gaps_table, study, lineage.project, lake, audits)
    if lineage.project.profile.notify:  # before it is kept: who is killed in between tells it again, and not never
        report, before = lake.document_path(study.report), entries(lake.root, study)
        if before:
            turned = against(lake.root, study, before[-1], rows, origins)
            tell_turned(study, lineage.project, audits, turned, before[-1], report)
        else:
            tell_first(study, lineage.project, audits, report)
    keep(lake.root, study, rows, html, datetime.now(UTC), origins, pairs)
