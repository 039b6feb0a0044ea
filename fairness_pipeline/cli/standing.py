"""Tracks which audits of a plan are complete, so that a study's verdicts are printed as soon as possible."""

from fairness_pipeline.lineage.plan import Outcome, Plan, Step
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import Audit, audits_of
from fairness_pipeline.workspace.lake import partition_name


class Standing:
    """Tracks which audits of a plan are complete."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._left = {step.partition_id for step in plan.stale if not plan.lineage.assets[step.name].tolerant}
        self._lost: set[tuple[str, str]] = set()
        self._waiting = {
            study.name: {step.partition_id for step in self._without_base(study) if step.reason}
            for study in plan.project.studies
        }

    def that_stand_now(self, outcome: Outcome) -> list[tuple[AnyStudy, list[Audit]]]:
        """Returns a study with its audits of subjects without a base, once the last of them is made.

        It returns nothing at the very end of the plan, when all audits are printed anyway.
        """
        partition = outcome.step.partition_id
        self._left.discard(partition)
        if outcome.lost:
            self._lost.add(partition)
        for study in self._plan.project.studies:
            waiting = self._waiting[study.name]
            if partition in waiting:
                waiting.discard(partition)
                audits = self._audits(study, self._without_base(study)) if not waiting and self._left else []
                return [(study, audits)] if audits else []
        return []

    def of_all(self) -> list[tuple[AnyStudy, list[Audit]]]:
        """Returns every study with all audits of the plan, except those that were lost."""
        by_study = [(study, self._audits(study, self._steps(study))) for study in self._plan.project.studies]
        return [(study, audits) for study, audits in by_study if audits]

    def _steps(self, study: AnyStudy) -> list[Step]:
        return [step for step in self._plan.steps if step.name == study.table]

    def _without_base(self, study: AnyStudy) -> list[Step]:
        part = self._plan.project.parts[study.name]
        return [step for step in self._steps(study) if part.base_of(step.key) is None]

    def _audits(self, study: AnyStudy, steps: list[Step]) -> "list[Audit]":
        names = {partition_name(step.key) for step in steps if step.partition_id not in self._lost}
        audits = audits_of(study, self._plan.project.parts[study.name], self._plan.lake)
        return [audit for audit in audits if partition_name(audit.key) in names]
