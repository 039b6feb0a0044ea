"""Collects the systems of all studies, and judges one of them in a worker process."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from fairness_pipeline_tests.lineup.shared import System, outcome

ROOMS = ("dialogue", "any_difference", "language", "equity", "classifiers", "annotators", "outcomes", "messages")


def systems() -> Iterator[System]:
    """Yields the systems of all studies."""
    for module in ROOMS:
        yield from import_module(f"fairness_pipeline_tests.lineup.{module}").systems()


def drawn(work: tuple[str, int]) -> tuple[str, dict[str, Any]]:
    """Returns a system's key and the outcome of its draws; `work` is the key and the number of draws."""
    key, count = work
    warnings.simplefilter("ignore")
    system = next(system for system in systems() if system.key == key)
    return key, outcome(system, [system.judge(draw) for draw in range(count)]).__dict__
