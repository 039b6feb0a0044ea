"""Renders the report of study 6: one self-contained HTML file."""

from typing import Any

from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.outcomes.rates import ALL_GROUPS
from fairness_pipeline.measures.outcomes.rows import (
    CROSSED,
    GATED,
    NAMES_AND_ITEMS,
    NOTHING,
    OMNIBUS,
    OTHERS,
    PAIR,
    REFERENCE,
    SAID,
    SIDE,
    SIDE_OF_GROUP,
)
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.results import Audit, worst_first
from fairness_pipeline.studies.outcomes.plots import crossing_plot, forest_plot, power_plot
from fairness_pipeline.studies.outcomes.profile import OutcomesPart
from fairness_pipeline.studies.outcomes.study import STUDY, rates
from fairness_pipeline.workspace.lake import Lake, Row


def render_report(part: OutcomesPart, lake: Lake, audits: list[Audit]) -> str:
    """Renders the report from the assets made so far; missing audits are listed as not measured."""
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        striking=lambda audit, row: _striking(lake, audit, row),
        tables=part.tables,
        sections=[_section(part, lake, audit) for audit in worst_first(STUDY, [a for a in audits if a.measured])],
        rates=_by_partition(rates(part, lake)),
        figures={table: figures for table in part.tables if (figures := _figures(part, lake, table))},
        gated=GATED,
        mentioned_or_not=SAID,
        all_groups=ALL_GROUPS,
        names_and_items=NAMES_AND_ITEMS,
        level=f"{100 * part.level:g}%",
        settings=part.settings.model_dump(exclude={"tables"}, exclude_unset=True),
    )


def _by_partition(rows: list[Row]) -> list[dict[str, Any]]:
    """The rates of each table and condition."""
    by_partition: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_partition.setdefault((row["table"], row["condition"]), []).append(row)
    return [
        {"key": {"table": table, "condition": condition}, "rows": rows}
        for (table, condition), rows in by_partition.items()
    ]


def _figures(part: OutcomesPart, lake: Lake, table: str) -> dict[str, Any]:
    """The figures of the first condition that was measured."""
    conditions = part.tables[table].condition_keys
    figures = (lake.figures("outcome_cells", {"table": table, "condition": condition}) for condition in conditions)
    return next(filter(None, figures), {})


def _section(part: OutcomesPart, lake: Lake, audit: Audit) -> dict[str, Any]:
    """The section of an audit: its outcomes by group column, and the changes in its condition."""
    rows = [row for row in audit.rows if row["attribute"] and row["outcome"] != DISTINGUISHABLE]
    comparisons = dict.fromkeys((row["outcome"], row["attribute"]) for row in rows)
    sides = [row for row in audit.rows if row["contrast"] in (SIDE, SIDE_OF_GROUP)]
    changes = lake.rows("outcome_changes", audit.key) if part.compared(audit.key) else []
    table = audit.key["table"]
    asked = lake.figures("group_questions", {"table": table}) if part.asks_about_groups(audit.key) else None
    return {
        "beside": lake.figures("outcome_cells", audit.key).get("beside", {}),
        "asked": asked,
        "words": _words(lake.rows("telling_words", audit.key)) if asked else [],
        "audit": audit,
        "parts": [
            _part(audit, *comparison, of_messages=bool(asked))
            for comparison in comparisons
            if not any(row["outcome"] == comparison[0] for row in sides)
        ],
        "sides": sides,
        "changes": changes,
        "baseline": part.tables[table].baseline,
    }


def _words(rows: list[Row]) -> list[dict[str, Any]]:
    """The words that tell the groups apart, by column, and said or not."""
    comparisons = dict.fromkeys((row["attribute"], row["contrast"]) for row in rows)
    return [
        {
            "attribute": attribute,
            "contrast": contrast,
            "words": [
                row for row in rows if (row["attribute"], row["contrast"]) == (attribute, contrast) and row["text"]
            ],
        }
        for attribute, contrast in comparisons
    ]


def _part(audit: Audit, outcome: str, attribute: str, *, of_messages: bool) -> dict[str, Any]:
    rows = [row for row in audit.rows if (row["outcome"], row["attribute"]) == (outcome, attribute)]
    singles = [row for row in audit.rows if row["outcome"] == outcome]
    omnibus = next(row for row in rows if row["contrast"] == OMNIBUS)
    # Messages have thirty outcomes: pictures of all would be too many.
    with_pictures = not of_messages or (omnibus["verdict"] != "fair" and omnibus["difference"] != 0)
    return {
        "outcome": outcome,
        "attribute": attribute,
        "whole": omnibus,
        "forest": forest_plot(rows) if with_pictures else None,
        "crossing": crossing_plot(rows, singles) if with_pictures else None,
        "power": None if of_messages else power_plot(omnibus),
        "groups": [row for row in rows if row["contrast"] == OTHERS],
        "said": [row for row in rows if row["contrast"] == SAID],
        "unmarked": [row for row in rows if row["contrast"] == NOTHING],
        "pairs": [row for row in rows if row["contrast"] in (PAIR, REFERENCE)],
        "beyond": [row for row in rows if row["contrast"] == CROSSED],
    }


def _striking(lake: Lake, audit: Audit, row: Row) -> dict[str, Any] | None:
    """An item with texts on which the two groups of a finding differ."""
    if row["contrast"] != OMNIBUS:
        return None
    cells_by_item: dict[str, dict[str, Row]] = {}
    for cell in lake.read("outcome_cells", audit.key).to_pylist():
        name = " ".join(map(str, cell["groups"]))
        if cell["outcome"] == row["outcome"] and name in (row["group"], row["against"]) and cell["answer"]:
            cells_by_item.setdefault(cell["item"], {}).setdefault(name, cell)
    for cells in cells_by_item.values():
        if len(cells) == 2 and cells[row["group"]]["value"] > cells[row["against"]]["value"]:
            return {
                side: {
                    "group": name,
                    "context": cells[name]["asked"] or cells[name]["item"],
                    "response": cells[name]["answer"],
                }
                for side, name in (("a", row["group"]), ("b", row["against"]))
            }
    return None
