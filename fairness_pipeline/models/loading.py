"""Loads the scorer of a model at its first use, in the process that uses it, if torch runs it; otherwise at once."""

from collections.abc import Callable, Collection
from typing import Protocol

from fairness_pipeline.workspace.distinct import LazyScorer, Scorer


class Computed(Protocol):
    """An object that says where a model runs, and on how many threads."""

    @property
    def threads(self) -> int:
        """The threads."""

    @property
    def device(self) -> str:
        """`auto`, `cpu` or `cuda`."""


def scorer_of(load: Callable[[], Scorer], libraries: Collection[str], specification: Computed) -> Scorer:
    """The scorer: loaded at its first use if torch runs it, else at once.

    What needs no torch (lexicons, linear models, endpoints) is cheap to load or waits for somebody else, so that other
    processes would cost more than they give.

    Args:
        load: Loads it; can be pickled.
        libraries: The libraries of its architecture.
        specification: Its file.
    """
    return LazyScorer(load, specification.threads, specification.device) if "torch" in libraries else load()
