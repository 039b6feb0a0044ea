"""Starts the runs of the UI, of backfills and of automation by forking a process that has everything loaded.

Dagster's default starts a new interpreter for each run, which imports Dagster and the libraries of models: seconds of
processor time before a small table is begun.
"""

import gc
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import dagster as dg

import fairness_pipeline
from fairness_pipeline.defs.dagster_internals import (
    CheckRunHealthResult,
    ConfigurableClass,
    ConfigurableClassData,
    ExecuteRunArgs,
    LaunchRunContext,
    RunLauncher,
    WorkerStatus,
    api_cli,
    deserialize_value,
    serialize_value,
)
from fairness_pipeline.defs.instance import record_errors
from fairness_pipeline.defs.processes import PROCESS, is_alive, process_tag, show_signs_of_life
from fairness_pipeline.foundation.processes import is_of_this_machine, process_number
from fairness_pipeline.foundation.turns import wait_for_turns

HEEDS = "fairness_pipeline/heeds_cancelling"
"""The tag of a run whose process checks whether it is to be cancelled."""
_HEED_EVERY = 1.0  # seconds
_LEFT_OUT = (".cli", "__main__", ".ray_")
"""Modules that no run imports, or only a run on a cluster."""
_LIBRARIES = ("torch", "transformers", "pandas", "scipy.stats", "sklearn.linear_model", "nltk")


_LOADS = "The libraries are loaded first, once for this run and those that follow it: up to a minute."


class WarmRunLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """Dagster's run launcher for this pipeline; `dagster.yaml` names it.

    Args:
        inst_data: What Dagster keeps of `dagster.yaml`.
    """

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inst_data = inst_data
        self._server: subprocess.Popen[bytes] | None = None
        self._code = 0.0

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """What Dagster keeps of `dagster.yaml`."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """There is nothing to configure."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return cls(inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Hands the run to the process that forks; the fork records itself in a tag of the run."""
        run = context.dagster_run
        assert run.job_code_origin is not None
        arguments = ExecuteRunArgs(run.job_code_origin, run.run_id, self._instance.get_ref(), True)
        request = serialize_value(arguments).encode() + b"\n"
        self._instance.add_run_tags(run.run_id, {PROCESS: ""})  # a second try has the tags of the first
        try:
            self._write(request, run)
        except BrokenPipeError:  # it was killed; start another one
            self._server = None
            self._write(request, run)

    def terminate(self, run_id: str) -> bool:
        """Interrupts a run as Ctrl-C does; False if it has ended, or was started by a command on another machine.

        A process that this launcher has forked interrupts itself, on whichever machine it runs.
        """
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        process = run.tags.get(PROCESS)
        if not process or not is_alive(process, lake_of(self._instance)):
            return False
        if HEEDS in run.tags:
            self._instance.report_run_canceling(run)
        elif is_of_this_machine(process):
            self._instance.report_run_canceling(run)
            os.kill(process_number(process), signal.SIGINT)
        else:
            return False
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Dagster's daemon asks for the health of each run."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the process of a run still runs."""
        process = run.tags.get(PROCESS)
        if not process:
            return CheckRunHealthResult(WorkerStatus.UNKNOWN, "it has not said which process it is")
        if is_alive(process, lake_of(self._instance)):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, f"its process ended before the run did ({process})")

    def dispose(self) -> None:
        """Lets the process that forks end; the runs that it started go on."""
        if self._server and self._server.stdin:
            with suppress(BrokenPipeError):
                self._server.stdin.close()

    def _write(self, request: bytes, run: dg.DagsterRun) -> None:
        code = _newest_source()
        if self._server is None or self._server.poll() is not None or code > self._code:
            self._instance.report_engine_event(_LOADS, run)
            self.dispose()
            self._server = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE)
            self._code = code
        assert self._server.stdin is not None
        self._server.stdin.write(request)
        self._server.stdin.flush()


def lake_of(instance: dg.DagsterInstance) -> Path:
    """The workspace of an instance that this launcher belongs to."""
    return Path(instance.root_directory).parent


def _newest_source() -> float:
    """Returns when a file of this package was last changed: code that was loaded before is outdated."""
    folder = Path(fairness_pipeline.__file__).parent
    return max(path.stat().st_mtime for path in folder.rglob("*.py"))


def serve() -> None:
    """Forks once for each run that it reads; ends when its input is closed."""
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the runs
    for request in sys.stdin:
        if os.fork() == 0:
            _run(request.strip())


def _load() -> None:
    """Imports what runs import. Nothing is computed here: a fork must not inherit threads of torch."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(fairness_pipeline.__path__, f"{fairness_pipeline.__name__}."):
        if not any(name in module.name for name in _LEFT_OUT):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    gc.freeze()  # so that forks share the memory


def _run(request: str) -> None:
    """Executes one run and ends the process."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 0)
        os.dup2(devnull, 2)  # the run may outlive its reader; its messages are in Dagster's records
        arguments = deserialize_value(request, ExecuteRunArgs)
        assert arguments.instance_ref is not None
        with dg.DagsterInstance.from_ref(arguments.instance_ref) as instance:
            show_signs_of_life(lake_of(instance))
            instance.add_run_tags(arguments.run_id, {**process_tag(), HEEDS: "true"})
        threading.Thread(target=_heed, args=(arguments,), daemon=True).start()
        wait_for_turns()
        api_cli(["execute_run", request], standalone_mode=False)
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


def _heed(arguments: ExecuteRunArgs) -> None:
    """Interrupts this process once its run is to be cancelled."""
    assert arguments.instance_ref is not None
    with dg.DagsterInstance.from_ref(arguments.instance_ref) as instance:
        while True:
            time.sleep(_HEED_EVERY)
            with suppress(*record_errors()):  # the database is away for a moment
                run = instance.get_run_by_id(arguments.run_id)
                if run is None or run.is_finished:
                    return
                if run.status == dg.DagsterRunStatus.CANCELING:
                    os.kill(os.getpid(), signal.SIGINT)
                    return


if __name__ == "__main__":
    serve()
