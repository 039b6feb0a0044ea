"""Keeps the significance tables and reports of earlier runs, by time, for comparison with new runs."""

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
from fairness_pipeline.foundation.files import replacing, write_text
from fairness_pipeline.foundation.parquet import read_parquet, write_parquet
from fairness_pipeline.lineage.origins import Origins, label, why
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import shown_verdict
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
        study: The study.
        rows: All rows of the study that the lake holds now.
        report: The report's HTML.
        now: The time, UTC.
        origins: The inputs of the tables.
        gaps: Gives the pairs, as `reporting.gaps.gaps_table` does; called only if something is kept.
    """
    rows = _measured(study, rows)
    known = entries(workspace, study)
    if not rows or (known and _same(workspace, study, known[-1], rows)):
        return
    while (workspace / "history" / now.strftime(_FORMAT) / f"{study.table}.parquet").exists():
        now += timedelta(seconds=1)  # two small runs can end in one second
    folder = workspace / "history" / now.strftime(_FORMAT)
    write_text(folder / f"{study.report}.html", report)
    with replacing(folder / f"{study.table}{_ORIGINS}") as temporary:
        temporary.write_bytes(gzip.compress(json.dumps(origins or {}).encode(), mtime=0))
    if (pairs := gaps()) is not None:
        with replacing(folder / f"{study.table}{_GAPS}") as temporary:
            write_parquet(pairs, temporary)
    with replacing(folder / f"{study.table}.parquet") as temporary:  # last: an entry without it does not count
        write_parquet(pa.Table.from_pylist(rows), temporary)


def prune(workspace: Path, studies: Iterable[AnyStudy], count: int) -> int:
    """Deletes the oldest entries beyond `count`, except the last two of each study; returns how many were deleted."""
    folders = sorted(path for path in (workspace / "history").glob("*") if path.is_dir())
    protected = {entry for study in studies for entry in entries(workspace, study)[-2:]}
    expired = [path for path in folders[:-count] if path.name not in protected]
    for path in expired:
        shutil.rmtree(path, ignore_errors=True)  # another command may be doing the same
    return len(expired)


def _measured(study: AnyStudy, rows: Rows) -> Rows:
    """Returns the rows that hold a measurement."""
    return [row for row in rows if row.get(study.identity[len(study.axes)]) is not None]


def _read_table(path: Path) -> pa.Table:
    try:
        return read_parquet(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise FairnessError(f"{path}: damaged ({str(error).splitlines()[0]}); delete its folder") from None


def rows_at(workspace: Path, study: AnyStudy, entry: str) -> Rows:
    """Returns the significance tables of an entry."""
    stored = _read_table(workspace / "history" / entry / f"{study.table}.parquet").to_pylist()
    rows: Rows = [{**row, **study.older, **row} for row in stored]
    return rows


def gaps_at(workspace: Path, study: AnyStudy, entry: str) -> pa.Table | None:
    """Returns the pairs behind the tables of an entry; None if it kept none."""
    path = workspace / "history" / entry / f"{study.table}{_GAPS}"
    return _read_table(path) if path.exists() else None


def origins_at(workspace: Path, study: AnyStudy, entry: str) -> Origins:
    """Returns the inputs of the tables of an entry; empty for entries of earlier versions."""
    path = workspace / "history" / entry / f"{study.table}{_ORIGINS}"
    if not path.exists():
        return {}
    try:
        with gzip.open(path) as stream:
            origins: Origins = json.load(stream)
    except (OSError, ValueError, EOFError) as error:
        raise FairnessError(f"{path}: damaged ({str(error).splitlines()[0]}); delete it") from None
    return origins


def _same(workspace: Path, study: AnyStudy, entry: str, rows: Rows) -> bool:
    try:
        return rows_at(workspace, study, entry) == _as_kept(rows)
    except FairnessError:  # damaged: the present rows are kept beside it
        return False


def _as_kept(rows: Rows) -> Rows:
    """The rows as `rows_at` returns them: with the columns of the first row."""
    return [{name: row.get(name) for name in rows[0]} for row in rows]


def entries(workspace: Path, study: AnyStudy) -> list[str]:
    """Returns the times of a study's entries, oldest first."""
    return sorted(path.parent.name for path in (workspace / "history").glob(f"*/{study.table}.parquet"))


def note_refusal(workspace: Path, study: AnyStudy, keys: Iterable[Key]) -> None:
    """Records beside the last entry which of its audits have closed a gate."""
    if known := entries(workspace, study):
        write_text(workspace / "history" / known[-1] / f"{study.table}{_REFUSED}", json.dumps([*keys]))


