"""Works on the parts of one task in parallel, on the cores that a run may use.

The data decide the parts, and the results come in their order, so the outcome is the same on any number of cores.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import Files, declare, declared
from fairness_pipeline.foundation.processes import end_with_parent

P = TypeVar("P")
R = TypeVar("R")

_PRELOADED = ["fairness_pipeline.measures.dialogue.registry", "sklearn.linear_model"]
"""Modules that the processes need. They are loaded once, by the process that the others are forked from."""


def _one_core() -> int:
    return 1


_allowed_cores: Callable[[], int] = _one_core


def _cores() -> int:
    return max(1, _allowed_cores())


def allow_cores(count: Callable[[], int]) -> None:
    """Sets how many cores this process may use for one partition; the default is one.

    A script without a guard (`if __name__ == "__main__"`) would be run again by each new process, so only a run calls
    this.

    Args:
        count: Returns the current number of cores. It is called repeatedly, because other workers begin and end.
    """
    global _allowed_cores
    _allowed_cores = count


def in_processes(
    work: Callable[[P], R], parts: Sequence[P], least: int = 2, sent: Callable[[P], P] = lambda part: part
) -> Iterator[R]:
    """Yields `work` of each part, in order. It runs in separate processes if there is more than one core.

    Args:
        work: Called with a part. It is pickled once per process, so that its caches serve the next part; parts and
            results are pickled too.
        parts: The parts of the task.
        least: With fewer parts the work is done in this process, because starting others takes two seconds.
        sent: Returns what is pickled for a part: a slice would be pickled with the whole table that it is cut from.

    Raises:
        FairnessError: from `work`, or a process ended by itself.
    """
    cores = _cores()
    count = min(cores, len(parts))
    if count < 2 or len(parts) < least:
        yield from map(work, parts)
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    with ProcessPoolExecutor(count, context, _begin, (work, cores // count, declared())) as pool:
        try:
            yield from pool.map(_do, map(sent, parts))
        except BrokenProcessPool:
            raise FairnessError("a worker process ended unexpectedly; if memory ran out, lower --workers") from None
        finally:
            pool.shutdown(cancel_futures=True)  # waits for the running parts: they may write


def in_threads(work: Callable[[P], R], parts: Iterator[P]) -> Iterator[R]:
    """Yields `work` of each part, in order. It runs in as many threads as there are cores, for work in numpy.

    The standard library's pools are unsuitable: Ctrl-C while they wait can leave a lock held, and their shutdown then
    waits forever.

    Args:
        work: Called with a part.
        parts: Made one by one, when a thread is free.
    """
    tasks: SimpleQueue[tuple[int, P] | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    finished: dict[int, tuple[Any, BaseException | None]] = {}
    submitted = yielded = threads = 0

    def serve() -> None:
        while (task := tasks.get()) is not None:
            number, part = task
            try:
                done.put((number, work(part), None))
            except BaseException as error:
                done.put((number, None, error))

    def next_results() -> Iterator[R]:
        """Waits for one part to finish, and yields the results that are next in order."""
        nonlocal yielded
        number, result, error = done.get()
        finished[number] = result, error
        while yielded in finished:
            result, error = finished.pop(yielded)
            if error is not None:
                raise error
            yielded += 1
            yield result

    try:
        for part in parts:
            if yielded == submitted and _cores() < 2:
                yield work(part)
                yielded = submitted = submitted + 1
                continue
            if threads < _cores():
                Thread(target=serve, daemon=True).start()
                threads += 1
            tasks.put((submitted, part))
            submitted += 1
            # Do not run far ahead of a slow part.
            while submitted - yielded - len(finished) >= _cores() or len(finished) > 2 * _cores():
                yield from next_results()
        while yielded < submitted:
            yield from next_results()
    finally:
        for _ in range(threads):
            tasks.put(None)


_work: Callable[[Any], Any]
"""The function that this worker process calls."""


def _begin(work: Callable[[Any], Any], cores: int, files: Files | None) -> None:
    """Prepares a worker process. It ends with its parent, and leaves Ctrl-C to the parent."""
    global _work
    _work = work
    declare(files)
    allow_cores(lambda: cores)  # this process's share
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _do(part: Any) -> Any:
    return _work(part)
