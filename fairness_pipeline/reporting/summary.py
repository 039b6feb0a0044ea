"""A run in one file, to sign and to hand to others: its verdicts, and the hashes of all that they were made from."""

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.reporting.results import audits_of, flat
from fairness_pipeline.workspace.lake import Key, Lake

_SHOWN = ("verdict", "value_a", "value_b", "difference", "p_holm")


def write_summary(plan: Plan, gate: dict[str, Any]) -> Path:
    """Writes `signed/summary.json` in the workspace, and returns its path.

    Args:
        plan: What was run.
        gate: What was asked of the verdicts, and the exit status.
    """
    project, lake = plan.project, plan.lake
    verdicts = []
    for study in project.studies:
        audits = [
            audit
            for audit in audits_of(study, project.parts[study.name], lake)
            if plan.selection.covers(study, project, audit.key)
        ]
        names = dict.fromkeys((*study.identity, *_SHOWN))
        for row in flat(study, audits):
            verdicts.append({"study": study.name, **{name: row[name] for name in names if row.get(name) is not None}})
    summary = {
        "fairness_pipeline": version("fairness-pipeline"),
        "profile": project.name,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "gate": gate,
        "verdicts": verdicts,
        "partitions": [
            {"asset": step.name, "key": step.key, "content": lake.content(step.name, step.key)} for step in plan.steps
        ],
    }
    path = project.workspace / "signed" / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(summary, indent=1, default=str) + "\n", encoding="utf-8")
    return path


def differences(summary: dict[str, Any], lake: Lake) -> list[str]:
    """Which partitions of a summary the lake does not hold as they were then, a line each."""
    found = []
    for own in summary["partitions"]:
        key: Key = own["key"]
        if lake.content(own["asset"], key) != own["content"]:
            problem = "was made anew since" if lake.has(own["asset"], key) else "is not here"
        else:
            problem = lake.verify(own["asset"], key) or ""
        if problem:
            found.append(f"{' '.join([own['asset'], *key.values()])}: {problem}")
    return found
