"""Loads a scorer that runs on torch at its first use, in the process that uses it, and any other scorer at once."""

from collections.abc import Callable, Collection
from typing import Protocol

from fairness_pipeline.workspace.distinct import LazyScorer, Scorer


class Computed(Protocol):
    """The part of a specification that says on which device and on how many threads a model runs."""

    @property
    def threads(self) -> int:
        """The number of threads."""

    @property
    def device(self) -> str:
        """`auto`, `cpu` or `cuda`."""


def scorer_of(load: Callable[[], Scorer], libraries: Collection[str], specification: Computed) -> Scorer:
    """The scorer, loaded at its first use if it runs on torch, else at once; `load` can be pickled.

    Scorers without torch (lexicons, linear models, endpoints) are cheap to load or wait for a server, so other
    processes would cost more than they gain.
    """
    return LazyScorer(load, specification.threads, specification.device) if "torch" in libraries else load()
