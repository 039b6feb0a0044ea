"""Sets the number of threads of the numerical libraries, so that results do not depend on the machine's cores."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """Limits every library to one thread, including libraries that are loaded later.

    Splitting a sum over threads changes its last bits, and training amplifies this. Small models are also slower on two
    threads than on one (37 s against 69 s), so partitions are made in parallel instead. A model whose file names
    `threads` gets them through `use_threads`.
    """
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    use_threads(1)
    with _loaded().limit(limits=1):
        yield


@cache
def _loaded() -> "ThreadpoolController":
    """The libraries that were loaded before the variables were set: looking for them takes 10 ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def use_threads(count: int) -> None:
    """Sets the number of torch's threads, if torch is loaded."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)
