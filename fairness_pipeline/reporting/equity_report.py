"""The report of study 3: one self-contained HTML file."""

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.equity_sentences import GROUPS
from fairness_pipeline.lake import Lake
from fairness_pipeline.measures.equity_pairs import ALL
from fairness_pipeline.models.systems.specification import AFFECTS
from fairness_pipeline.project import Project
from fairness_pipeline.reporting.equity_plots import equity_plot
from fairness_pipeline.reporting.equity_results import (
    ALL_AFFECTS,
    EquityAudit,
    equity_audits,
    summaries,
    turned,
    widest_gaps,
    wordings,
)
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.plots import COLOURS

_GAPS = 6


def render_equity_report(project: Project, lake: Lake, *, stale: Collection[tuple[str, str]] = ()) -> str:
    """The whole report from what the lake holds; what it does not hold is listed as not measured.

    Args:
        project: The profile.
        lake: What has been made.
        stale: (dimension, system) of audits made with other settings or data than the profile's; they are marked so,
            and left out of what is counted over all systems.
    """
    settings = project.profile.equity
    audits = equity_audits(project, lake)
    measured = [audit for audit in audits if audit.measured and lake.card("equity_pairs", _key(audit))]
    current = [audit for audit in measured if (audit.dimension, audit.system) not in stale]
    return template("equity_report.html.j2").render(
        profile=project.name,
        description=project.profile.description,
        colours=COLOURS,
        dimensions=project.dimensions,
        groups=GROUPS,
        affects=AFFECTS,
        audits=audits,
        missing=[audit for audit in audits if audit not in measured],
        stale=stale,
        left_out=[audit for audit in measured if audit not in current],
        summaries=summaries(project, current),
        all_affects=ALL_AFFECTS,
        wordings=wordings(lake) if measured else {},
        turned=turned(current),
        sections=[_section(lake, audit) for audit in measured],
        level=f"{100 * settings.alpha:g}%",
        confidence=f"{100 * (1 - 2 * settings.alpha):g}%",
        settings=settings.model_dump(exclude_none=True),
        systems={key: system.identity() for key, system in project.systems.items()},
        files={key: str(path) for key, path in project.score_files.items()},
    )


def _section(lake: Lake, audit: EquityAudit) -> dict[str, Any]:
    pairs: pa.Table = lake.read("equity_pairs", _key(audit))
    return {
        "audit": audit,
        "plot": equity_plot(pairs, *GROUPS[audit.dimension]),
        "gaps": widest_gaps(pairs, _GAPS),
        "pairs": next(row["n"] for row in audit.rows if row["subset"] == ALL),
    }


def _key(audit: EquityAudit) -> dict[str, str]:
    return {"dimension": audit.dimension, "system": audit.system}
