"""Defines the rule of a gate, the conditions that close it, and the outcome of a gate, as it is signed."""

from typing import NamedTuple

from pydantic import BaseModel

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.reporting.results import describe_judging

FAIL_ON, MEASURES, TOLERATE, STRICT = "fail-on", "measures", "tolerate", "strict"
"""The parts of a rule."""


class Rule(NamedTuple):
    """The conditions that close the gate.

    Attributes:
        refused: Verdicts and findings that close it: `biased`, `inconclusive`, `names`, `worse`.
        measures: The names of the rows that count, separated by commas; None means all rows.
        tolerated: Biased rates do not close the gate if they differ by at most this many percentage points.
        strict: Whether the gate stays closed if one of the rows that count could not have been biased.
    """

    refused: tuple[str, ...] = ("biased",)
    measures: str | None = None
    tolerated: float = 0.0
    strict: bool = False

    @property
    def text(self) -> str:
        """The rule on one line, as `check --require` takes it."""
        parts = [f"{FAIL_ON}={','.join(self.refused)}"]
        parts += [f"{MEASURES}={self.measures}"] if self.measures else []
        parts += [f"{TOLERATE}={self.tolerated:g}"] if self.tolerated else []
        return "; ".join([*parts, *([STRICT] if self.strict else [])])

    @property
    def names(self) -> dict[str, None]:
        """The names of the rows that count, in order; empty if all count."""
        return dict.fromkeys(name.strip() for name in self.measures.split(",")) if self.measures else {}


class Gate(BaseModel):
    """The outcome of a gate.

    Attributes:
        refused: What closes it; empty if no gate was requested. This and the next three are its `Rule`.
        measures: The names of the rows that count, separated by commas; None if all count.
        tolerated: Points by which biased rates may differ.
        strict: Whether it stays closed on a verdict that could not have been biased.
        status: The exit status.
        verdicts: The number of verdicts that it looked at.
        not_as_shipped: The margins, levels and thresholds that are not as shipped, in words; None in summaries of
            versions that did not record them.
        baseline: The baseline, with the SHA-256 if it was a file; empty if there was none.
    """

    refused: tuple[str, ...]
    measures: str | None
    tolerated: float
    strict: bool
    status: int
    verdicts: int = 0
    not_as_shipped: dict[str, str] | None = None
    baseline: str = ""

    @property
    def rule(self) -> Rule:
        """Its rule."""
        return Rule(self.refused, self.measures, self.tolerated, self.strict)

    @property
    def description(self) -> str:
        """How it ended, by which rule, and how verdicts were decided."""
        if not self.refused:
            return "no gate was asked: nothing says that these verdicts pass"
        parts = [
            f"the gate {'was closed' if self.status else 'was passed'} (exit status {self.status})",
            f"{number_of(self.verdicts, 'verdict')} by the rule '{self.rule.text}'",
            self.judging,
        ]
        return "; ".join([*parts, *([f"compared with {self.baseline}"] if self.baseline else [])])

    @property
    def judging(self) -> str:
        """How verdicts were decided."""
        if self.not_as_shipped is None:
            return "its record names no margins"
        return describe_judging(self.not_as_shipped)
