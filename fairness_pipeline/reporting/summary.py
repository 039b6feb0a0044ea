"""Writes and reads the summary of a run, one file to sign: its verdicts, and the hashes of all files behind them."""

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.foundation.plain_text import visible
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.reporting.audited import Audited, audited_by
from fairness_pipeline.reporting.results import audits_of, flat, shown_verdict
from fairness_pipeline.reporting.rule import Gate
from fairness_pipeline.workspace.imports import Import, sealed_imports
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.signatures import summary_of

_LONGEST_ERROR = 300
_VALUES = ("value_a", "value_b", "difference")
_COLUMNS = ("verdict", *_VALUES, "p_holm")


_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]*$")]
_Value = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00-\x1f]+$")]


class Signed(BaseModel):
    """A partition, and the hash of all bytes of its files."""

    asset: _Name
    key: dict[_Name, _Value]
    sha256: str | None


class Summary(BaseModel):
    """The signed content. Its verdicts are those that count: the ones that `run` shows and a gate looks at."""

    fairness_pipeline: str
    profile: _Name
    made: datetime
    gate: Gate
    audited: list[Audited] = []
    imports: list[Import] = []
    verdicts: list[dict[str, Any]]
    partitions: list[Signed]


def write_summary(plan: Plan, gate: Gate) -> Path:
    """Writes `signed/summary.json` in the workspace, and returns its path."""
    project, lake = plan.project, plan.lake
    verdicts, audited = [], []
    for study in project.studies:
        audits = [
            audit
            for audit in audits_of(study, project.parts[study.name], lake)
            if plan.selection.covers(study, project, audit.key)
        ]
        audited += [audited_by(plan.lineage, lake, study, audit.key) for audit in audits if audit.measured]
        names = dict.fromkeys((*study.identity, *_COLUMNS))
        for row in filter(study.gated, flat(study, audits)):
            decisive = study.decisive(row)
            row = {**row, **{name: decisive[name] for name in _VALUES}}
            values = {name: row[name] for name in names if row.get(name) is not None}
            verdicts.append({"study": study.name, **values, "verdict": shown_verdict(row)})
    summary = Summary(
        fairness_pipeline=version("fairness-pipeline"),
        profile=project.name,
        made=datetime.now(UTC).replace(microsecond=0),
        gate=gate,
        audited=audited,
        imports=sealed_imports(project.workspace),
        verdicts=verdicts,
        partitions=[
            Signed(asset=step.name, key=step.key, sha256=lake.bytes_of(step.name, step.key)) for step in plan.steps
        ],
    )
    path = summary_of(project.workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, summary.model_dump_json(indent=1) + "\n")
    return path


def parsed_summary(content: bytes, path: Path) -> Summary:
    """Returns the summary that a file holds.

    Raises:
        FairnessError: the file holds no summary.
    """
    try:
        return Summary.model_validate_json(content)
    except ValueError as error:
        wrong = visible(" ".join(str(error).split())[:_LONGEST_ERROR])
        raise FairnessError(
            f"{path}: no summary of a run: {wrong}; name the summary.json of run --sign, or the manifest.json of a pack"
        ) from None


def differences(summary: Summary, lake: Lake) -> list[str]:
    """Returns a line for each partition of a summary that has changed since or is missing."""
    lines = []
    for signed in summary.partitions:
        if lake.bytes_of(signed.asset, signed.key) != signed.sha256:
            problem = "was changed, or made anew, since" if lake.has(signed.asset, signed.key) else "is not here"
            lines.append(f"{' '.join([signed.asset, *signed.key.values()])}: {problem}")
    return lines
