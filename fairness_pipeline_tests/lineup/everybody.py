"""All systems of all studies, and the draws of one of them, for a process of its own."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from fairness_pipeline_tests.lineup.shared import System, outcome

ROOMS = ("dialogue", "any_difference", "language", "equity", "classifiers", "annotators", "outcomes", "messages")


def systems() -> Iterator[System]:
    """All systems of all studies."""
    for room in ROOMS:
        yield from import_module(f"fairness_pipeline_tests.lineup.{room}").systems()


def drawn(work: tuple[str, int]) -> tuple[str, dict[str, Any]]:
    """A system's key and how its draws ended, from its key and how many draws there are."""
    key, count = work
    warnings.simplefilter("ignore")
    system = next(system for system in systems() if system.key == key)
    return key, outcome(system, [system.judge(draw) for draw in range(count)]).__dict__
