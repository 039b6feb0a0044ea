"""The measures of a dialogue model's responses, in the order in which tables and reports show them."""

from functools import cache
from importlib import import_module

from fairness_pipeline.measures.measure import Measure

_MODULES = ("diversity", "politeness", "sentiment", "attribute_words")
"""Each a module of this folder with a `MEASURE`."""


@cache
def measures() -> tuple[Measure, ...]:
    """All measures."""
    return tuple(import_module(f"fairness_pipeline.measures.{name}").MEASURE for name in _MODULES)


def measure_label(row: str) -> str:
    """What a reader sees for a row of the significance table; attribute lists are named after themselves."""
    found = (measure.outcomes[row].label for measure in measures() if row in measure.outcomes)
    return next(found, row.replace("_", " ").capitalize())


def glanced_at() -> list[str]:
    """The rows of an overview, before the attribute lists."""
    return [name for measure in measures() for name, outcome in measure.outcomes.items() if outcome.glanced]
