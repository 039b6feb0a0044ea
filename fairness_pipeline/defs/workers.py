"""Workers that make the units of a plan: this process, or several that load the libraries once and work in parallel.

The pool is our own, as it must report progress while it works, outlive a worker that dies, end in order at Ctrl-C, and
end at once when this process is killed: an orphan would hold the lock of what it makes.
"""

import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable
from ctypes import c_int
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType, TracebackType
from typing import Any, Self

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.processes import end_with_parent
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.side_by_side import allow_cores
from fairness_pipeline.foundation.turns import wait_for_turns
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.units import Done, StepResult, Unit
from fairness_pipeline.workspace.lake import Key
from fairness_pipeline.workspace.postgres import describe_error

_CONTEXT = multiprocessing.get_context("spawn")
_TELL_EVERY = 0.1
_GRACE = 20.0
"""Seconds that an interrupted worker has to record how its run ended."""


class ThisProcess:
    """Makes one unit at a time in this process."""

    def __init__(self, make: Callable[[Unit], list[StepResult]]) -> None:
        from fairness_pipeline.defs.records import PrintsInFiles

        PrintsInFiles.in_terminal = True  # where its progress is shown
        self._make = make
        self._units: list[Unit] = []

    @property
    def idle(self) -> int:
        """1 until a unit was started."""
        return 0 if self._units else 1

    def start(self, unit: Unit) -> None:
        """Keeps the unit until somebody waits for it."""
        self._units.append(unit)

    def wait(self) -> Done:
        """Makes the unit that was started."""
        unit = self._units.pop()
        return Done(unit.number, self._make(unit))


class NotRecorded(Exception):
    """Dagster's record of runs cannot be written; an error of a table itself is a result."""


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    unit: Unit | None = None
    progress: Progress | None = None
    ready: bool = False


class Pool:
    """Worker processes; a context manager that ends them."""

    def __init__(self, profile: str, count: int, listener: Listener) -> None:
        self._profile = profile
        self._listener = listener
        self._count = count
        self._busy = _CONTEXT.RawValue("i", 1)  # a lock could die with its holder
        self._workers = [self._start_worker() for _ in range(count)]
        self._done: deque[Done] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            if worker.unit is None:
                worker.pipe.close()  # it ends by itself
            elif worker.ready:
                os.kill(worker.process.pid, signal.SIGINT)  # it records how its run ended
            else:
                worker.process.kill()  # it is still loading
        deadline = time.monotonic() + _GRACE
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    @property
    def idle(self) -> int:
        """Workers without a unit."""
        return sum(worker.unit is None for worker in self._workers)

    def start(self, unit: Unit) -> None:
        """Hands the unit to a worker that is idle."""
        index = next(index for index, worker in enumerate(self._workers) if worker.unit is None)
        if not self._workers[index].process.is_alive():  # it died with nothing to do: another takes its place
            self._workers[index] = self._start_worker()
        self._workers[index].unit = unit
        try:
            self._workers[index].pipe.send(unit)
        except OSError:
            self._replace(self._workers[index])
        else:
            self._count_busy()

    def wait(self) -> Done:
        """The next unit that ends; passes on what the workers report meanwhile.

        Raises:
            KeyboardInterrupt: a worker was interrupted.
            FairnessError: a worker could not load the profile.
            NotRecorded: a worker could not write Dagster's record of runs.
        """
        while not self._done:
            for pipe in wait([worker.pipe for worker in self._workers if worker.unit]):
                worker = next(worker for worker in self._workers if worker.pipe is pipe)
                try:
                    self._receive(worker, *worker.pipe.recv())
                except (EOFError, OSError):
                    self._replace(worker)
        return self._done.popleft()

    def _receive(self, worker: _Worker, kind: str, *content: Any) -> None:
        if kind == "ready":
            worker.ready = True
        elif kind in TELLING:
            worker.progress = passed_on(self._listener, worker.progress, kind, *content)
        else:
            assert worker.unit is not None
            self._done.append(Done(worker.unit.number, results_of(kind, *content)))
            worker.unit = worker.progress = None
            self._count_busy()

    def _count_busy(self) -> None:
        """Tells the workers how many share the cores: at the end of a run, one may use all."""
        self._busy.value = max(1, self._count - self.idle)

    def _replace(self, worker: _Worker) -> None:
        """Replaces a worker that died (killed for lack of memory, for example); its unit has failed."""
        worker.process.join(_GRACE)
        unit = worker.unit
        assert unit is not None
        exit_code = worker.process.exitcode
        ended = (
            f"signal {signal.Signals(-exit_code).name}"
            if exit_code is not None and exit_code < 0
            else f"status {exit_code}"
        )
        reason = (
            f"its process ended by itself ({ended}); if memory ran out, call with fewer --workers: finished "
            "partitions are kept"
        )
        self._workers[self._workers.index(worker)] = self._start_worker()
        self._count_busy()
        self._done.append(failed(unit, reason))

    def _start_worker(self) -> _Worker:
        ours, theirs = _CONTEXT.Pipe()
        arguments = theirs, self._profile, self._busy, self._count
        process = _CONTEXT.Process(target=_work, args=arguments)  # no daemon: it may have children
        process.start()
        theirs.close()
        return _Worker(process, ours)


