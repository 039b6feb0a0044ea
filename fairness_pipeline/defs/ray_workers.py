"""Makes the units of a plan side by side on a Ray cluster: `Workers`, as the pool of processes is."""

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
from fairness_pipeline.workspace.postgres import told

_LISTENS = 1.0  # seconds
_GRACE = 20.0
"""Seconds that an interrupted worker has to record how its run ended."""


@dataclass
class _Worker:
    """An actor; what it will return: its greeting until it has come, what it tells next, and the unit it makes."""

    actor: Any
    greeting: Any
    tells: Any
    unit: Unit | None = None
    makes: Any = None
    told: Progress | None = None


class RayWorkers:
    """Actors on a cluster, each of which holds the definitions; a context manager that ends them.

    They take no processor of Ray's count, as what is expensive runs in the actors that score rows, which do. A training
    runs in the worker itself.

    Args:
        settings: The cluster.
        project: The profile.
        count: How many; by default one for each processor of the cluster.
        most: More are never of use.
        listener: Is told how far each partition is, and which one waits.

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
        self._seen = nonce(project.workspace)
        self._given = environment()
        groups: Any = {"concurrency_groups": {"tells": 1, "ends": 1}}
        self._kind: Any = ray.remote(**groups)(_Maker).options(num_cpus=0, max_restarts=0, scheduling_strategy="SPREAD")
        self._workers = [self._started() for _ in range(min(count or settings.workers or processors(), most))]
        self._done: deque[Done] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        made = []
        for worker in self._workers:
            if worker.unit and not worker.greeting:
                worker.actor.end.remote()
                made.append(worker.makes)
        if made:
            ray.wait(made, num_returns=len(made), timeout=_GRACE)
        for worker in self._workers:
            ray.kill(worker.actor)
        self._seen.unlink(missing_ok=True)

    @property
    def idle(self) -> int:
        """Workers without a unit."""
        return sum(worker.unit is None for worker in self._workers)

    def start(self, unit: Unit) -> None:
        """Hands the unit to a worker that is idle."""
        place = next(place for place, worker in enumerate(self._workers) if worker.unit is None)
        if not self._workers[place].greeting and not _lives(self._workers[place]):  # it died with nothing to do
            self._workers[place] = self._started()
        worker = self._workers[place]
        worker.unit = unit
        worker.makes = worker.actor.make.remote(unit)

    def wait(self) -> Done:
        """The next unit that ends; passes on what the workers tell meanwhile.

        Raises:
            KeyboardInterrupt: a worker was interrupted.
            FairnessError: a worker could not load the profile, or its node cannot work on this lake.
            NotRecorded: a worker could not write Dagster's record of runs.
        """
        while not self._done:
            working = [worker for worker in self._workers if worker.unit]
            awaited = {ref: worker for worker in working for ref in (worker.greeting or worker.tells, worker.makes)}
            for ref in ray.wait(list(awaited), num_returns=1)[0]:
                worker = awaited[ref]
                try:
                    self._heard(worker, ref, ray.get(ref))
                except ray.exceptions.RayActorError as error:
                    self._lost(worker, error)
        return self._done.popleft()

    def _heard(self, worker: _Worker, ref: Any, found: Any) -> None:
        if ref == worker.greeting:
            worker.greeting = None
            check_visit(found)
        elif ref == worker.tells:
            worker.tells = worker.actor.tell.remote(_LISTENS)
            for message in found:
                worker.told = passed_on(self._listener, worker.told, *message)
        else:
            assert worker.unit is not None
            self._done.append(Done(worker.unit.number, results_of(*found)))
            worker.unit = worker.makes = worker.told = None

    def _lost(self, worker: _Worker, error: Exception) -> None:
        """Replaces a worker that died; its unit has failed."""
        assert worker.unit is not None
        ray.kill(worker.actor)  # where only the connection was lost it may still write
        why = (
            f"its process on the Ray cluster ended ({reason(error)}); if memory ran "
            "out, call with fewer --workers: what is made stands"
        )
        self._workers[self._workers.index(worker)] = self._started()
        self._done.append(failed(worker.unit, why))

    def _started(self) -> _Worker:
        actor = self._kind.remote(self._profile, self._seen, self._given)
        return _Worker(actor, actor.visit.remote(), actor.tell.remote(_LISTENS))


def _lives(worker: _Worker) -> bool:
    try:
        ray.get(worker.actor.tell.remote(0.0), timeout=_GRACE)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return False
    return True


class _Maker:
    """What runs in an actor: makes units in one thread, tells in a second, is interrupted from a third."""

    def __init__(self, profile: str, seen: Path, given: dict[str, str]) -> None:
        use_environment(given)
        self._visit = visit(seen)
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
                return "not recorded", told(error)
            return "refused", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        finally:
            self._thread = None

    @ray.method(concurrency_group="tells")
    def tell(self, seconds: float) -> list[tuple[Any, ...]]:
        """What the maker has told since the last call; waits so long for something."""
        try:
            found = [self._messages.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self._messages.empty():  # nobody else takes from it
            found.append(self._messages.get())
        return found

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
