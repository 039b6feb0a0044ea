"""Reads baselines, the results of earlier runs, from the history or from a small file that CI keeps and may sign."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.gaps import ON_A, PAIR, gaps_table
from fairness_pipeline.reporting.history import entries, find_entry, gaps_at, last_not_refused, rows_at
from fairness_pipeline.reporting.results import Audit, flat
from fairness_pipeline.workspace.lake import Lake, Row
from fairness_pipeline.workspace.signatures import check_signature

_DIGITS = 6
"""The digits of a pair's difference that a file keeps."""


class Earlier(NamedTuple):
    """The results of an earlier run for one study: its rows, and the pairs behind them if it kept them."""

    name: str
    rows: list[Row]
    gaps: pa.Table | None


class _OfStudy(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: list[dict[str, Any]]
    gaps: dict[str, list[Annotated[str | int | float | bool | None, Field(union_mode="left_to_right")]]]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    fairness_pipeline: str
    profile: str
    made: str
    studies: dict[str, _OfStudy]


def write_baseline(path: Path, project: Project, lake: Lake, audits: Iterable[tuple[AnyStudy, Audit]]) -> None:
    """Writes the present results into a file with which later runs are compared."""
    by_study: dict[str, list[Audit]] = {}
    for study, audit in audits:
        if audit.measured:
            by_study.setdefault(study.name, []).append(audit)
    studies = {}
    for study in project.studies:
        of_study = by_study.get(study.name, [])
        pairs = gaps_table(study, project, lake, of_study)
        rows = [row for row in flat(study, of_study) if study.gated(row)]
        studies[study.name] = {"rows": rows, "gaps": _columns(pairs) if pairs is not None else {}}
    content = {
        "fairness_pipeline": version("fairness-pipeline"),
        "profile": project.name,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "studies": {name: kept for name, kept in studies.items() if kept["rows"]},
    }
    write_text(path, json.dumps(content, separators=(",", ":"), default=str))


def named_with_hash(baseline: str) -> str:
    """Returns a baseline's name, and the SHA-256 of its bytes if it is a file."""
    path = Path(baseline)
    return f"{path.name} (SHA-256 {checksum(path)})" if path.is_file() else baseline


def find_baseline(
    project: Project, baseline: str, key: Path | None = None, *, gated: bool = False
) -> Callable[[AnyStudy], Earlier]:
    """Finds an earlier run before the next one begins; returns a function that gives its results for a study.

    Args:
        project: The profile.
        baseline: A file that `write_baseline` wrote; `previous`, the last run that is kept; or the time of one.
        key: The public key of whoever must have signed the file.
        gated: Whether a gate closes on what became worse; `previous` is then the last run that closed no gate.

    Raises:
        FairnessError: there is no such file or run; the file is no baseline, or is not signed with the key; or it
            lacks the study.
    """
    path = Path(baseline)
    if path.suffix == ".json" or path.is_file():
        return partial(_of_file, path, _read(path, key))
    if key:
        raise FairnessError(f"--baseline-key: the signature is that of a file, and '{baseline}' is none")
    workspace, entry_of = project.workspace, {}
    for study in project.studies:
        known = entries(workspace, study)
        if known and baseline == "previous":
            entry = last_not_refused(workspace, study) if gated else known[-1]
        else:
            entry = find_entry(workspace, study, baseline, [], "--baseline") if known else None
        if entry:
            entry_of[study.name] = entry
    if not entry_of:
        which = "run that passed, or had no gate," if gated and baseline == "previous" else "run"
        raise FairnessError(f"--baseline {baseline}: no {which} is kept yet; run once without, or name a file")
    return partial(_of_run, workspace, entry_of)


def _of_file(path: Path, content: "_File", study: AnyStudy) -> Earlier:
    if study.name not in content.studies:
        held = ", ".join(content.studies) or "nothing"
        raise FairnessError(f"--baseline: {path}: holds nothing of {study.name}; it holds {held}")
    of_study = content.studies[study.name]
    return Earlier(f"{path.name}, made {content.made}", of_study.rows, _table(path, of_study.gaps))


def _of_run(workspace: Path, entry_of: dict[str, str], study: AnyStudy) -> Earlier:
    if study.name not in entry_of:
        raise FairnessError(f"--baseline: no run of {study.name} is kept yet; run it once without")
    entry = entry_of[study.name]
    rows, pairs = rows_at(workspace, study, entry), gaps_at(workspace, study, entry)
    return Earlier(f"the run of {entry}", rows, pairs)


def _columns(pairs: pa.Table) -> dict[str, list[Any]]:
    """Returns the columns of a table; numbers are rounded, so that the file stays small."""
    return {
        name: [
            None if value is None else float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
            for value in pairs[name].to_pylist()
        ]
        for name in pairs.column_names
    }


def _table(path: Path, columns: dict[str, list[Any]]) -> pa.Table | None:
    if not columns:
        return None
    try:
        kinds = {PAIR: pa.int64(), ON_A: pa.bool_()}
        return pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise FairnessError(f"{path}: the pairs are damaged ({str(error).splitlines()[0]}); write it anew") from None


def _read(path: Path, key: Path | None) -> _File:
    try:
        content = check_signature(path, key) if key else path.read_bytes()
        return _File.model_validate_json(content)
    except OSError as error:
        raise FairnessError(f"--baseline: {path}: cannot be read: {error.strerror}; check the path") from None
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the file"
        raise FairnessError(
            f"--baseline: {path}: expected a file that --write-baseline wrote; {location}: {first['msg']}"
        ) from None
