"""Keeps Dagster's records and the history from growing without end."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import dagster as dg
from sqlalchemy import func, select

from fairness_pipeline.defs.dagster_internals import SqlEventLogStorage, SqlEventLogStorageTable
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting import history

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def prune(project: Project, instance: dg.DagsterInstance) -> int:
    """Deletes runs that ended, with their events and what they printed, and entries of the history, beyond what the
    profile keeps (`records`).

    The last run of each partition stays, because Dagster reads the partition and its checks from it.

    Returns:
        How many runs were deleted.
    """
    limits = project.profile.records
    history.prune(project.workspace, project.studies, limits.history)
    newest = instance.get_run_ids(limit=limits.runs)
    beyond = (
        instance.get_run_ids(dg.RunsFilter(statuses=_ENDED), cursor=newest[-1]) if len(newest) == limits.runs else []
    )
    before = datetime.now(UTC) - timedelta(days=limits.days)
    old = instance.get_run_ids(dg.RunsFilter(statuses=_ENDED, created_before=before))
    runs = dict.fromkeys([*beyond, *old])
    if not runs:
        return 0
    last = _last_of_each_partition(instance)
    deleted = [run_id for run_id in runs if run_id not in last]
    for run_id in deleted:
        instance.delete_run(run_id)
        with suppress(OSError):  # another command may be deleting the same
            instance.compute_log_manager.delete_logs(prefix=[run_id])
    return len(deleted)


def _last_of_each_partition(instance: dg.DagsterInstance) -> set[str]:
    """The runs of the last materialization of each partition."""
    storage = instance.event_log_storage
    assert isinstance(storage, SqlEventLogStorage)
    events = SqlEventLogStorageTable.c
    is_materialization = events.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value
    last = select(func.max(events.id)).where(is_materialization).group_by(events.asset_key, events.partition)
    with storage.index_connection() as connection:
        return set(connection.execute(select(events.run_id).where(events.id.in_(last))).scalars())
