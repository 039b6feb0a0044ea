"""Marks the runs whose process is gone. A killed process cannot say that its run has ended.

Dagster would count such a run as in progress for ever, against the number of runs that may run at once.
"""

import os
import socket
import subprocess
import time
from functools import cache

import dagster as dg

PROCESS = "fairness_pipeline/process"
"""The tag of a run that says which process makes it."""
PARENT = "FAIRNESS_PARENT_RUN"
"""The environment variable with the run that called the command."""
_UNFINISHED = [
    dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING
]  # fmt: skip
_LONG, _TO_START = 24 * 3600.0, 600.0  # seconds
_ENDED = "its process ended before the run did; run again: what was made stands"


def process_tag() -> dict[str, str]:
    """The tag of a run that says which process makes it: host, process id, and when that process started."""
    return {PROCESS: _own(os.getpid())}


def command_tags() -> dict[str, str]:
    """The tags of a run of the command: its process, and the run that called the command, if one did."""
    parent = os.environ.get(PARENT)
    return process_tag() | ({"fairness_pipeline/called_by": parent} if parent else {})


def mark_ended(instance: dg.DagsterInstance) -> int:
    """Marks the unfinished runs of this host whose process is gone as failed; returns how many."""
    marked = 0
    for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
        if not _is_gone(record.dagster_run, record.update_timestamp.timestamp()):
            continue
        run = instance.get_run_by_id(record.dagster_run.run_id)
        if run is None or run.is_finished:  # meanwhile
            continue
        if run.status == dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, _ENDED)
        else:
            instance.report_run_failed(run, _ENDED)
        marked += 1
    return marked


def is_alive(described: str) -> bool:
    """Whether the process still runs; one of another host counts as running, as nothing is known of it."""
    host, number, _ = described.split(" ", 2)
    return host != socket.gethostname() or _described(int(number)) == described


def process_number(described: str) -> int:
    """The process id."""
    return int(described.split(" ", 2)[1])


def _is_gone(run: dg.DagsterRun, updated: float) -> bool:
    described = run.tags.get(PROCESS)
    if not described:  # it is starting, or of an earlier release
        return time.time() - updated > (_TO_START if run.status == dg.DagsterRunStatus.STARTING else _LONG)
    return not is_alive(described)


@cache
def _own(number: int) -> str:
    return _described(number)


def _described(number: int) -> str:
    """A process, told apart from a later one with the same number by the time at which it started."""
    try:
        asked = ["ps", "-o", "lstart=", "-p", str(number)]
        started = subprocess.run(
            asked, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        )
        when = " ".join(started.stdout.split()) or "ended"
    except OSError:  # there is no `ps`
        when = "started" if _exists(number) else "ended"
    return f"{socket.gethostname()} {number} {when}"


def _exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
