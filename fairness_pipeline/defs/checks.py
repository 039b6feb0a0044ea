"""Asset checks on the tables of verdicts, so that the marks in Dagster's UI mean something.

Both only warn: a biased model is a finding and not a failure, and what is out of date is not wrong.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.workspace.lake import Lake

UP_TO_DATE, NOT_BIASED = "up_to_date", "no_verdict_is_biased"
_SHOWN = 20


def checks(shown: Shown) -> list[dg.AssetChecksDefinition]:
    """Two checks of every study's table of verdicts."""
    project = shown.lineage.project
    made = {recipe.name for recipe in shown.recipes}
    return [
        _check(project.name, study.name, name, description)
        for study in project.studies
        if study.table in made
        for name, description in (
            (UP_TO_DATE, "Whether every partition that `run` makes by default is made, and up to date."),
            (NOT_BIASED, "Whether no verdict is `biased`. The report says how much each verdict can be trusted."),
        )
    ]


def evaluations(lineage: Lineage, versions: Versions) -> Iterator[dg.AssetCheckEvaluation]:
    """What the checks say now."""
    for study in lineage.project.studies:
        if lineage.keys(study.table):
            for name, found in ((UP_TO_DATE, _outdated(study, versions)), (NOT_BIASED, _biased(study, lineage))):
                yield dg.AssetCheckEvaluation(
                    asset_key=dg.AssetKey(study.table),
                    check_name=name,
                    passed=not found,
                    severity=dg.AssetCheckSeverity.WARN,
                    metadata=_metadata(found),
                )


def _check(profile: str, study: str, name: str, description: str) -> dg.AssetChecksDefinition:
    table = next(own.table for own in Project(profile).studies if own.name == study)

    @dg.asset_check(asset=table, name=name, description=description)
    def check() -> dg.AssetCheckResult:
        lineage = Lineage(Project(profile))
        own = next(own for own in lineage.project.studies if own.name == study)
        found = _outdated(own, Versions(lineage)) if name == UP_TO_DATE else _biased(own, lineage)
        return dg.AssetCheckResult(passed=not found, severity=dg.AssetCheckSeverity.WARN, metadata=_metadata(found))

    return check


def _outdated(study: AnyStudy, versions: Versions) -> list[str]:
    return [
        f"{partition}: {reason}".strip(": ")
        for (name, partition), reason in versions.stale.items()
        if name == study.table
    ]


def _biased(study: AnyStudy, lineage: Lineage) -> list[str]:
    part, lake = lineage.project.parts[study.name], Lake(lineage.project.workspace)
    return [
        study.finding(part, audit.key, row)
        for audit in audits_of(study, part, lake)
        for row in audit.rows
        if study.gated(row) and row["verdict"] == "biased"
    ]


def _metadata(found: list[str]) -> dict[str, Any]:
    shown = "\n".join(f"- {line}" for line in found[:_SHOWN])
    return {"count": len(found)} | ({"found": dg.MetadataValue.md(shown)} if found else {})
