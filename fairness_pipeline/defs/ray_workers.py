"""Makes the units of a plan in parallel on a Ray cluster; implements `Workers`, like the pool of processes."""

import ctypes
import queue
import threading
import traceback
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ray

from fairness_pipeline.defs.workers import Telling, failed, passed_on, results_of
from fairness_pipeline.engines.ray_cluster import (
    Visit,
    check_visit,
    described,
    environment,
    join,
    nonce,
    processors,
    reason,
    use_environment,
    visit,
)
from fairness_pipeline.engines.settings import RaySettings
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.units import Done, Unit
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.postgres import describe_error

_LISTENS = 1.0  # seconds
_GRACE = 20.0
"""Seconds that an interrupted worker has to record how its run ended."""


@dataclass
class _Worker:
    """An actor and its pending results: its greeting until it has come, its next messages, and the unit it makes."""

    actor: Any
    greeting: Any
    messages: Any
    unit: Unit | None = None
    results: Any = None
    progress: Progress | None = None


class RayWorkers:
    """Actors on a cluster, each of which holds the definitions; a context manager that ends them.

    They take no processor of Ray's count, as what is expensive runs in the actors that score rows, which do. A training
    runs in the worker itself.

    Args:
        settings: The cluster.
        project: The profile.
        count: The number of workers; by default one for each processor of the cluster.
        most: The largest number of workers that is of use.
        listener: Receives the waiting notices and progress of all workers.

    Attributes:
        cluster: The cluster, in words.

    Raises:
        FairnessError: the cluster cannot be joined.
    """

    def __init__(
        self, settings: RaySettings, project: Project, count: int | None, most: int, listener: Listener
    ) -> None:
        join(settings)
        self.cluster = described()
        self._profile = project.name
        self._listener = listener
        self._nonce = nonce(project.workspace)
        self._environment = environment()
        groups: Any = {"concurrency_groups": {"tells": 1, "ends": 1}}
        self._kind: Any = ray.remote(**groups)(_Maker).options(num_cpus=0, max_restarts=0, scheduling_strategy="SPREAD")
        self._workers = [self._start_worker() for _ in range(min(count or settings.workers or processors(), most))]
        self._done: deque[Done] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pending = []
        for worker in self._workers:
            if worker.unit and not worker.greeting:
                worker.actor.end.remote()
                pending.append(worker.results)
        if pending:
            ray.wait(pending, num_returns=len(pending), timeout=_GRACE)
        for worker in self._workers:
            ray.kill(worker.actor)
        self._nonce.unlink(missing_ok=True)

    @property
    def idle(self) -> int:
        """Workers without a unit."""
        return sum(worker.unit is None for worker in self._workers)

    def start(self, unit: Unit) -> None:
        """Hands the unit to a worker that is idle."""
        index = next(index for index, worker in enumerate(self._workers) if worker.unit is None)
        if not self._workers[index].greeting and not _is_alive(self._workers[index]):  # it died with nothing to do
            self._workers[index] = self._start_worker()
        worker = self._workers[index]
        worker.unit = unit
        worker.results = worker.actor.make.remote(unit)

    def wait(self) -> Done:
        """The next unit that ends; passes on what the workers report meanwhile.

        Raises:
            KeyboardInterrupt: a worker was interrupted.
            FairnessError: a worker could not load the profile, or its node cannot work on this lake.
            NotRecorded: a worker could not write Dagster's record of runs.
        """
        while not self._done:
            working = [worker for worker in self._workers if worker.unit]
            awaited = {
                ref: worker for worker in working for ref in (worker.greeting or worker.messages, worker.results)
            }
            for ref in ray.wait(list(awaited), num_returns=1)[0]:
                worker = awaited[ref]
                try:
                    self._receive(worker, ref, ray.get(ref))
                except ray.exceptions.RayActorError as error:
                    self._replace(worker, error)
        return self._done.popleft()

    def _receive(self, worker: _Worker, ref: Any, value: Any) -> None:
        if ref == worker.greeting:
            worker.greeting = None
            check_visit(value)
        elif ref == worker.messages:
            worker.messages = worker.actor.take_messages.remote(_LISTENS)
            for message in value:
                worker.progress = passed_on(self._listener, worker.progress, *message)
        else:
            assert worker.unit is not None
            self._done.append(Done(worker.unit.number, results_of(*value)))
            worker.unit = worker.results = worker.progress = None

    def _replace(self, worker: _Worker, error: Exception) -> None:
        """Replaces a worker that died; its unit has failed."""
        assert worker.unit is not None
        ray.kill(worker.actor)  # where only the connection was lost it may still write
        explanation = (
            f"its process on the Ray cluster ended ({reason(error)}); if memory ran "
            "out, call with fewer --workers: finished partitions are kept"
        )
        self._workers[self._workers.index(worker)] = self._start_worker()
        self._done.append(failed(worker.unit, explanation))

    def _start_worker(self) -> _Worker:
        actor = self._kind.remote(self._profile, self._nonce, self._environment)
        return _Worker(actor, actor.visit.remote(), actor.take_messages.remote(_LISTENS))


def _is_alive(worker: _Worker) -> bool:
    try:
        ray.get(worker.actor.take_messages.remote(0.0), timeout=_GRACE)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return False
    return True


class _Maker:
    """The code of an actor: makes units in one thread, reports in a second, is interrupted from a third."""

    def __init__(self, profile: str, nonce_file: Path, variables: dict[str, str]) -> None:
        use_environment(variables)
        self._visit = visit(nonce_file)
        self._profile = profile
        self._messages: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._opened = ExitStack()
        self._maker: Any = None
        self._thread: int | None = None

    def visit(self) -> Visit:
        return self._visit

    def make(self, unit: Unit) -> tuple[str, Any]:
        """Makes a unit; the first word says whether it was `done`, or why not."""
        self._thread = threading.get_ident()
        try:
            return "done", self._loaded().make(unit)
        except FairnessError as error:
            return "refused", str(error)
        except KeyboardInterrupt:
            return "interrupted", None
        except Exception as error:
            from fairness_pipeline.defs.instance import record_errors

            if isinstance(error, record_errors()):
                return "not recorded", describe_error(error)
            return "refused", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        finally:
            self._thread = None

    @ray.method(concurrency_group="tells")
    def take_messages(self, seconds: float) -> list[tuple[Any, ...]]:
        """Returns the messages since the last call; waits up to `seconds` for the first one."""
        try:
            messages = [self._messages.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self._messages.empty():  # no other thread takes from it
            messages.append(self._messages.get())
        return messages

    @ray.method(concurrency_group="ends")
    def end(self) -> None:
        """Interrupts the unit as Ctrl-C would, which only reaches the first thread of a process."""
        if self._thread is not None:
            interrupt = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), interrupt)

    def _loaded(self) -> Any:
        if self._maker is None:
            from fairness_pipeline.defs.instance import open_instance
            from fairness_pipeline.defs.runs import Maker

            project = Project(self._profile)
            instance = self._opened.enter_context(open_instance(project))
            self._maker = Maker(project, instance, Telling(self._messages.put))
        return self._maker
