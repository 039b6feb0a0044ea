"""What earlier runs found: significance tables and report, kept by time, to hold a new run against."""

import re
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
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d([:-]\d\d([:-]\d\d)?)?)?)?)?Z?")
_COMPARED = ("value_a", "value_b", "difference", "verdict")


def keep(project: Project, lake: Lake, report: str, now: datetime) -> None:
    """Keeps the significance tables as they are now, and the report on them, in `history/<time>`.

    Nothing is kept where nothing was measured, or where the tables are those of the last entry.

    Args:
        project: The profile.
        lake: Its lake.
        report: The report's HTML.
        now: The time, UTC.
    """
    rows = result_rows([audit for audit in dialogue_audits(project, lake) if audit.measured])
    known = entries(lake.root)
    if not rows or (known and _read(lake.root, known[-1]) == _as_kept(rows)):
        return
    folder = lake.root / "history" / now.strftime(_FORMAT)
    with replacing(folder / "dialogue_fairness_report.html") as temporary:
        temporary.write_text(report, encoding="utf-8")
    with replacing(folder / _TABLE) as temporary:  # last: an entry without it does not count
        pq.write_table(pa.Table.from_pylist(rows), temporary)


def _read(workspace: Path, entry: str) -> list[dict[str, Any]]:
    return pq.read_table(workspace / "history" / entry / _TABLE).to_pylist()


def _as_kept(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return pa.Table.from_pylist(rows).to_pylist()


def entries(workspace: Path) -> list[str]:
    """The times of what is kept, oldest first."""
    return sorted(path.parent.name for path in (workspace / "history").glob(f"*/{_TABLE}"))


def find_entry(workspace: Path, wanted: str, audits: list[Audit]) -> str:
    """The latest entry whose time begins with `wanted`, or else the latest before it.

    Args:
        workspace: The workspace's folder.
        wanted: A time or its beginning; or `previous`, the last entry that differs from what the lake holds now.
        audits: All that the lake holds now.

    Raises:
        FairnessError: there is none, or `wanted` is no time.
    """
    known = entries(workspace)
    if wanted == "previous":
        now = _as_kept(result_rows([audit for audit in audits if audit.measured]))
        found = [entry for entry in known if _read(workspace, entry) != now]
    elif _TIME.fullmatch(wanted):
        time = wanted.replace(":", "-").replace(" ", "T")
        found = [entry for entry in known if entry.startswith(time) or entry < time]
    else:
        raise FairnessError(
            f"--against: expected a time such as 2026-11-20 or 2026-11-20T08:30 (UTC), or 'previous', found '{wanted}'"
        )
    if not found:
        raise FairnessError(f"--against {wanted}: no such run is kept; kept: {', '.join(known) or 'none'}")
    return found[-1]


def against(workspace: Path, entry: str, audits: list[Audit]) -> list[dict[str, Any]]:
    """What changed since `entry`: one row a dimension, model and measure, `_then` beside `_now`."""

    def by_place(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {(row["dimension"], row["model"], row["measure"]): row for row in rows if row["measure"]}

    then, now = by_place(_read(workspace, entry)), by_place(result_rows(audits))
    asked = {(audit.dimension, audit.model) for audit in audits}
    rows = []
    for place in dict.fromkeys([*now, *(place for place in then if place[:2] in asked)]):
        before, after = then.get(place, {}), now.get(place, {})
        row: dict[str, Any] = dict(zip(("dimension", "model", "measure"), place, strict=True))
        for name in _COMPARED:
            row[f"{name}_then"], row[f"{name}_now"] = before.get(name), after.get(name)
        rows.append(row | {"verdict_changed": before.get("verdict") != after.get("verdict")})
    return rows
