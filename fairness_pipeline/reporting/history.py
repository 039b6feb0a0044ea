"""What earlier runs found: significance tables and report, kept by time, to hold a new run against."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing

_FORMAT = "%Y-%m-%dT%H-%M-%SZ"
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d([:-]\d\d([:-]\d\d)?)?)?)?)?Z?")
_COMPARED = ("value_a", "value_b", "difference", "verdict")

Rows = list[dict[str, Any]]


class Kept(NamedTuple):
    """What is kept of a study: its significance tables, as one, and its report; `place` tells a table's rows apart.

    The first two of `place` name an audit; the third is null where that was not measured.
    """

    table: str
    report: str
    place: tuple[str, ...]

    def measured(self, rows: Rows) -> Rows:
        """Those of a study's rows that hold a measurement."""
        return [row for row in rows if row.get(self.place[2]) is not None]


DIALOGUE = Kept("dialogue_significance", "dialogue_fairness_report", ("dimension", "model", "measure"))
EQUITY = Kept("equity_significance", "equity_report", ("dimension", "system", "affect", "templates", "subset"))


def keep(workspace: Path, kept: Kept, rows: Rows, report: str, now: datetime) -> None:
    """Keeps a study's significance tables as they are now, and the report on them, in `history/<time>`.

    Nothing is kept where nothing was measured, or where the tables are those of the last entry.

    Args:
        workspace: The workspace's folder.
        kept: The study's.
        rows: All that the lake holds of the study now.
        report: The report's HTML.
        now: The time, UTC.
    """
    rows = kept.measured(rows)
    known = entries(workspace, kept)
    if not rows or (known and _read(workspace, kept, known[-1]) == _as_kept(rows)):
        return
    folder = workspace / "history" / now.strftime(_FORMAT)
    with replacing(folder / f"{kept.report}.html") as temporary:
        temporary.write_text(report, encoding="utf-8")
    with replacing(folder / f"{kept.table}.parquet") as temporary:  # last: an entry without it does not count
        pq.write_table(pa.Table.from_pylist(rows), temporary)


def _read(workspace: Path, kept: Kept, entry: str) -> Rows:
    return pq.read_table(workspace / "history" / entry / f"{kept.table}.parquet").to_pylist()


def _as_kept(rows: Rows) -> Rows:
    return pa.Table.from_pylist(rows).to_pylist()


def entries(workspace: Path, kept: Kept) -> list[str]:
    """The times of what is kept of a study, oldest first."""
    return sorted(path.parent.name for path in (workspace / "history").glob(f"*/{kept.table}.parquet"))


def find_entry(workspace: Path, kept: Kept, wanted: str, rows: Rows) -> str:
    """The latest entry whose time begins with `wanted`, or else the latest before it.

    Args:
        workspace: The workspace's folder.
        kept: The study's.
        wanted: A time or its beginning; or `previous`, the last entry that differs from what the lake holds now.
        rows: All that the lake holds of the study now.

    Raises:
        FairnessError: there is none, or `wanted` is no time.
    """
    known = entries(workspace, kept)
    if wanted == "previous":
        now = _as_kept(kept.measured(rows))
        found = [entry for entry in known if _read(workspace, kept, entry) != now]
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


def against(workspace: Path, kept: Kept, entry: str, rows: Rows) -> Rows:
    """What changed since `entry` in the audits that `rows` are of: one row a comparison, `_then` beside `_now`."""

    def by_place(rows: Rows) -> dict[tuple[str, ...], dict[str, Any]]:
        return {tuple(row[name] for name in kept.place): row for row in kept.measured(rows)}

    then, now = by_place(_read(workspace, kept, entry)), by_place(rows)
    asked = {tuple(row[name] for name in kept.place[:2]) for row in rows}
    found = []
    for place in dict.fromkeys([*now, *(place for place in then if place[:2] in asked)]):
        before, after = then.get(place, {}), now.get(place, {})
        row: dict[str, Any] = dict(zip(kept.place, place, strict=True))
        for name in _COMPARED:
            row[f"{name}_then"], row[f"{name}_now"] = before.get(name), after.get(name)
        found.append(row | {"verdict_changed": before.get("verdict") != after.get("verdict")})
    return found
