"""A run whose process was killed is marked as failed; one whose process lives is left alone."""

import signal
import subprocess
import sys

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.processes import PROCESS, _sign_file, is_alive, mark_ended, process_tag
from fairness_pipeline.foundation.processes import process_number
from fairness_pipeline.project.project import Project

_PRINTS_ITS_TAG = "from fairness_pipeline.defs.processes import *; import time; print(*process_tag().values(), flush=True); time.sleep(60)"


def test_only_runs_whose_process_is_gone_are_marked(tiny: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    another = subprocess.Popen([sys.executable, "-c", _PRINTS_ITS_TAG], stdout=subprocess.PIPE, text=True)
    assert another.stdout is not None
    other_tag = another.stdout.readline().strip()
    host, number, _ = other_tag.split(" ", 2)
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # as for a service with another time zone
    tags = {
        "mine": process_tag()[PROCESS],
        "other": other_tag,
        "elsewhere": other_tag.replace(host, "another-host/abcdef", 1),
        "gone elsewhere": other_tag.replace(host, "a-third-host/abcdef", 1),
        "number used again": f"{host} {number} 1",
    }
    started = dg.DagsterRunStatus.STARTED
    with open_instance(tiny) as instance:
        runs = {
            name: create_run_for_test(instance, status=started, tags={PROCESS: tag}).run_id
            for name, tag in tags.items()
        }
        runs["says nothing"] = create_run_for_test(instance, status=started).run_id
        _sign_file(tiny.workspace, tags["elsewhere"]).touch()
        assert is_alive(other_tag, tiny.workspace)
        assert is_alive(tags["mine"], tiny.workspace)
        assert process_number(other_tag) == another.pid
        assert mark_ended(instance, tiny.workspace) == 2
        another.send_signal(signal.SIGKILL)
        another.communicate()
        assert mark_ended(instance, tiny.workspace) == 1
        assert mark_ended(instance, tiny.workspace) == 0
        status = {name: instance.get_run_by_id(run).status for name, run in runs.items()}
    failed = {name for name, state in status.items() if state == dg.DagsterRunStatus.FAILURE}
    assert failed == {"other", "number used again", "gone elsewhere"}
