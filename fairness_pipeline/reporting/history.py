"""What earlier runs found: significance tables and reports, kept by time for comparison with new runs."""

import gzip
import json
import re
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.parquet import read_parquet, write_parquet
from fairness_pipeline.lineage.origins import Origins, label, why
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import said
from fairness_pipeline.workspace.lake import Key, Row

_FORMAT = "%Y-%m-%dT%H-%M-%SZ"
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d([:-]\d\d([:-]\d\d)?)?)?)?)?Z?")
_COMPARED = ("difference", "verdict")
_ORIGINS = "_origins.json.gz"
_GAPS, _REFUSED = "_gaps.parquet", "_refused.json"

Rows = list[Row]


def keep(
    workspace: Path,
    study: AnyStudy,
    rows: Rows,
    report: str,
    now: datetime,
    origins: Origins | None = None,
    gaps: Callable[[], pa.Table | None] = lambda: None,
) -> None:
    """Keeps a study's significance tables as they are now, the pairs behind them, and the report, in `history/<time>`.

    Nothing is kept if nothing was measured, or if the tables equal those of the last entry.

    Args:
        workspace: The workspace's folder.
        study: Whose.
        rows: All that the lake holds of the study now.
        report: The report's HTML.
        now: The time, UTC.
        origins: What the tables were made from.
        gaps: Gives the pairs, as `reporting.gaps.gaps_table` does; called only if something is kept.
    """
    rows = _measured(study, rows)
    known = entries(workspace, study)
    if not rows or (known and _same(workspace, study, known[-1], rows)):
        return
    while (workspace / "history" / now.strftime(_FORMAT) / f"{study.table}.parquet").exists():
        now += timedelta(seconds=1)  # two small runs can end in one second
    folder = workspace / "history" / now.strftime(_FORMAT)
    with replacing(folder / f"{study.report}.html") as temporary:
        temporary.write_text(report, encoding="utf-8")
    with replacing(folder / f"{study.table}{_ORIGINS}") as temporary:
        temporary.write_bytes(gzip.compress(json.dumps(origins or {}).encode(), mtime=0))
    if (pairs := gaps()) is not None:
        with replacing(folder / f"{study.table}{_GAPS}") as temporary:
            write_parquet(pairs, temporary)
    with replacing(folder / f"{study.table}.parquet") as temporary:  # last: an entry without it does not count
        write_parquet(pa.Table.from_pylist(rows), temporary)


def prune(workspace: Path, studies: Iterable[AnyStudy], count: int) -> int:
    """Deletes the oldest entries beyond `count`, but of each study the last two stay; returns how many.

    Args:
        workspace: The workspace's folder.
        studies: All that may have entries.
        count: How many entries are kept.
    """
    folders = sorted(path for path in (workspace / "history").glob("*") if path.is_dir())
    last = {entry for study in studies for entry in entries(workspace, study)[-2:]}
    gone = [path for path in folders[:-count] if path.name not in last]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)  # another command may be doing the same
    return len(gone)


def _measured(study: AnyStudy, rows: Rows) -> Rows:
    """The rows that hold a measurement."""
    return [row for row in rows if row.get(study.identity[len(study.axes)]) is not None]


