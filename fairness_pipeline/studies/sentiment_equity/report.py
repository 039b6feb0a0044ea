"""The report of study 3: one self-contained HTML file."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.equity_sentences import GROUPS
from fairness_pipeline.lake import Lake
from fairness_pipeline.measures.equity_pairs import ALL
from fairness_pipeline.models.sentiment.specification import AFFECTS
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.plots import COLOURS
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.studies.sentiment_equity.plots import equity_plot
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart
from fairness_pipeline.studies.sentiment_equity.results import (
    ALL_AFFECTS,
    row_of,
    summaries,
    turned,
    widest_gaps,
    wordings,
)

_GAPS = 6


_HERE = Path(__file__).parent


def render_report(part: EquityPart, lake: Lake, audits: list[Audit]) -> str:
    """The whole report from what the lake holds; what it does not hold is listed as not measured.

    Args:
        part: The profile's part of the study.
        lake: What has been made.
        audits: All of them; stale ones are marked so, and left out of what is counted over all systems.
    """
    settings = part.settings
    measured = [audit for audit in audits if audit.measured and lake.card("equity_pairs", audit.key)]
    current = [audit for audit in measured if not audit.stale]
    return template(_HERE, "report.html.j2").render(
        profile=part.project.name,
        description=part.project.profile.description,
        colours=COLOURS,
        dimensions=part.project.dimensions,
        groups=GROUPS,
        affects=AFFECTS,
        audits=audits,
        row_of=row_of,
        missing=[audit for audit in audits if audit not in measured],
        left_out=[audit for audit in measured if audit.stale],
        summaries=summaries(settings.alpha, current),
        all_affects=ALL_AFFECTS,
        wordings=wordings(lake) if measured else {},
        turned=turned(current),
        sections=[_section(lake, audit) for audit in measured],
        level=f"{100 * settings.alpha:g}%",
        confidence=f"{100 * (1 - 2 * settings.alpha):g}%",
        settings=settings.model_dump(include={"tweets", "margin", "alpha"}, exclude_none=True),
        systems={key: system.identity() for key, system in part.systems.items()},
        files={key: str(path) for key, path in part.score_files.items()},
    )


def _section(lake: Lake, audit: Audit) -> dict[str, Any]:
    pairs: pa.Table = lake.read("equity_pairs", audit.key)
    return {
        "audit": audit,
        "plot": equity_plot(pairs, *GROUPS[audit.key["dimension"]]),
        "gaps": widest_gaps(pairs, _GAPS),
        "pairs": next(row["n"] for row in audit.rows if row["subset"] == ALL),
    }
