"""Renders what all reports share (findings, one picture, links to the tables) and publishes reports; knows no study."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from inspect import getfile
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.csv_cells import write_table
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.origins import origins_of
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.gaps import gaps_table
from fairness_pipeline.reporting.history import against, entries, keep
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.next_steps import next_steps
from fairness_pipeline.reporting.notices import notify_first, notify_turned
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
    shown_verdict,
    together,
    warnings_of,
    worst_first,
)
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Lake, Row

_SENTENCES = 8
"""The number of findings in words; the tables show all."""
DRAWN = 24
"""The number of differences in the picture, the worst first."""

Striking = Callable[[Audit, Row], dict[str, Any] | None]


def render(
    study: AnyStudy,
    project: Project,
    lake: Lake,
    audits: list[Audit],
    *,
    striking: Striking,
    filters: dict[str, Callable[..., Any]] | None = None,
    **content: Any,
) -> str:
    """Renders a study's report: the `report.html.j2` of its folder in the frame that all share.

    Args:
        study: The study.
        project: The profile.
        lake: What has been made.
        audits: All audits of the study.
        striking: A pair that shows a finding: `a` and `b`, each with `group`, `context`, `response`; or None.
        filters: Filters of the template.
        content: What the study's own part shows.
    """
    part = project.parts[study.name]
    ordered = worst_first(study, audits)
    measured = [audit for audit in ordered if audit.measured]
    judged = [audit for audit in measured if not audit.degenerate]
    rows = gravest_rows(study, judged)
    biased = [(audit, row) for audit, row in rows if shown_verdict(row) in FINDINGS]
    # Measures of single responses go first; among them what harms or has no reservations.
    biased.sort(
        key=lambda entry: (
            together(entry[1]),
            bool(study.reservations(part, entry[0].key, entry[1])) and not study.harmful(entry[1]),
        )
    )
    described = _one_each(biased)[:_SENTENCES]
    drawn = drawn_rows(study, part, rows)
    page = template(Path(getfile(type(part))).parent, "report.html.j2", **(filters or {}))
    return page.render(
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
            for audit, row in described
        ],
        more=len(biased) - len(described),
        artefacts=artefacts(study, part, ordered),
        asides=[aside for audit in judged for aside in study.asides(part, audit.key, audit.rows)],
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
        verdicts_of=lambda audit: [shown_verdict(row) for row in audit.rows if study.gated(row)] or [NOT_MEASURED],
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
    """Returns the picture for a wide screen, and the one for a phone."""
    return (overview_plot(rows, study.contrast), overview_plot(rows, study.contrast, narrow=True)) if rows else None


def publish(study: AnyStudy, lineage: Lineage, lake: Lake, audits: list[Audit], html: str) -> None:
    """Keeps the tables, their pairs and the report in the history, and the tables as one CSV file beside the report.

    The recipients in the profile are notified of verdicts that turned, or of the findings of a first run.
    """
    rows = flat(study, audits)
    names = list(dict.fromkeys(name for row in rows for name in row))
    path = lake.document_path(study.report).with_name(f"{study.table}.csv")
    write_table(path, names, ([row.get(name, "") for name in names] for row in rows))
    origins = origins_of(lineage, lake, study.table, [audit.key for audit in audits if audit.measured])
    pairs = partial(gaps_table, study, lineage.project, lake, audits)
    if lineage.project.profile.notify:  # before it is kept: a run killed in between notifies again rather than never
        report, earlier = lake.document_path(study.report), entries(lake.root, study)
        if earlier:
            turned = against(lake.root, study, earlier[-1], rows, origins)
            notify_turned(study, lineage.project, audits, turned, earlier[-1], report)
        else:
            notify_first(study, lineage.project, audits, report)
    keep(lake.root, study, rows, html, datetime.now(UTC), origins, pairs)
