"""Partitions made on a Ray cluster: the same bytes, and whatever dies, the next run resumes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.processes import mark_ended
from fairness_pipeline.foundation.processes import process_number
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.commands import change, content, planned, process, run
from fairness_pipeline_tests.defs.test_workers import gone, training

pytestmark = pytest.mark.verify
LOCAL = ("--engine", "ray", "--address", "local")


def statuses(project: Project) -> set[str]:
    """The statuses of the recorded runs, after the check with which the next command begins."""
    with open_instance(project) as instance:
        mark_ended(instance, project.workspace)
        return {record.dagster_run.status.value for record in instance.get_run_records()}


def descendants(number: int) -> list[int]:
    """The children of a process, and their descendants."""
    output = subprocess.run(["pgrep", "-P", str(number)], capture_output=True, text=True).stdout
    children = [int(child) for child in output.split()]
    return [*children, *(grandchild for child in children for grandchild in descendants(child))]


def name(number: int) -> str:
    """The command line of a process."""
    try:
        return Path(f"/proc/{number}/cmdline").read_text()
    except FileNotFoundError:
        return ""


def test_the_same_bytes_on_a_cluster(
    tiny: Project, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"].update({"seq2seq-cda": {}}))
    run()
    alone = content(tiny.workspace)
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "ray"))
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(engine={"ray": {"address": "local"}}))
    on_ray = process("run", "--workers", "2")
    output, errors = on_ray.communicate()
    assert on_ray.returncode == 0, errors
    assert "Ray cluster " in output
    assert content(tmp_path / "ray" / "tiny") == alone
    assert statuses(Project("tiny")) == {"SUCCESS"}
    assert not planned()  # nor does the engine make anything stale


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_ending_the_command_ends_its_cluster_and_the_next_run_resumes(
    tiny: Project, data: Path, kind: signal.Signals
) -> None:
    running = training(tiny, data, *LOCAL)
    of_ray = [
        number for number in descendants(running.pid) if "Agent" not in name(number)
    ]  # Ray's agents notice it later
    assert len(of_ray) > 3
    running.send_signal(kind)
    _, errors = running.communicate(timeout=60)
    assert gone(of_ray)
    assert "Traceback" not in errors
    if kind == signal.SIGINT:
        assert running.returncode == 130
        assert "stopped; run the same command again to go on from here" in errors
        assert "STARTED" not in statuses(tiny)
    (checkpoint,) = (tiny.workspace / "checkpoints" / "dialogue_models").rglob("training.safetensors")
    running = process("run", "--workers", "2", *LOCAL)
    deadline = time.monotonic() + 60
    trained_at = checkpoint.stat().st_mtime
    while checkpoint.stat().st_mtime == trained_at:  # training resumes in the same folder
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert statuses(tiny) <= {"SUCCESS", "FAILURE", "CANCELED"}


def test_a_worker_that_dies_costs_its_own_unit_only(tiny: Project, data: Path) -> None:
    running = training(tiny, data, *LOCAL)
    holder = next(path.read_text() for path in tiny.workspace.glob("locks/dialogue_models/*/*"))
    os.kill(process_number(holder), signal.SIGKILL)
    output, errors = running.communicate(timeout=120)
    assert running.returncode == 1
    assert "failed: dialogue_models seq2seq: its process on the Ray cluster ended" in errors
    assert "Traceback" not in errors
    assert "context_pairs tiny dialect" in output
    assert statuses(tiny) <= {"SUCCESS", "FAILURE"}


@pytest.fixture
def three_nodes() -> Iterator[Any]:
    """A cluster of three nodes with a processor each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


def test_a_lost_node_costs_its_current_work_only(
    tiny: Project, data: Path, three_nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_training = {"epochs": 60, "patience": 60}
    change(data / "profiles" / "tiny.yaml", lambda d: d["models"]["seq2seq"]["training"].update(long_training))
    run()
    alone = content(tiny.workspace)
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "ray"))
    running = process("run", "--engine", "ray", "--address", three_nodes.address)
    workspace = tmp_path / "ray" / "tiny"
    deadline = time.monotonic() + 60
    while not list(workspace.glob("locks/*/*/*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    three_nodes.remove_node(three_nodes.list_all_nodes()[-1], allow_graceful=False)
    output, errors = running.communicate(timeout=180)
    assert "3 nodes, 3 processors" in output
    assert "Traceback" not in errors
    again = process("run", "--engine", "ray", "--address", three_nodes.address)
    output, errors = again.communicate(timeout=180)
    assert again.returncode == 0, errors
    assert content(workspace) == alone
    assert statuses(Project("tiny")) <= {"SUCCESS", "FAILURE"}
