"""Two one-sided tests (TOST): is the difference shown to be smaller than one that matters?"""

from typing import Annotated, NamedTuple, Self

import pydantic

from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.yaml_files import Specification

Share = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class Margin(Specification):
    """The largest difference that does not matter."""

    relative: Share | None = None
    """A share of the two sides' mean."""
    absolute: Share | None = None
    """An amount in the measure's unit (percentage points, words a response, score)."""

    @pydantic.model_validator(mode="after")
    def _one(self) -> Self:
        if (self.relative is None) == (self.absolute is None):
            raise ValueError("expected either 'relative' or 'absolute'")
        return self

    def amount(self, mean_a: float, mean_b: float) -> float:
        """The margin in the measure's unit, given both sides' means."""
        return self.absolute if self.absolute is not None else (self.relative or 0.0) * abs(mean_a + mean_b) / 2


class Equivalence(NamedTuple):
    """p of the two one-sided tests (the larger one), and whether the interval lies inside the margin."""

    p: float
    shown: bool


def tost(estimate: Estimate, margin: float, alpha: float = 0.05) -> Equivalence:
    """Whether the difference is shown to lie within +-`margin` (Schuirmann 1987).

    Shown exactly when the 1 - 2 alpha interval lies inside the margin, ends included.
    """
    p = max(estimate.p_above(margin), estimate.p_below(-margin))
    low, high = estimate.interval(1 - 2 * alpha)
    return Equivalence(p, -margin <= low and high <= margin)
