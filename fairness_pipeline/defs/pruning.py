"""Keeps Dagster's records and the history from growing without end."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from fairness_pipeline.defs.sync import forget_comparison
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting import history

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def prune(project: Project, instance: dg.DagsterInstance) -> int:
    """Deletes runs that ended, with their events and what they printed, and entries of the history, beyond what the
    profile keeps (`records`).

    What they made still stands in the lake: the next `sync` tells Dagster of it again, without the run.

    Args:
        project: The profile.
        instance: Dagster's.

    Returns:
        How many runs were deleted.
    """
    kept = project.profile.records
    history.prune(project.workspace, project.studies, kept.history)
    newest = instance.get_run_ids(limit=kept.runs)
    beyond = instance.get_run_ids(dg.RunsFilter(statuses=_ENDED), cursor=newest[-1]) if len(newest) == kept.runs else []
    before = datetime.now(UTC) - timedelta(days=kept.days)
    old = instance.get_run_ids(dg.RunsFilter(statuses=_ENDED, created_before=before))
    runs = list(dict.fromkeys([*beyond, *old]))
    for run_id in runs:
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    if runs:
        forget_comparison(instance)
    return len(runs)
