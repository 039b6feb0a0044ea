"""Makes the steps of one partition as one recorded Dagster run."""

import dagster as dg

from fairness_pipeline.defs import partitions
from fairness_pipeline.defs.assets import LEFT_ALONE, ONLY_IF_STALE
from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.processes import command_tags
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.units import StepResult, Unit
from fairness_pipeline.project.project import Project


class Maker:
    """Makes units of a profile in this process; definitions and libraries are loaded once."""

    def __init__(self, project: Project, instance: dg.DagsterInstance, listener: Listener) -> None:
        self._instance = instance
        self._lineage = Lineage(project)
        self._repository = definitions(project, listener=listener, everything=True).get_repository_def()

    def make(self, unit: Unit) -> list[StepResult]:
        """Returns the result of each step; raises KeyboardInterrupt if the run was interrupted."""
        keys = [dg.AssetKey(name) for name in unit.names]
        job = self._repository.get_implicit_job_def_for_assets(keys)
        assert job is not None
        result = job.execute_in_process(
            instance=self._instance,
            partition_key=partitions.to_dagster(unit.key),
            asset_selection=keys,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            tags=command_tags() | ({} if unit.force else {ONLY_IF_STALE: "true"}),
        )
        failures = [event for event in result.all_events if event.is_step_failure]
        if any(map(_interrupted, failures)):
            raise KeyboardInterrupt  # Dagster reports a failed step and returns
        errors = {event.step_key: _error(event) for event in failures}
        seconds = {
            event.step_key: event.step_success_data.duration_ms / 1000
            for event in result.all_events
            if event.is_step_success
        }
        left_alone = {
            event.asset_key.to_user_string()
            for event in result.all_events
            if event.is_step_materialization and event.asset_key and LEFT_ALONE in event.materialization.metadata
        }
        results, lost = [], set(errors)
        for name in unit.names:
            if name in seconds:
                results.append(StepResult(name, "unchanged" if name in left_alone else "made", seconds=seconds[name]))
            elif name in errors:
                results.append(StepResult(name, "failed", errors[name]))
            else:
                missing = next((source for source in self._lineage.assets[name].sources if source in lost), None)
                results.append(StepResult(name, "skipped", f"needs {missing or 'what failed before'}"))
                lost.add(name)
        return results


def _interrupted(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error
    while error is not None:
        if error.cls_name in ("DagsterExecutionInterruptedError", "KeyboardInterrupt"):
            return True
        error = error.cause
    return False


def _error(event: dg.DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error else "failed"
