"""Marks the runs whose process is gone, because a killed process cannot report the end of its run.

Dagster would count such a run as in progress for ever, against the limit of concurrent runs.
"""

import os
import time
from hashlib import sha256
from pathlib import Path

import dagster as dg

from fairness_pipeline.foundation.leases import is_fresh, keep_fresh
from fairness_pipeline.foundation.processes import PARENT, is_of_this_machine, is_running, this_process

PROCESS = "fairness_pipeline/process"
"""The tag of a run that says which process makes it."""
_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]  # fmt: skip
_LONG, _TO_START = 24 * 3600.0, 600.0  # seconds
_ENDED = "its process ended before the run did; run again: finished partitions are kept"


def show_signs_of_life(lake: Path) -> None:
    """Shows other machines that share the lake that this process is alive, as long as it is."""
    file = _sign_file(lake, this_process())
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        for left_over in file.parent.iterdir():
            if not is_fresh(left_over):
                left_over.unlink(missing_ok=True)
        file.touch()
    keep_fresh(file, again=True)


def process_tag() -> dict[str, str]:
    """The tag of a run that says which process makes it: machine, process id, and when that process started."""
    return {PROCESS: this_process()}


def command_tags() -> dict[str, str]:
    """The tags of a run of the command: its process, and the run that called the command, if one did."""
    parent = os.environ.get(PARENT)
    return process_tag() | ({"fairness_pipeline/called_by": parent} if parent else {})


def mark_ended(instance: dg.DagsterInstance, lake: Path) -> int:
    """Marks the unfinished runs whose process is gone as failed; returns how many.

    Args:
        instance: Holds the runs.
        lake: The workspace's folder, where processes of other machines show signs of life.
    """
    marked = 0
    for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
        if not _is_gone(record.dagster_run, record.update_timestamp.timestamp(), lake):
            continue
        run = instance.get_run_by_id(record.dagster_run.run_id)
        if run is None or run.is_finished:  # it ended meanwhile
            continue
        if run.status == dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, _ENDED)
        else:
            instance.report_run_failed(run, _ENDED)
        marked += 1
    return marked


def is_alive(described: str, lake: Path) -> bool:
    """Whether a process runs: one of this machine by its number, another by its signs of life."""
    if is_of_this_machine(described):
        return is_running(described)
    return is_fresh(_sign_file(lake, described))


def _is_gone(run: dg.DagsterRun, updated: float, lake: Path) -> bool:
    process = run.tags.get(PROCESS)
    if not process:  # it is starting, or of an earlier release
        return time.time() - updated > (_TO_START if run.status == dg.DagsterRunStatus.STARTING else _LONG)
    return not is_alive(process, lake)


def _sign_file(lake: Path, process: str) -> Path:
    return lake / "locks" / ".processes" / sha256(process.encode()).hexdigest()[:24]
