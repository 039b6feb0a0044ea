"""Draws differences with characters, for displays of text without pictures."""

from collections.abc import Callable

from fairness_pipeline.lineage.assets import Glance, Result
from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.reporting.next_steps import next_steps
from fairness_pipeline.reporting.results import Audit, counted, in_margins, severity, shown_verdict
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Key, Row

_HALF = 10
_FARTHEST = 5.0
"""In margins; an arrow at the edge stands for larger differences."""


def text_plot(rows: list[tuple[str, Row]]) -> str:
    """Draws a line for each row: label, difference with its 95% interval on a scale of margins, number, and verdict.

    `┊` is no difference; between the `:` on either side of it a difference does not matter.

    Args:
        rows: A label and a row of a significance table.
    """
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"{label:<{width}} {_axis(row)} {shown_verdict(row)} {with_unit(row)}" for label, row in rows)


def judged(study: AnyStudy) -> Callable[[AnyPart, Key, Result], Glance]:
    """Returns a function for what the UI shows beside a study's verdicts: the audit at a glance."""
    return lambda part, key, result: Glance(summary(study, part, key, result.rows))


def _axis(row: Row) -> str:
    line = [" "] * (2 * _HALF + 1)
    for bound in (-1.0, 1.0):
        line[_position(bound)] = ":"
    line[_HALF] = "┊"
    value, low, high = (in_margins(row, name) for name in ("difference", "ci_low", "ci_high"))
    if value is not None:
        if low is not None and high is not None:
            line[_position(low) : _position(high) + 1] = "─" * (_position(high) - _position(low) + 1)
        line[_position(value)] = "●" if abs(value) <= _FARTHEST else "▶" if value > 0 else "◀"
    return "".join(line)


def _position(value: float) -> int:
    return _HALF + round(_HALF * max(-_FARTHEST, min(_FARTHEST, value)) / _FARTHEST)


def summary(study: AnyStudy, part: AnyPart, key: Key, rows: list[Row]) -> str:
    """Returns an audit at a glance, as Markdown: counts of verdicts, the worst in words, all drawn, what to do now."""
    gated = sorted((row for row in rows if study.gated(row)), key=severity(study))
    counts = ", ".join(f"{number} {name}" for name, number in counted(study, [Audit(key, rows)]).items())
    finding = f": {study.finding(part, key, gated[0])}" if gated and shown_verdict(gated[0]) in FINDINGS else ""
    drawn = text_plot([(study.label(row), study.decisive(row)) for row in gated])
    steps = "\n".join(f"- {step.line}" for step in next_steps(study, part, [Audit(key, rows)]))
    return f"{counts}{finding}\n```\n{drawn}\n```\n**What to do now**\n{steps}"