def last_not_refused(workspace: Path, study: AnyStudy) -> str | None:
    """Returns the last entry without an audit that closed a gate, or that has the same rows; None if there is none.

    A gate that is tried again must not take the results that it has just refused for the run before.
    """
    refused = []
    for path in sorted((workspace / "history").glob(f"*/{study.table}{_REFUSED}")):
        rows = rows_at(workspace, study, path.parent.name)
        refused += [_rows_of_audit(rows, key) for key in json.loads(path.read_bytes())]
    for entry in reversed(entries(workspace, study)):
        rows = rows_at(workspace, study, entry) if refused else []
        if not any(
            audit == _rows_of_audit(rows, {axis: audit[0][axis] for axis in study.axes}) for audit in refused if audit
        ):
            return entry
    return None


def _rows_of_audit(rows: Rows, key: Key) -> Rows:
    return [row for row in rows if all(row[axis] == value for axis, value in key.items())]


def time_of(entry: str) -> str:
    """Returns the time of an entry, for readers: `2026-11-24 08:30 UTC`."""
    return f"{datetime.strptime(entry, _FORMAT):%Y-%m-%d %H:%M} UTC"


def find_entry(workspace: Path, study: AnyStudy, name: str, rows: Rows, option: str = "--against") -> str:
    """Returns the latest entry with a time that begins with `name`; without one, the latest entry before it.

    Args:
        workspace: The workspace's folder.
        study: The study.
        name: A time or its beginning; or `previous`, the last entry that differs from what the lake holds now.
        rows: All rows of the study that the lake holds now.
        option: The option that names it, for errors.

    Raises:
        FairnessError: there is none, or `name` is no time.
    """
    known = entries(workspace, study)
    if name == "previous":
        now = _as_kept(_measured(study, rows))
        matches = [*islice((entry for entry in reversed(known) if rows_at(workspace, study, entry) != now), 1)]
    elif _is_time(name):
        time = name.replace(":", "-").replace(" ", "T")
        matches = [entry for entry in known if entry.startswith(time) or entry < time]
    else:
        raise FairnessError(
            f"{option}: expected a time such as 2026-11-20 or 2026-11-20T08:30 (UTC), or 'previous', found '{name}'"
        )
    if not matches and name == "previous" and known:
        raise FairnessError(f"{option} previous: no kept run differs from the present tables")
    if not matches:
        raise FairnessError(f"{option} {name}: no such run is kept; kept: {', '.join(known) or 'none'}")
    return matches[-1]


def _is_time(text: str) -> bool:
    """Whether `text` is the beginning of a valid time."""
    if not _TIME.fullmatch(text):
        return False
    beginning = text.rstrip("Z").replace(" ", "T")
    day, _, hour = beginning.partition("T")
    completed = day + "0000-01-01"[len(day) :] + "T" + hour.replace("-", ":") + "00:00:00"[len(hour) :]
    try:
        datetime.fromisoformat(completed)
    except ValueError:
        return False
    return True


def against(workspace: Path, study: AnyStudy, entry: str, rows: Rows, origins: Origins) -> Rows:
    """Returns the verdicts in the audits of `rows` that turned since `entry`, with `_then` beside `_now`, and why.

    Args:
        workspace: The workspace's folder.
        study: The study.
        entry: As `find_entry` returns it.
        rows: The rows that the lake holds now of the selected audits.
        origins: The inputs of these rows.
    """

    def by_identity(rows: Rows) -> dict[tuple[str, ...], Row]:
        return {tuple(row[name] for name in study.identity): row for row in _measured(study, rows) if study.gated(row)}

    then, now = by_identity(rows_at(workspace, study, entry)), by_identity(rows)
    before_origins = origins_at(workspace, study, entry)
    audits = {tuple(row[name] for name in study.axes) for row in rows}
    turned = []
    for identity in dict.fromkeys([*now, *(identity for identity in then if identity[: len(study.axes)] in audits)]):
        before, after = then.get(identity, {}), now.get(identity, {})
        if before.get("verdict") == after.get("verdict"):
            continue
        row: Row = dict(zip(study.identity, identity, strict=True))
        for name in _COMPARED:
            row[f"{name}_then"], row[f"{name}_now"] = before.get(name), after.get(name)
        row["verdict_then"], row["verdict_now"] = (
            shown_verdict(run_row) if run_row else None for run_row in (before, after)
        )
        turned.append({**row, "why": _why(before_origins, origins, study, row, before, after)})
    return turned


def _why(then: Origins, now: Origins, study: AnyStudy, row: Row, before: Row, after: Row) -> str:
    if not before or not after:
        return "not measured then" if after else "not measured now"
    reasons = why(then, now, label(study.table, {axis: row[axis] for axis in study.axes}))
    return "; ".join(reasons) or "not known: the entry is of an earlier version"
