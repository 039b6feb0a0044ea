"""The measures of a dialogue model's responses, in the order of tables and reports."""

from functools import cache
from importlib import import_module

from fairness_pipeline.measures.dialogue.measure import MASKED, Measure
from fairness_pipeline.workspace.lake import Row

_MODULES = ("diversity", "politeness", "sentiment", "refusal", "length", "attribute_words")
"""Modules of this folder, each with a `MEASURE`."""


_LISTED = "the average answer to {more} contexts contains {high} {words}, that to {less} contexts {low}"


@cache
def measures() -> tuple[Measure, ...]:
    """All measures."""
    return tuple(import_module(f"fairness_pipeline.measures.dialogue.{name}").MEASURE for name in _MODULES)


def measure_label(row: str) -> str:
    """The name that a reader sees for a row of the significance table. Attribute lists use their own names."""
    if row.endswith(MASKED):
        own = row.removesuffix(MASKED)
        neutral = next((m.neutral_reading for m in measures() if own in m.outcomes), Measure.neutral_reading)
        return f"{measure_label(own)}, {neutral}"
    found = (measure.outcomes[row].label for measure in measures() if row in measure.outcomes)
    return next(found, row.replace("_", " ").capitalize())


def finding(row: Row, groups: tuple[str, str]) -> str:
    """A row of the significance table in words.

    Args:
        row: As `COMPARISON`.
        groups: The names of side a and side b.
    """
    found = (measure.outcomes[row["measure"]].sentence for measure in measures() if row["measure"] in measure.outcomes)
    sides = sorted(zip((row["value_a"], row["value_b"]), groups, strict=True), key=lambda side: -side[0])
    (high, more), (low, less) = sides
    words = measure_label(row["measure"]).lower()
    sentence = next(found, _LISTED)
    # Use as many digits as are needed to distinguish the two values.
    digits = next((d for d in range(3, 8) if f"{high:.{d}g}" != f"{low:.{d}g}"), 3)
    shown = {name: f"{value:.{digits}g}" for name, value in (("high", high), ("low", low))}
    return sentence.format(**shown, more=more, less=less, words=words)


def glanced_at() -> list[str]:
    """The rows of an overview that come before the attribute lists."""
    return [name for measure in measures() for name, outcome in measure.outcomes.items() if not outcome.part]


def harmful() -> list[str]:
    """The rows that mark a response, read by itself, as bad for whoever gets it."""
    own = (measure for measure in measures() if measure.marks_text)
    return [name for measure in own for name, outcome in measure.outcomes.items() if outcome.harmful]


def is_part(row: str) -> bool:
    """Whether a row is part of another row or another reading of it. Such a row has no verdict of its own."""
    return row.endswith(MASKED) or any(m.outcomes[row].part for m in measures() if row in m.outcomes)
