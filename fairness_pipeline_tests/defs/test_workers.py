"""Partitions made side by side: the same bytes, and an orderly end whatever happens."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fairness_pipeline.foundation.processes import process_number
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Outcome, Plan, Selection, Step
from fairness_pipeline.lineage.units import Done, StepResult, Unit
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.commands import change, content, planned, process, run


@pytest.mark.verify
def test_the_same_bytes_however_many_workers(
    tiny: Project, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"].update({"seq2seq-cda": {}}))
    run()
    alone = content(tiny.workspace)
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "three"))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # nor however many threads a user has set
    three = process("run", "--workers", "3")
    output, errors = three.communicate()
    assert three.returncode == 0, errors
    assert " 0 not made" in output
    assert content(tmp_path / "three" / "tiny") == alone


def children(pid: int) -> list[int]:
    """The worker processes of a run, without Python's resource tracker."""
    output = subprocess.run(["pgrep", "-P", str(pid), "-f", "spawn_main"], capture_output=True, text=True).stdout
    return [int(child) for child in output.split()]


def training(tiny: Project, data: Path, *options: str, epochs: int = 400) -> "subprocess.Popen[str]":
    """Starts a run that trains for long, and waits for its first checkpoint."""
    change(
        data / "profiles" / "tiny.yaml",
        lambda d: d["models"]["seq2seq"]["training"].update(epochs=epochs, patience=epochs, checkpoint_seconds=0.2),
    )
    running = process("run", "--workers", "2", *options)
    deadline = time.monotonic() + 120
    while not list((tiny.workspace / "checkpoints" / "dialogue_models").rglob("training.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return running


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.verify
def test_a_worker_that_dies_costs_its_own_unit_only(tiny: Project, data: Path) -> None:
    running = training(tiny, data)
    holder = next(path.read_text() for path in tiny.workspace.glob("locks/dialogue_models/*/*"))
    os.kill(process_number(holder), signal.SIGKILL)
    output, errors = running.communicate(timeout=120)
    assert running.returncode == 1
    assert "failed: dialogue_models seq2seq: its process ended by itself (signal SIGKILL)" in errors
    assert "fewer --workers" in errors
    assert "skipped because a step that they need failed: responses gender seq2seq, " in errors
    assert "Traceback" not in errors
    assert "context_pairs tiny dialect" in output  # another worker took its place
    assert "context_pairs tiny dialect" not in planned()


@pytest.mark.verify
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_the_run(tiny: Project, data: Path, kind: signal.Signals) -> None:
    running = training(tiny, data)
    pids = children(running.pid)
    assert len(pids) == 2
    running.send_signal(kind)
    _, errors = running.communicate(timeout=60)
    assert gone(pids)
    assert "Traceback" not in errors
    if kind == signal.SIGINT:
        assert running.returncode == 130
        assert "stopped; run the same command again to go on from here" in errors


class Recorder:
    """Workers that make nothing: `count` units at once, which end in the order in which they began."""

    def __init__(self, count: int, fails: str = "") -> None:
        self.count, self.fails = count, fails
        self.running: list[Unit] = []
        self.begun: list[tuple[str, ...]] = []
        self.most = 0

    @property
    def idle(self) -> int:
        return self.count - len(self.running)

    def start(self, unit: Unit) -> None:
        assert self.idle > 0
        self.running.append(unit)
        self.begun.append((unit.names[0], *unit.key.values()))
        self.most = max(self.most, len(self.running))

    def wait(self) -> Done:
        unit = self.running.pop(0)
        results = [StepResult(name, "failed" if name == self.fails else "made") for name in unit.names]
        return Done(unit.number, results)


def outcomes(project: Project, workers: Recorder) -> list[Outcome]:
    steps: list[Step] = []
    return list(Plan(Lineage(project), Selection()).run(workers, steps.append))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_dependent_steps_wait_and_others_do_not(tiny: Project, count: int) -> None:
    workers = Recorder(count)
    results = outcomes(tiny, workers)
    assert [outcome.state for outcome in results] == ["made"] * 36
    order = [unit[0] for unit in workers.begun]
    assert order[0] == "twitter_dialogues"
    assert order[1] == "dialogue_models"  # training takes longest: first of what can begin
    assert order[-1] == "dialogue_fairness_report"
    assert workers.most == min(count, 5)  # the model, its quality, and what begins with the pairs of two dimensions


def test_the_measures_of_few_partitions_share_the_workers(tiny: Project) -> None:
    alone, shared = Recorder(2), Recorder(3)  # two dimensions of one model
    for workers in (alone, shared):
        assert {outcome.state for outcome in outcomes(tiny, workers)} == {"made"}
    gender = ("gender", "seq2seq")
    assert [unit[0] for unit in alone.begun if unit[1:] == gender] == ["responses"]  # and all steps that follow
    order = [unit[0] for unit in shared.begun if unit[1:] == gender]
    measures = {"diversity", "sentiment", "politeness", "attribute_words"}
    assert order[0] == "responses"
    assert measures <= set(order[: order.index("dialogue_significance")])


def test_a_failure_skips_what_depends_on_it(tiny: Project) -> None:
    by_label = {outcome.step.label: outcome for outcome in outcomes(tiny, Recorder(2, fails="dialogue_models"))}
    assert by_label["contexts tiny gender"].state == "made"
    assert by_label["responses gender seq2seq"].state == "skipped"
    assert by_label["responses gender seq2seq"].detail == "needs dialogue_models model=seq2seq"
    assert by_label["dialogue_fairness_report"].state == "made"