def results_of(outcome: str, content: Any = None) -> list[StepResult]:
    """The results that a worker returns at the end of a unit.

    Args:
        outcome: `done`, or why there are no results.
        content: The results, or the reason in words.

    Raises:
        KeyboardInterrupt: the worker was interrupted.
        FairnessError: it could not load the profile.
        NotRecorded: it could not write Dagster's record of runs.
    """
    if outcome == "interrupted":
        raise KeyboardInterrupt
    if outcome == "refused":
        raise FairnessError(content)
    if outcome == "not recorded":
        raise NotRecorded(content)
    results: list[StepResult] = content
    return results


def failed(unit: Unit, reason: str) -> Done:
    """A unit whose worker died."""
    return Done(unit.number, [StepResult(name, "failed", reason) for name in unit.names])


TELLING = ("waiting", "stage", "progress")
"""The first words of what `Telling` sends."""


def passed_on(listener: Listener, progress: Progress | None, kind: str, *message: Any) -> Progress | None:
    """Passes on to the listener what a worker's `Telling` has sent.

    Args:
        listener: Receives the message.
        progress: The function that has received the worker's progress until now.
        kind: One of `TELLING`.
        message: The rest.

    Returns:
        The function that receives the worker's progress from now on.
    """
    if kind == "waiting":
        listener.waiting(*message)
    elif kind == "stage":
        return listener.progress(*message)
    elif progress:
        progress(*message)
    return progress


class Telling(Listener):
    """Reports to the process that started this one."""

    def __init__(self, send: Callable[[tuple[Any, ...]], None]) -> None:
        self._send = send

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Reports that another run makes the partition and this one waits."""
        self._send(("waiting", asset, key, holder))

    def progress(self, asset: str, key: Key) -> Progress:
        """Reports at most ten times a second, and at the end."""
        self._send(("stage", asset, key))
        last = 0.0

        def report(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if time.monotonic() - last > _TELL_EVERY or done == total:
                last = time.monotonic()
                self._send(("progress", done, total, note))

        return report


def _work(pipe: Connection, profile: str, busy: c_int, count: int) -> None:
    """Runs a worker: makes the units that it receives until there are no more, or until it is interrupted.

    Args:
        pipe: Brings the units, and takes their results and progress.
        profile: The profile that it loads.
        busy: How many workers have a unit.
        count: How many cores they share.
    """
    allow_cores(lambda: count // busy.value)
    wait_for_turns()
    os.setpgrp()  # Ctrl-C reaches the process that was called, which ends this one in order
    signal.signal(signal.SIGINT, _interrupt_once)
    warnings.simplefilter("ignore", FutureWarning)  # the command has said it
    end_with_parent()
    try:
        try:
            from fairness_pipeline.defs.instance import open_instance
            from fairness_pipeline.defs.runs import Maker
            from fairness_pipeline.project.project import Project

            project = Project(profile)
            with open_instance(project) as instance:
                maker = Maker(project, instance, Telling(pipe.send))
                pipe.send(("ready",))
                while True:
                    pipe.send(("done", maker.make(pipe.recv())))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except FairnessError as error:
            pipe.send(("refused", str(error)))
        except KeyboardInterrupt:
            pipe.send(("interrupted",))
        except Exception as error:
            from fairness_pipeline.defs.instance import record_errors

            if not isinstance(error, record_errors()):
                raise
            pipe.send(("not recorded", describe_error(error)))
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # the receiver has ended
    if records := sys.modules.get("fairness_pipeline.defs.records"):
        records.forget_connections()  # the last one tidies SQLite's file
    os._exit(0)  # what libraries do at exit would write over the message of the process that was called


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # the run is being recorded, or this process is about to end
    raise KeyboardInterrupt
