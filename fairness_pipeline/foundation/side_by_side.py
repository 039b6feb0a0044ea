"""Parts of one piece of work side by side, on the cores that a run may use.

The parts are fixed by the data, and the results come in their order: what comes out is the same on any number of cores.
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

_LOADED = ["fairness_pipeline.measures.dialogue.registry", "sklearn.linear_model"]
"""What the processes need; it is loaded once, by the one that they are forked from."""


def _one() -> int:
    return 1


_allowed: Callable[[], int] = _one


def _cores() -> int:
    return max(1, _allowed())


def allow_cores(count: Callable[[], int]) -> None:
    """Lets this process use so many cores for one partition; one, until this is called.

    A script without a guard (`if __name__ == "__main__"`) would be run again by each new process, so nothing but a run
    calls this.

    Args:
        count: How many there are now; asked again and again, as other workers begin and end.
    """
    global _allowed
    _allowed = count


def in_processes(
    work: Callable[[P], R], parts: Sequence[P], least: int = 2, sent: Callable[[P], P] = lambda part: part
) -> Iterator[R]:
    """`work` of each part, in order, in processes of their own where there is more than one core.

    Args:
        work: Gets a part. It is pickled once a process, so that what it remembers serves the next part; the parts and
            what it returns are pickled too.
        parts: What is worked on.
        least: With fewer parts the work is done in this process, as starting others takes two seconds.
        sent: What is sent to another process for a part: a slice would be sent with all that it is cut from.

    Raises:
        FairnessError: from `work`, or a process ended by itself.
    """
    cores = _cores()
    count = min(cores, len(parts))
    if count < 2 or len(parts) < least:
        yield from map(work, parts)
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    with ProcessPoolExecutor(count, context, _begin, (work, cores // count, declared())) as pool:
        try:
            yield from pool.map(_do, map(sent, parts))
        except BrokenProcessPool:
            raise FairnessError(
                "one of several processes that worked on it ended by itself; if memory ran out, give fewer --workers"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)  # waits for the parts that are being worked on: they may write


def in_threads(work: Callable[[P], R], parts: Iterator[P]) -> Iterator[R]:
    """`work` of each part, in order, in as many threads as there are cores: for what computes in numpy.

    No pool of the standard library: Ctrl-C in the middle of its waiting can leave a lock held, and its end waits for
    ever.

    Args:
        work: Gets a part.
        parts: Made one by one, when a thread is free.
    """
    tasks: SimpleQueue[tuple[int, P] | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    found: dict[int, tuple[Any, BaseException | None]] = {}
    begun = given = threads = 0

    def serve() -> None:
        while (task := tasks.get()) is not None:
            number, part = task
            try:
                done.put((number, work(part), None))
            except BaseException as error:
                done.put((number, None, error))

    def one_more() -> Iterator[R]:
        """Waits for a part that ends, and gives what can be given in order."""
        nonlocal given
        number, result, error = done.get()
        found[number] = result, error
        while given in found:
            result, error = found.pop(given)
            if error is not None:
                raise error
            given += 1
            yield result

    try:
        for part in parts:
            if given == begun and _cores() < 2:
                yield work(part)
                given = begun = begun + 1
                continue
            if threads < _cores():
                Thread(target=serve, daemon=True).start()
                threads += 1
            tasks.put((begun, part))
            begun += 1
            while begun - given - len(found) >= _cores() or len(found) > 2 * _cores():  # nor far ahead of a slow one
                yield from one_more()
        while given < begun:
            yield from one_more()
    finally:
        for _ in range(threads):
            tasks.put(None)


_work: Callable[[Any], Any]
"""What a process works with."""


def _begin(work: Callable[[Any], Any], cores: int, files: Files | None) -> None:
    """An orphan would go on for nobody; Ctrl-C is for the process that was called."""
    global _work
    _work = work
    declare(files)
    allow_cores(lambda: cores)  # what the others leave
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _do(part: Any) -> Any:
    return _work(part)