def _read_table(path: Path) -> pa.Table:
    try:
        return read_parquet(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise FairnessError(f"{path}: damaged ({str(error).splitlines()[0]}); delete its folder") from None


def rows_at(workspace: Path, study: AnyStudy, entry: str) -> Rows:
    """The significance tables of an entry."""
    kept = _read_table(workspace / "history" / entry / f"{study.table}.parquet").to_pylist()
    rows: Rows = [{**row, **study.older, **row} for row in kept]
    return rows


def gaps_at(workspace: Path, study: AnyStudy, entry: str) -> pa.Table | None:
    """The pairs behind the tables of an entry; None if it kept none."""
    path = workspace / "history" / entry / f"{study.table}{_GAPS}"
    return _read_table(path) if path.exists() else None


def origins_at(workspace: Path, study: AnyStudy, entry: str) -> Origins:
    """What the tables of an entry were made from; nothing is known of entries of earlier versions."""
    path = workspace / "history" / entry / f"{study.table}{_ORIGINS}"
    if not path.exists():
        return {}
    try:
        with gzip.open(path) as stream:
            found: Origins = json.load(stream)
    except (OSError, ValueError, EOFError) as error:
        raise FairnessError(f"{path}: damaged ({str(error).splitlines()[0]}); delete it") from None
    return found


def _same(workspace: Path, study: AnyStudy, entry: str, rows: Rows) -> bool:
    try:
        return rows_at(workspace, study, entry) == _as_kept(rows)
    except FairnessError:  # damaged: what is found now is kept beside it
        return False


def _as_kept(rows: Rows) -> Rows:
    return pa.Table.from_pylist(rows).to_pylist()


def entries(workspace: Path, study: AnyStudy) -> list[str]:
    """The times of what is kept of a study, oldest first."""
    return sorted(path.parent.name for path in (workspace / "history").glob(f"*/{study.table}.parquet"))


def note_refusal(workspace: Path, study: AnyStudy, keys: Iterable[Key]) -> None:
    """Notes beside the last entry which of its audits have closed a gate.

    Args:
        workspace: The workspace's folder.
        study: Whose.
        keys: The audits' partitions.
    """
    if known := entries(workspace, study):
        with replacing(workspace / "history" / known[-1] / f"{study.table}{_REFUSED}") as temporary:
            temporary.write_text(json.dumps([*keys]), encoding="utf-8")


def last_not_refused(workspace: Path, study: AnyStudy) -> str | None:
    """The last entry in which no audit has closed a gate, nor has the rows of one that has; None if there is none.

    So a gate that is tried again does not take what it has just refused for the run before.
    """
    refused = []
    for path in sorted((workspace / "history").glob(f"*/{study.table}{_REFUSED}")):
        rows = rows_at(workspace, study, path.parent.name)
        refused += [_of_audit(rows, key) for key in json.loads(path.read_bytes())]
    for entry in reversed(entries(workspace, study)):
        rows = rows_at(workspace, study, entry) if refused else []
        if not any(
            audit == _of_audit(rows, {axis: audit[0][axis] for axis in study.axes}) for audit in refused if audit
        ):
            return entry
    return None


def _of_audit(rows: Rows, key: Key) -> Rows:
    return [row for row in rows if all(row[axis] == value for axis, value in key.items())]


def time_of(entry: str) -> str:
    """The time of an entry, for a reader: `2026-11-24 08:30 UTC`."""
    return f"{datetime.strptime(entry, _FORMAT):%Y-%m-%d %H:%M} UTC"


def find_entry(workspace: Path, study: AnyStudy, wanted: str, rows: Rows, option: str = "--against") -> str:
    """The latest entry with a time that begins with `wanted`; without one, the latest entry before it.

    Args:
        workspace: The workspace's folder.
        study: Whose.
        wanted: A time or its beginning; or `previous`, the last entry that differs from what the lake holds now.
        rows: All that the lake holds of the study now.
        option: The option that names it, for errors.

    Raises:
        FairnessError: there is none, or `wanted` is no time.
    """
    known = entries(workspace, study)
    if wanted == "previous":
        now = _as_kept(_measured(study, rows))
        found = [*islice((entry for entry in reversed(known) if rows_at(workspace, study, entry) != now), 1)]
    elif _is_time(wanted):
        time = wanted.replace(":", "-").replace(" ", "T")
        found = [entry for entry in known if entry.startswith(time) or entry < time]
    else:
        raise FairnessError(
            f"{option}: expected a time such as 2026-11-20 or 2026-11-20T08:30 (UTC), or 'previous', found '{wanted}'"
        )
    if not found and wanted == "previous" and known:
        raise FairnessError(f"{option} previous: nothing is kept but what the tables hold now")
    if not found:
        raise FairnessError(f"{option} {wanted}: no such run is kept; kept: {', '.join(known) or 'none'}")
    return found[-1]


def _is_time(text: str) -> bool:
    """Whether `text` is the beginning of a valid time."""
    if not _TIME.fullmatch(text):
        return False
    begun = text.rstrip("Z").replace(" ", "T")
    day, _, hour = begun.partition("T")
    whole = day + "0000-01-01"[len(day) :] + "T" + hour.replace("-", ":") + "00:00:00"[len(hour) :]
    try:
        datetime.fromisoformat(whole)
    except ValueError:
        return False
    return True


def against(workspace: Path, study: AnyStudy, entry: str, rows: Rows, origins: Origins) -> Rows:
    """The verdicts in the audits of `rows` that turned since `entry`, with `_then` beside `_now`, and why.

    Args:
        workspace: The workspace's folder.
        study: Whose.
        entry: As `find_entry` returns it.
        rows: What the lake holds now of the audits that are asked for.
        origins: What these were made from.
    """

    def by_place(rows: Rows) -> dict[tuple[str, ...], Row]:
        return {tuple(row[name] for name in study.identity): row for row in _measured(study, rows) if study.gated(row)}

    then, now = by_place(rows_at(workspace, study, entry)), by_place(rows)
    before_origins = origins_at(workspace, study, entry)
    asked = {tuple(row[name] for name in study.axes) for row in rows}
    found = []
    for place in dict.fromkeys([*now, *(place for place in then if place[: len(study.axes)] in asked)]):
        before, after = then.get(place, {}), now.get(place, {})
        if before.get("verdict") == after.get("verdict"):
            continue
        row: Row = dict(zip(study.identity, place, strict=True))
        for name in _COMPARED:
            row[f"{name}_then"], row[f"{name}_now"] = before.get(name), after.get(name)
        row["verdict_then"], row["verdict_now"] = (said(own) if own else None for own in (before, after))
        found.append({**row, "why": _why(before_origins, origins, study, row, before, after)})
    return found


def _why(then: Origins, now: Origins, study: AnyStudy, row: Row, before: Row, after: Row) -> str:
    if not before or not after:
        return "not measured then" if after else "not measured now"
    found = why(then, now, label(study.table, {axis: row[axis] for axis in study.axes}))
    return "; ".join(found) or "not known: the entry is of an earlier version"
