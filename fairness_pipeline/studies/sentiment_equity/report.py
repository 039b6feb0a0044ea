"""Renders the report of study 3: one self-contained HTML file."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.sentiment.equity_sentences import GROUPS, PUBLISHED
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY, WITHOUT
from fairness_pipeline.measures.sentiment.equity_significance import SOME_NAMES
from fairness_pipeline.models.sentiment.specification import AFFECTS
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.results import Audit, worst_first
from fairness_pipeline.statistics.verdicts import FINDING
from fairness_pipeline.studies.sentiment_equity.plots import equity_plot
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart
from fairness_pipeline.studies.sentiment_equity.results import (
    ALL_AFFECTS,
    row_of,
    sentence_of,
    summaries,
    turned,
    widest_gaps,
    wordings,
)
from fairness_pipeline.studies.sentiment_equity.study import STUDY
from fairness_pipeline.workspace.lake import Lake, Row

_GAPS = 6


def render_report(part: EquityPart, lake: Lake, audits: list[Audit]) -> str:
    """Renders the report from the assets made so far; missing audits are listed as not measured.

    Stale audits are marked, and left out of the counts over all systems.
    """
    settings = part.settings
    # without pairs there is nothing to show
    audits = [a if lake.card("equity_pairs", a.key) else Audit(a.key, []) for a in audits]
    measured = [audit for audit in audits if audit.measured]
    current = [audit for audit in measured if not audit.stale and not audit.degenerate]
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        striking=lambda audit, row: _striking(part, lake, audit, row),
        groups=GROUPS,
        affects=AFFECTS,
        row_of=row_of,
        left_out=[audit for audit in measured if audit.stale],
        summaries=summaries(settings.alpha, current),
        all_affects=ALL_AFFECTS,
        wordings=wordings(lake) if measured else {},
        turned=turned(current),
        sections=[_section(lake, audit) for audit in worst_first(STUDY, measured)],
        level=f"{100 * settings.alpha:g}%",
        confidence=f"{100 * (1 - 2 * settings.alpha):g}%",
        alpha=settings.alpha,
        settings=settings.model_dump(include={"tweets", "margin", "alpha"}, exclude_none=True),
        systems={key: system.identity() for key, system in part.systems.items()},
        files={key: str(path) for key, path in part.score_files.items()},
    )


def _striking(part: EquityPart, lake: Lake, audit: Audit, row: Row) -> dict[str, Any] | None:
    """The pair of sentences whose scores differ most in the direction of a finding."""
    pairs = lake.read("equity_pairs", audit.key)
    ahead, behind = ("score_a", "score_b") if row["difference"] > 0 else ("score_b", "score_a")
    mask = pc.and_(pc.equal(pairs["affect"], row["affect"]), pc.greater(pairs[ahead], pairs[behind]))
    gaps = widest_gaps(pairs.filter(mask), 1)
    if not gaps:
        return None
    groups = STUDY.groups(part, audit.key)
    return {
        side: {
            "group": group,
            "context": sentence_of(lake, gaps[0], index, group),
            "response": f"{row['affect']} {gaps[0][f'score_{side}']:.3f}",
        }
        for index, (side, group) in enumerate(zip("ab", groups, strict=True))
    }


def _section(lake: Lake, audit: Audit) -> dict[str, Any]:
    pairs: pa.Table = lake.read("equity_pairs", audit.key)
    return {
        "audit": audit,
        "plot": equity_plot(pairs, *GROUPS[audit.key["dimension"]]),
        "gaps": widest_gaps(pairs, _GAPS),
        "pairs": next(row["n"] for row in audit.rows if STUDY.gated(row)),
        "strata": [row for row in audit.rows if row["templates"] == PUBLISHED and row["ci_low"] is not None],
        "names": [
            row
            for row in audit.rows
            if row["templates"] == PUBLISHED and (row["persons"] == SOME_NAMES or row["verdict"] == FINDING)
        ],
        "wholes": [row for row in audit.rows if row["persons"] == EVERYBODY and row["subset"] in (ALL, WITHOUT)],
    }
