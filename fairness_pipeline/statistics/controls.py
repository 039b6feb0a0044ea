"""The rule by which a control overrules a shown difference, in all studies: only by showing something itself.

A control that *removes* something (the groups' words masked, groups inferred without the label's words) overrules if
its gap is shown to be smaller than the shown difference predicts. A control that *adds nothing about the group* (a
parrot, a rewording) overrules if its gap is shown to be at least the share of the shown difference that it must
explain. A control that shows neither changes no verdict; it is too small to tell, and the row says so.
"""

import re
from collections.abc import Mapping
from typing import Any

from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.verdicts import Doubt

EXPLAINED = 0.5
"""The share of a difference that must be explained: half of it or more."""
TOO_SMALL = "the control is too small to tell"
"""In the note of a row whose verdict stands because a control shows neither."""


def p_smaller(predicted: float, excess: Estimate) -> float:
    """The p of the hypothesis that a control leaves as much of a difference as is predicted. It is 1 if half of
    that or more is left: a difference that is only a little smaller is still there.

    Args:
        predicted: The gap that the shown difference predicts.
        excess: The control's gap minus the predicted one, in the same unit.

    Examples:
        >>> round(p_smaller(10.0, Estimate(-6.0, 2.0)), 4), p_smaller(10.0, Estimate(-2.0, 0.1))
        (0.0013, 1.0)
    """
    if predicted == 0 or 1 + excess.centre / predicted >= EXPLAINED:
        return 1.0
    return excess.p_above(0.0) if predicted > 0 else excess.p_below(0.0)


def p_as_large(shown: float, excess: Estimate) -> float:
    """The p of the hypothesis that a control shows less than the share of a difference that it must explain.

    Args:
        shown: The shown difference; its sign counts.
        excess: The control's gap minus that share, in the same unit.
    """
    return excess.p_below(0.0) if shown > 0 else excess.p_above(0.0)


def too_small(size: str) -> str:
    """The note of a row whose control shows neither.

    Args:
        size: What the control rests on, such as `27 texts`.
    """
    return f"{TOO_SMALL} ({size})"


def control_doubts(row: Mapping[str, Any]) -> list[Doubt]:
    """The reservation about a row whose verdict stands because its control shows neither; empty if there is none."""
    match = re.search(rf"{TOO_SMALL} \([^)]*\)", row.get("note") or "")
    return [Doubt(match.group(), _TOO_SMALL)] if match else []


_TOO_SMALL = (
    "A control could show that the instrument or the exchanged words cause the difference. It rests on too few answers "
    "to show either, so the verdict stays as it is without it."
)
