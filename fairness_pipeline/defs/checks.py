"""Asset checks on the tables of verdicts, which give the marks in Dagster's UI a meaning.

Both only warn: a biased model is a finding and not a failure, and what is out of date is not wrong.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from fairness_pipeline.defs.metadata import harmless
from fairness_pipeline.defs.names import Names
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.answers import answer_ages
from fairness_pipeline.reporting.results import Audit, audits_of, could_be_biased
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Lake

_SHOWN = 20


def checks(shown: Shown) -> list[dg.AssetChecksDefinition]:
    """Returns two checks of every study's table of verdicts."""
    with_partitions = {asset.name for asset in shown.assets}
    studies = [study for study in shown.lineage.project.studies if study.table in with_partitions]
    return [_check(shown, study, name) for study in studies for name in _CHECKS]


def evaluations(lineage: Lineage, versions: Versions, names: Names) -> Iterator[dg.AssetCheckEvaluation]:
    """Yields the present evaluations of the checks."""
    for study in lineage.project.studies:
        for name in _CHECKS if lineage.keys(study.table) else ():
            evaluation = _evaluate(name, study, lineage, versions)
            yield dg.AssetCheckEvaluation(asset_key=names.asset(study.table), check_name=name, **evaluation)


def _check(shown: Shown, study: AnyStudy, name: str) -> dg.AssetChecksDefinition:
    profile = shown.lineage.project.name

    @dg.asset_check(asset=shown.names.asset(study.table), name=name, description=_CHECKS[name].__doc__)
    def check() -> dg.AssetCheckResult:
        lineage = Lineage(Project(profile))  # as the files are now
        return dg.AssetCheckResult(**_evaluate(name, study, lineage, Versions(lineage)))

    return check


def _outdated(study: AnyStudy, lineage: Lineage, versions: Versions) -> list[str]:
    """Whether every partition that `run` makes by default is made, and up to date."""
    stale = versions.stale.items()
    return [f"{partition}: {reason}".strip(": ") for (name, partition), reason in stale if name == study.table]


def _biased(study: AnyStudy, lineage: Lineage, versions: Versions) -> list[str]:
    """Whether there are verdicts that could be `biased` or `differs`, and none is; and how old the answers are.

    The report says how much each verdict can be trusted.
    """
    part = lineage.project.parts[study.name]
    rows = [(audit, row) for audit in _audits(study, lineage) for row in audit.rows if study.gated(row)]
    if not rows:
        return ["no verdict yet: nothing is measured, or what is measured has nothing to judge"]
    if not any(could_be_biased(row) for _, row in rows):
        return ["no verdict could have been biased: nothing was seen, or there is too little to tell"]
    return [study.finding(part, audit.key, row) for audit, row in rows if row["verdict"] in FINDINGS]


def _audits(study: AnyStudy, lineage: Lineage) -> list[Audit]:
    audits = audits_of(study, lineage.project.parts[study.name], Lake(lineage.project.workspace))
    return [audit for audit in audits if audit.measured and not audit.degenerate]


_CHECKS = {"up_to_date": _outdated, "no_verdict_is_biased": _biased}


def _evaluate(name: str, study: AnyStudy, lineage: Lineage, versions: Versions) -> dict[str, Any]:
    findings = _CHECKS[name](study, lineage, versions)
    metadata = {"found": _listed(findings[:_SHOWN])} if findings else {}
    if name == "no_verdict_is_biased":
        audits = [(study, audit) for audit in _audits(study, lineage)]
        ages = list(answer_ages(lineage, Lake(lineage.project.workspace), audits))
        metadata |= {"answers": _listed(ages)} if ages else {}
    return {
        "passed": not findings,
        "severity": dg.AssetCheckSeverity.WARN,
        "metadata": {"count": len(findings)} | metadata,
    }


def _listed(lines: list[str]) -> dg.MetadataValue[str]:
    return dg.MetadataValue.md(harmless("\n".join(f"- {line}" for line in lines)))
