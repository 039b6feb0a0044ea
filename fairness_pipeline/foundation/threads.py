"""How many threads the numerical libraries use: fixed, so that results do not depend on the machine's cores."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for every library, those that are yet to be loaded included.

    Sums that are split over threads add up otherwise in the last bits, and a training makes more of it; and small
    models are slower on two threads than on one (37 s against 69 s), so that partitions are made side by side instead.
    A model whose file names `threads` takes them by `use_threads`.
    """
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    use_threads(1)
    with threadpool_limits(1):
        yield


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(count: int) -> None:
    """Sets torch's threads, where torch is loaded."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)
