"""Parts of one piece of work side by side, on the cores that a run may use.

The parts are fixed by the data, and the results come in their order: what comes out is the same on any number of cores.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.processes import end_with_parent

P = TypeVar("P")
R = TypeVar("R")

_LOADED = ["fairness_pipeline.measures.dialogue.registry", "sklearn.linear_model"]
"""What the processes need; it is loaded once, by the one that they are forked from."""


def _one() -> int:
    return 1


_cores: Callable[[], int] = _one


def allow_cores(count: Callable[[], int]) -> None:
    """Lets this process use so many cores for one partition; one, until this is called.

    A script without a guard (`if __name__ == "__main__"`) would be run again by each new process, so nothing but a run
    calls this.

    Args:
        count: How many there are now; asked again and again, as other workers begin and end.
    """
    global _cores
    _cores = count


def in_processes(
    work: Callable[[P], R], parts: Sequence[P], least: int = 2, sent: Callable[[P], P] = lambda part: part
) -> Iterator[R]:
    """`work` of each part, in order, in processes of their own where there is more than one core.

    Args:
        work: Gets a part. It is pickled once a process, so that what it remembers serves the next part; the parts and
            what it returns are pickled too.
        parts: What is worked on.
        least: Fewer parts are done here, sooner than other processes are started (two seconds).
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
    with ProcessPoolExecutor(count, context, _begin, (work, cores // count)) as pool:
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

    Args:
        work: Gets a part.
        parts: Made one by one, when a thread is free.
    """
    with ThreadPoolExecutor() as pool:  # starts threads as they are needed
        begun: deque[Future[R]] = deque()
        for part in parts:
            while len(unfinished := [own for own in begun if not own.done()]) >= _cores():
                wait_for(unfinished, return_when=FIRST_COMPLETED)
            begun.append(pool.submit(work, part))
            while begun and begun[0].done():
                yield begun.popleft().result()
        yield from (own.result() for own in begun)


_work: Callable[[Any], Any]
"""What a process works with."""


def _begin(work: Callable[[Any], Any], cores: int) -> None:
    """An orphan would go on for nobody; Ctrl-C is for the process that was called."""
    global _work
    _work = work
    allow_cores(lambda: cores)  # what the others leave
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _do(part: Any) -> Any:
    return _work(part)
