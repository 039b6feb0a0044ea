"""A run whose process was killed is marked as failed; one whose process lives is left alone."""

import signal
import subprocess
import sys

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.processes import PROCESS, _signs, is_alive, mark_ended, process_tag
from fairness_pipeline.foundation.processes import process_number
from fairness_pipeline.project.project import Project

_SAYS_WHO = "from fairness_pipeline.defs.processes import *; import time; print(*process_tag().values(), flush=True); time.sleep(60)"


def test_only_runs_whose_process_is_gone_are_marked(tiny: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    other = subprocess.Popen([sys.executable, "-c", _SAYS_WHO], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    described = other.stdout.readline().strip()
    host, number, _ = described.split(" ", 2)
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # as of a service that runs elsewhere
    tags = {
        "mine": process_tag()[PROCESS],
        "other": described,
        "elsewhere": described.replace(host, "another-host/abcdef", 1),
        "gone elsewhere": described.replace(host, "a-third-host/abcdef", 1),
        "number used again": f"{host} {number} 1",
    }
    started = dg.DagsterRunStatus.STARTED
    with open_instance(tiny) as instance:
        runs = {
            name: create_run_for_test(instance, status=started, tags={PROCESS: tag}).run_id
            for name, tag in tags.items()
        }
        runs["says nothing"] = create_run_for_test(instance, status=started).run_id
        _signs(tiny.workspace, tags["elsewhere"]).touch()
        assert is_alive(described, tiny.workspace)
        assert is_alive(tags["mine"], tiny.workspace)
        assert process_number(described) == other.pid
        assert mark_ended(instance, tiny.workspace) == 2
        other.send_signal(signal.SIGKILL)
        other.communicate()
        assert mark_ended(instance, tiny.workspace) == 1
        assert mark_ended(instance, tiny.workspace) == 0
        status = {name: instance.get_run_by_id(run).status for name, run in runs.items()}
    failed = {name for name, own in status.items() if own == dg.DagsterRunStatus.FAILURE}
    assert failed == {"other", "number used again", "gone elsewhere"}
