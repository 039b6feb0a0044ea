"""The measures of a dialogue model's responses, in the order of tables and reports."""

from collections.abc import Collection, Iterable
from functools import cache
from importlib import import_module

from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.measures.dialogue import answer_changes, distinguishable, naming
from fairness_pipeline.measures.dialogue.measure import MASKED, Measure, Outcome, Scorings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.workspace.lake import Row

_MODULES = ("diversity", "politeness", "sentiment", "refusal", "length", "attribute_words", "help", "decisions")
"""Modules of this folder, each with a `MEASURE`."""


_LISTED = "the average answer to {more} contexts contains {high} {words}, that to {less} contexts {low}"


@cache
def all_measures() -> tuple[Measure, ...]:
    """All measures, including those on request."""
    return tuple(import_module(f"fairness_pipeline.measures.dialogue.{name}").MEASURE for name in _MODULES)


def measures(further: Collection[str] = ()) -> tuple[Measure, ...]:
    """The measures of every audit, and those on request that are named.

    Args:
        further: `MeasureSettings.further`, or the names of the existing tables.
    """
    return tuple(measure for measure in all_measures() if not measure.on_request or measure.table in further)


@cache
def _outcomes() -> dict[str, Outcome]:
    """All outcomes with a fixed name. Those of the attribute lists are named by the dimension."""
    of_measures = {name: outcome for measure in all_measures() for name, outcome in measure.outcomes.items()}
    return distinguishable.OUTCOMES | of_measures | answer_changes.OUTCOMES | naming.OUTCOMES


def marking() -> tuple[Measure, ...]:
    """The measures by which a text counts as biased by itself."""
    return tuple(measure for measure in measures() if measure.scorer and measure.marks_text)


def scorings(of: Iterable[Measure], settings: MeasureSettings, dimension: Dimension) -> Scorings:
    """The scoring of each measure under a profile's settings in a dimension, by table."""
    return {measure.table: measure.scoring(settings, dimension) for measure in of}


def measure_label(row: str) -> str:
    """The name that a reader sees for a row of the significance table. Attribute lists are shown by their names."""
    if row.endswith(MASKED):
        base = row.removesuffix(MASKED)
        return f"{measure_label(base)}, {neutral_reading_of(base)}"
    outcome = _outcomes().get(row)
    return outcome.label if outcome else row.replace("_", " ").capitalize()


def neutral_reading_of(row: str) -> str:
    """A description of the neutral reading of a row."""
    return next(
        (measure.neutral_reading for measure in all_measures() if row in measure.outcomes), Measure.neutral_reading
    )


def finding(row: Row, groups: tuple[str, str]) -> str:
    """A row of the significance table in words.

    Args:
        row: As `COMPARISON`.
        groups: The names of side a and side b.
    """
    outcome = _outcomes().get(row["measure"])
    sides = sorted(zip((row["value_a"], row["value_b"]), groups, strict=True), key=lambda side: -side[0])
    (high, more), (low, less) = sides
    words = measure_label(row["measure"]).lower()
    sentence = outcome.sentence if outcome else _LISTED
    # Use as many digits as are needed to distinguish the two values.
    digits = next((d for d in range(3, 8) if f"{high:.{d}g}" != f"{low:.{d}g}"), 3)
    numbers = {name: f"{value:.{digits}g}" for name, value in (("high", high), ("low", low))}
    return sentence.format(**numbers, more=more, less=less, words=words)


def glanced_at() -> list[str]:
    """The rows of an overview that come before the attribute lists."""
    return [name for name, outcome in _outcomes().items() if not outcome.part]


def harmful() -> list[str]:
    """The rows by which a single response counts as bad for the person who gets it."""
    marking_measures = (measure for measure in measures() if measure.marks_text)
    return [name for measure in marking_measures for name, outcome in measure.outcomes.items() if outcome.harmful]


def is_part(row: str) -> bool:
    """Whether a row is part of another row or another reading of it. Such a row has no verdict of its own."""
    return row.endswith(MASKED) or (row in _outcomes() and _outcomes()[row].part)


def is_gap(row: str) -> bool:
    """Whether a row has a verdict of its own and says how much more one group gets, not only that something differs."""
    return not is_part(row) and row not in distinguishable.OUTCOMES | naming.OUTCOMES


def is_harmful(row: str) -> bool:
    """Whether a row counts something bad for the person who gets the answer."""
    return row in _outcomes() and _outcomes()[row].harmful
