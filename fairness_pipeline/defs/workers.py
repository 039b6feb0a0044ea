"""Who makes the units of a plan: this process, or several that load the libraries once and work side by side.

A pool of our own, as it must tell progress while it works, outlive a worker that dies, end in order at Ctrl-C, and end
at once when this process is killed: an orphan would hold the lock of what it makes.
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
from fairness_pipeline.workspace.postgres import told

_CONTEXT = multiprocessing.get_context("spawn")
_TELL_EVERY = 0.1
_GRACE = 20.0
"""Seconds that an interrupted worker has to record how its run ended."""


class ThisProcess:
    """Makes one unit at a time, here.

    Args:
        make: Makes it.
    """

    def __init__(self, make: Callable[[Unit], list[StepResult]]) -> None:
        from fairness_pipeline.defs.records import PrintsInFiles

        PrintsInFiles.in_terminal = True  # where its progress is shown
        self._make = make
        self._units: list[Unit] = []

    @property
    def idle(self) -> int:
        """1 until a unit was begun."""
        return 0 if self._units else 1

    def start(self, unit: Unit) -> None:
        """Keeps the unit until somebody waits for it."""
        self._units.append(unit)

    def wait(self) -> Done:
        """Makes the unit that was begun."""
        unit = self._units.pop()
        return Done(unit.number, self._make(unit))


class NotRecorded(Exception):
    """Dagster's record of runs cannot be written; a table's own trouble is a result."""


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    unit: Unit | None = None
    told: Progress | None = None
    ready: bool = False


class Pool:
    """Worker processes; a context manager that ends them.

    Args:
        profile: What they load.
        count: How many.
        listener: Is told how far each partition is, and which one waits.
    """

    def __init__(self, profile: str, count: int, listener: Listener) -> None:
        self._profile = profile
        self._listener = listener
        self._count = count
        self._busy = _CONTEXT.RawValue("i", 1)  # a lock could die with its holder
        self._workers = [self._started() for _ in range(count)]
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
                worker.process.kill()  # it is loading yet
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
        place = next(place for place, worker in enumerate(self._workers) if worker.unit is None)
        if not self._workers[place].process.is_alive():  # it died with nothing to do: another takes its place
            self._workers[place] = self._started()
        self._workers[place].unit = unit
        try:
            self._workers[place].pipe.send(unit)
        except OSError:
            self._lost(self._workers[place])
        else:
            self._count_busy()

    def wait(self) -> Done:
        """The next unit that ends; passes on what the workers tell meanwhile.

        Raises:
            KeyboardInterrupt: a worker was interrupted.
            FairnessError: a worker could not load the profile.
            NotRecorded: a worker could not write Dagster's record of runs.
        """
        while not self._done:
            for pipe in wait([worker.pipe for worker in self._workers if worker.unit]):
                worker = next(worker for worker in self._workers if worker.pipe is pipe)
                try:
                    self._heard(worker, *worker.pipe.recv())
                except (EOFError, OSError):
                    self._lost(worker)
        return self._done.popleft()

    def _heard(self, worker: _Worker, what: str, *told: Any) -> None:
        if what == "ready":
            worker.ready = True
        elif what in TELLING:
            worker.told = passed_on(self._listener, worker.told, what, *told)
        else:
            assert worker.unit is not None
            self._done.append(Done(worker.unit.number, results_of(what, *told)))
            worker.unit = worker.told = None
            self._count_busy()

    def _count_busy(self) -> None:
        """Tells the workers how many share the cores: at the end of a run, one has them all."""
        self._busy.value = max(1, self._count - self.idle)

    def _lost(self, worker: _Worker) -> None:
        """Replaces a worker that died (killed for lack of memory, for example); its unit has failed."""
        worker.process.join(_GRACE)
        unit = worker.unit
        assert unit is not None
        how = worker.process.exitcode
        ended = f"signal {signal.Signals(-how).name}" if how is not None and how < 0 else f"status {how}"
        reason = (
            f"its process ended by itself ({ended}); if memory ran out, call with fewer --workers: what is made stands"
        )
        self._workers[self._workers.index(worker)] = self._started()
        self._count_busy()
        self._done.append(failed(unit, reason))

    def _started(self) -> _Worker:
        own, theirs = _CONTEXT.Pipe()
        arguments = theirs, self._profile, self._busy, self._count
        process = _CONTEXT.Process(target=_work, args=arguments)  # no daemon: it may have children
        process.start()
        theirs.close()
        return _Worker(process, own)


def results_of(what: str, told: Any = None) -> list[StepResult]:
    """The results that a worker returns at the end of a unit.

    Args:
        what: `done`, or why there are none.
        told: The results, or the reason in words.

    Raises:
        KeyboardInterrupt: the worker was interrupted.
        FairnessError: it could not load the profile.
        NotRecorded: it could not write Dagster's record of runs.
    """
    if what == "interrupted":
        raise KeyboardInterrupt
    if what == "refused":
        raise FairnessError(told)
    if what == "not recorded":
        raise NotRecorded(told)
    results: list[StepResult] = told
    return results


def failed(unit: Unit, why: str) -> Done:
    """A unit whose worker died."""
    return Done(unit.number, [StepResult(name, "failed", why) for name in unit.names])


TELLING = ("waiting", "stage", "progress")
"""The first words of what `Telling` sends."""


def passed_on(listener: Listener, told: Progress | None, what: str, *message: Any) -> Progress | None:
    """Passes on to the listener what a worker's `Telling` has sent.

    Args:
        listener: Hears it.
        told: Where the worker's progress goes, until now.
        what: One of `TELLING`.
        message: The rest.

    Returns:
        Where the worker's progress goes from now on.
    """
    if what == "waiting":
        listener.waiting(*message)
    elif what == "stage":
        return listener.progress(*message)
    elif told:
        told(*message)
    return told


class Telling(Listener):
    """Tells the process that started this one.

    Args:
        send: Sends a tuple to it.
    """

    def __init__(self, send: Callable[[tuple[Any, ...]], None]) -> None:
        self._send = send

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Another run makes the partition; this one waits."""
        self._send(("waiting", asset, key, holder))

    def progress(self, asset: str, key: Key) -> Progress:
        """Reports at most ten times a second, and at the end."""
        self._send(("stage", asset, key))
        last = 0.0

        def tell(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if time.monotonic() - last > _TELL_EVERY or done == total:
                last = time.monotonic()
                self._send(("progress", done, total, note))

        return tell


def _work(pipe: Connection, profile: str, busy: c_int, count: int) -> None:
    """What a worker does: makes the units it is sent until there are no more, or until it is interrupted.

    Args:
        pipe: Brings the units, and takes what is told of them.
        profile: What it loads.
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
            pipe.send(("not recorded", told(error)))
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # nobody listens any more
    if records := sys.modules.get("fairness_pipeline.defs.records"):
        records.forget_connections()  # the last one tidies SQLite's file
    os._exit(0)  # what libraries do at exit would write over the message of the process that was called


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # the run is being recorded, or this process is about to end
    raise KeyboardInterrupt
