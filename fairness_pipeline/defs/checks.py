"""Asset checks on the tables of verdicts, so that the marks in Dagster's UI mean something.

Both only warn: a biased model is a finding and not a failure, and what is out of date is not wrong.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from fairness_pipeline.defs.metadata import harmless
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Lake

_SHOWN = 20


def checks(shown: Shown) -> list[dg.AssetChecksDefinition]:
    """Two checks of every study's table of verdicts."""
    made = {asset.name for asset in shown.assets}
    project = shown.lineage.project
    return [_check(project.name, study, own) for study in project.studies if study.table in made for own in _CHECKS]


def evaluations(lineage: Lineage, versions: Versions) -> Iterator[dg.AssetCheckEvaluation]:
    """What the checks say now."""
    for study in lineage.project.studies:
        for own in _CHECKS if lineage.keys(study.table) else ():
            said = _said(_CHECKS[own](study, lineage, versions))
            yield dg.AssetCheckEvaluation(asset_key=dg.AssetKey(study.table), check_name=own, **said)


def _check(profile: str, study: AnyStudy, name: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=study.table, name=name, description=_CHECKS[name].__doc__)
    def check() -> dg.AssetCheckResult:
        lineage = Lineage(Project(profile))  # as the files are now
        return dg.AssetCheckResult(**_said(_CHECKS[name](study, lineage, Versions(lineage))))

    return check


def _outdated(study: AnyStudy, lineage: Lineage, versions: Versions) -> list[str]:
    """Whether every partition that `run` makes by default is made, and up to date."""
    stale = versions.stale.items()
    return [f"{partition}: {reason}".strip(": ") for (name, partition), reason in stale if name == study.table]


def _biased(study: AnyStudy, lineage: Lineage, versions: Versions) -> list[str]:
    """Whether no verdict is `biased` or `differs`. The report says how much each verdict can be trusted."""
    part, lake = lineage.project.parts[study.name], Lake(lineage.project.workspace)
    return [
        study.finding(part, audit.key, row)
        for audit in audits_of(study, part, lake)
        if not audit.degenerate
        for row in audit.rows
        if study.gated(row) and row["verdict"] in FINDINGS
    ]


_CHECKS = {"up_to_date": _outdated, "no_verdict_is_biased": _biased}


def _said(found: list[str]) -> dict[str, Any]:
    shown = "\n".join(f"- {line}" for line in found[:_SHOWN])
    told = {"found": dg.MetadataValue.md(harmless(shown))} if found else {}
    return {"passed": not found, "severity": dg.AssetCheckSeverity.WARN, "metadata": {"count": len(found)} | told}
