"""What earlier runs found: significance tables and report, kept by time, to hold a new run against."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.lake import Lake
from fairness_pipeline.project import Project
from fairness_pipeline.reporting.results import Audit, dialogue_audits, result_rows

_FORMAT = "%Y-%m-%dT%H-%M-%SZ"
_TABLE = "dialogue_significance.parquet"
_COMPARED = ("value_a", "value_b", "difference", "verdict")


def keep(project: Project, lake: Lake, report: str, now: datetime) -> Path:
    """Keeps the significance tables as they are now, and the report on them, in `history/<time>`; gives the folder.

    Args:
        project: The profile.
        lake: Its lake.
        report: The report's HTML.
        now: The time, UTC.
    """
    folder = lake.root / "history" / now.strftime(_FORMAT)
    measured = [audit for audit in dialogue_audits(project, lake) if audit.measured]
    with replacing(folder / "dialogue_fairness_report.html") as temporary:
        temporary.write_text(report, encoding="utf-8")
    with replacing(folder / _TABLE) as temporary:  # last: an entry without it does not count
        pq.write_table(pa.Table.from_pylist(result_rows(measured)), temporary)
    return folder


def entries(workspace: Path) -> list[str]:
    """The times of what is kept, oldest first."""
    return sorted(path.parent.name for path in (workspace / "history").glob(f"*/{_TABLE}"))


def find_entry(workspace: Path, wanted: str) -> str:
    """The latest entry whose time begins with `wanted`, or else the latest before it.

    Args:
        workspace: The workspace's folder.
        wanted: A time or its beginning; or `previous`, the entry before the last.

    Raises:
        FairnessError: there is none.
    """
    known = entries(workspace)
    before = [entry for entry in known if entry.startswith(wanted) or entry < wanted]
    found = known[:-1] if wanted == "previous" else before
    if not found:
        raise FairnessError(
            f"--against {wanted}: no run is kept from then; kept: {', '.join(known) or 'none'} (a time such as "
            "2026-11-20 or 2026-11-20T08-30, or 'previous')"
        )
    return found[-1]


def against(workspace: Path, entry: str, audits: list[Audit]) -> list[dict[str, Any]]:
    """What changed since `entry`: one row a dimension, model and measure, `_then` beside `_now`."""
    path = workspace / "history" / entry / _TABLE

    def by_place(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {(row["dimension"], row["model"], row["measure"]): row for row in rows if row["measure"]}

    then, now = by_place(pq.read_table(path).to_pylist()), by_place(result_rows(audits))
    asked = {(audit.dimension, audit.model) for audit in audits}
    rows = []
    for place in dict.fromkeys([*now, *(place for place in then if place[:2] in asked)]):
        before, after = then.get(place, {}), now.get(place, {})
        row: dict[str, Any] = dict(zip(("dimension", "model", "measure"), place, strict=True))
        for name in _COMPARED:
            row[f"{name}_then"], row[f"{name}_now"] = before.get(name), after.get(name)
        rows.append(row | {"verdict_changed": before.get("verdict") != after.get("verdict")})
    return rows
