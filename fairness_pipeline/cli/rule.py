"""Parses the rules of gates on the command line, and checks that a signed gate was as strict as required."""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from fairness_pipeline.cli.arguments import points, refusals
from fairness_pipeline.reporting.rule import FAIL_ON, MEASURES, STRICT, TOLERATE, Gate, Rule

REFUSED = 3
"""The exit status if a verdict is refused. It is not 2, which means that the command was called wrongly."""
_MARGINS = "margins"
_PARTS = (FAIL_ON, MEASURES, TOLERATE, STRICT, _MARGINS)
_EXAMPLE = "'fail-on=biased; measures=length; tolerate=3; strict; margins=own', of which the first is needed"


class Requirement(NamedTuple):
    """The rule that a signed gate must at least have applied.

    Attributes:
        rule: Its conditions.
        custom_margins: Whether margins, levels and thresholds may differ from the shipped ones.
    """

    rule: Rule
    custom_margins: bool = False

    def lacks(self, gate: Gate) -> Iterator[str]:
        """Yields a phrase for each reason why a signed gate does not meet it."""
        if not gate.refused:
            yield "no gate was asked"
            return
        if gate.status:
            yield f"the gate was closed (exit status {gate.status})"
        if not gate.verdicts:
            yield "it judged no verdict, or its record does not say how many"
        if missing := [name for name in self.rule.refused if name not in gate.refused]:
            yield f"it did not close on {' or '.join(missing)}"
        counted, required = gate.rule.names, self.rule.names
        if counted and (not required or required.keys() - counted.keys()):
            yield f"it looked at {gate.measures} only"
        if gate.tolerated > self.rule.tolerated:
            yield f"it tolerated {gate.tolerated:g} points"
        if self.rule.strict and not gate.strict:
            yield "it did not refuse verdicts without power (strict)"
        if gate.not_as_shipped != {} and not self.custom_margins:
            yield gate.judging


def requirement(text: str) -> Requirement:
    """Parses the rule of `check --require`, for argparse.

    Examples:
        >>> requirement("fail-on=biased,worse; tolerate=2").rule.tolerated
        2.0
    """
    parts: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = map(str.strip, part.partition("="))
        if name not in _PARTS or name in parts or bool(equals) != (name != STRICT) or (equals and not value):
            raise argparse.ArgumentTypeError(f"found '{part}'; expected such as {_EXAMPLE}, each once")
        parts[name] = value
    if FAIL_ON not in parts or parts.get(_MARGINS, "own") != "own":
        raise argparse.ArgumentTypeError(f"found '{text}'; expected such as {_EXAMPLE}")
    tolerated = points(parts[TOLERATE]) if TOLERATE in parts else 0.0
    rule = Rule(refusals(parts[FAIL_ON]), parts.get(MEASURES), tolerated, STRICT in parts)
    return Requirement(rule, _MARGINS in parts)
