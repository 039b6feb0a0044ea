"""The rule of a gate: the conditions that close it, in words, and whether they are as strict as somebody demands."""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from fairness_pipeline.reporting.summary import Gate

REFUSED = 3
"""The exit status if a verdict is refused. It is not 2, which means that the command was called wrongly."""
NAMES, WORSE = "names", "worse"
REFUSABLE = ("biased", "inconclusive", NAMES, WORSE)
"""What may close a gate: verdicts, findings about single names, and what became worse than a baseline."""
_FAIL_ON, _MEASURES, _TOLERATE, _STRICT, _MARGINS = _PARTS = ("fail-on", "measures", "tolerate", "strict", "margins")


class Rule(NamedTuple):
    """The conditions that close the gate.

    Attributes:
        refused: Names from `REFUSABLE`.
        measures: The names of the rows that count, separated by commas; None means all rows.
        tolerated: Biased rates do not close the gate if they differ by at most this many percentage points.
        strict: Whether the gate stays closed if one of the rows that count could not have been biased.
    """

    refused: tuple[str, ...] = ("biased",)
    measures: str | None = None
    tolerated: float = 0.0
    strict: bool = False

    @property
    def told(self) -> str:
        """The rule on one line, as `check --require` takes it."""
        parts = [f"{_FAIL_ON}={','.join(self.refused)}"]
        parts += [f"{_MEASURES}={self.measures}"] if self.measures else []
        parts += [f"{_TOLERATE}={self.tolerated:g}"] if self.tolerated else []
        return "; ".join([*parts, *([_STRICT] if self.strict else [])])


def refusals(text: str) -> tuple[str, ...]:
    """Parses what closes the gate, for argparse: names separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in found if name not in REFUSABLE]:
        raise argparse.ArgumentTypeError(f"invalid choice: '{unknown[0]}' (choose from {', '.join(REFUSABLE)})")
    return found


class Requirement(NamedTuple):
    """The rule that a signed gate must have been asked for, at least.

    Attributes:
        rule: Its conditions.
        own_margins: Whether margins and levels may differ from the shipped ones.
    """

    rule: Rule
    own_margins: bool = False

    def lacks(self, gate: Gate) -> Iterator[str]:
        """Why a signed gate does not meet it, a phrase each.

        Args:
            gate: What was signed.
        """
        if not gate.refused:
            yield "no gate was asked"
            return
        if gate.status:
            yield f"the gate was closed (exit status {gate.status})"
        if missing := [name for name in self.rule.refused if name not in gate.refused]:
            yield f"it did not close on {' or '.join(missing)}"
        counted, wanted = names_in(gate.measures), names_in(self.rule.measures)
        if counted and (not wanted or wanted.keys() - counted.keys()):
            yield f"it looked at {gate.measures} only"
        if gate.tolerated > self.rule.tolerated:
            yield f"it tolerated {gate.tolerated:g} points"
        if self.rule.strict and not gate.strict:
            yield "it was not strict about verdicts that could not have been biased"
        if gate.own_margins != {} and not self.own_margins:
            yield gate.told_margins


def requirement(text: str) -> Requirement:
    """Parses what `check --require` demands, for argparse.

    Examples:
        >>> requirement("fail-on=biased,worse; tolerate=2").rule.tolerated
        2.0
    """
    parts = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _, value = part.partition("=")
        parts[name.strip()] = value.strip()
    if unknown := [name for name in parts if name not in _PARTS]:
        raise argparse.ArgumentTypeError(f"unknown part '{unknown[0]}'; expected {'; '.join(_PARTS)}")
    if _FAIL_ON not in parts:
        raise argparse.ArgumentTypeError(f"expected '{_FAIL_ON}=biased', with '; tolerate=3' and so on after it")
    if parts.get(_MARGINS, "own") != "own" or parts.get(_STRICT):
        raise argparse.ArgumentTypeError(f"expected '{_MARGINS}=own' and '{_STRICT}' without a value")
    try:
        tolerated = float(parts.get(_TOLERATE, 0))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{_TOLERATE}: expected points, found '{parts[_TOLERATE]}'") from None
    rule = Rule(refusals(parts[_FAIL_ON]), parts.get(_MEASURES), tolerated, _STRICT in parts)
    return Requirement(rule, _MARGINS in parts)


def names_in(measures: str | None) -> dict[str, None]:
    """The names of rows that count, in order; empty if all count."""
    return dict.fromkeys(name.strip() for name in measures.split(",")) if measures else {}
