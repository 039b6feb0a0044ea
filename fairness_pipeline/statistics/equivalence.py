"""Two one-sided tests (TOST): is the difference shown to be smaller than one that matters?"""

import math
from typing import Annotated, NamedTuple, Self

import numpy as np
import pydantic

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.statistics.intervals import Estimate, quantile

Share = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
_KINDS = ("cohens_h", "standard_deviations", "relative", "absolute")
_POWER = 0.8


class Margin(Specification):
    """The largest difference that does not matter; one of these says how large it is."""

    cohens_h: Annotated[float, pydantic.Field(gt=0, lt=math.pi)] | None = None
    """Of rates: Cohen's h, turned into percentage points at the two sides' pooled rate."""
    standard_deviations: Share | None = None
    """Of counts and scores: standard deviations of a response's."""
    relative: Share | None = None
    """A share of the two sides' mean."""
    absolute: Share | None = None
    """An amount in the measure's unit (percentage points, words a response, score)."""

    @pydantic.model_validator(mode="after")
    def _one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            raise ValueError(f"expected exactly one of {', '.join(map(repr, _KINDS))}")
        return self

    @property
    def kind(self) -> str:
        """Which of them it is."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    def bound(self, a: np.ndarray, b: np.ndarray, scale: float = 1.0) -> "Bound":
        """The margin on these pairs, in the measure's unit, with how sure it is.

        `cohens_h`: the difference of two rates h apart, placed evenly about the pooled rate on the scale of
        2 asin sqrt(p), and kept within 0 and 1; the same for a rate and its complement. `standard_deviations`: k s, s
        that of a response (both sides pooled), and k^2 / 4 at least, which is what `cohens_h` comes to for a rate that
        is never seen.

        To its variance is added that of one pair more, differing each way by as much as any response shows, than the
        interval holds already: no pair that differs among n must not show more than the rule of three allows.

        Args:
            a: One number a pair (for `cohens_h` 0 or 1).
            b: The same for side b.
            scale: The unit's: 100 for percentage points. An absolute margin is in the unit already.
        """
        middle = (a + b) / 2
        mean = float(middle.mean())
        largest = max(1.0, float(np.abs(a).max()), float(np.abs(b).max()))
        unseen = 2 * (scale * largest / len(a)) ** 2
        moved: np.ndarray | float = 0.0  # how far a pair moves the margin: its influence function
        if self.cohens_h is not None:
            amount, slope = _h_at(self.cohens_h, mean)
            moved = slope * (middle - mean)
        elif self.standard_deviations is not None:
            k, squares = self.standard_deviations, ((a - a.mean()) ** 2 + (b - b.mean()) ** 2) / 2
            spread = math.sqrt(float(squares.mean()))
            amount = k * max(spread, k / 4)
            moved = k * (squares - spread**2) / (2 * spread) if spread > k / 4 else 0.0
        elif self.relative is not None:
            amount = self.relative * abs(mean)
            moved = self.relative * np.sign(mean) * (middle - mean)
        else:
            assert self.absolute is not None
            return Bound(self.absolute, unseen)
        square = scale * scale / len(a)
        return Bound(
            scale * amount,
            square * float(np.mean(np.square(moved))) + unseen,
            square * float(np.mean(moved * (a - b))),
        )

    def of_mean(self, mean: float, variance: float, covariance: float, scale: float = 1.0) -> "Bound":
        """The margin about a mean of the two sides that no response has a share of, as diversity.

        Args:
            mean: Of the two sides.
            variance: Of that mean.
            covariance: Of it with the difference.
            scale: The unit's.

        Raises:
            FairnessError: the margin is of another kind.
        """
        if self.absolute is not None:
            return Bound(self.absolute)
        if self.relative is None:
            raise FairnessError(f"a margin in {self.kind} is not defined for a measure of all responses together")
        share = scale * self.relative
        return Bound(share * mean, share**2 * variance, share * scale * covariance)

    def of_rate(self, rate: float, variance: float, scale: float = 1.0) -> "Bound":
        """The margin about the mean of two groups' rates.

        Args:
            rate: That mean, 0 to 1.
            variance: Of it; its covariance with the difference is taken to be 0, as for groups of one size.
            scale: The unit's.

        Raises:
            FairnessError: the margin is of another kind.
        """
        if self.absolute is not None:
            return Bound(self.absolute)
        if self.relative is not None:
            return Bound(scale * self.relative * rate, (scale * self.relative) ** 2 * variance)
        if self.cohens_h is None:
            raise FairnessError(f"a margin in {self.kind} is not defined for a rate of groups; give cohens_h")
        amount, slope = _h_at(self.cohens_h, rate)
        return Bound(scale * amount, (scale * slope) ** 2 * variance)

    def before(self) -> float | None:
        """Independent pairs from which on fairness is shown four times in five, where that is known before a run.

        For a margin in standard deviations, or Cohen's h, and sides that truly do not differ; n = 2 (z / margin)^2.
        """
        size = self.cohens_h or self.standard_deviations
        return 2 * (reach(0.05, math.inf) / size) ** 2 if size else None


class Bound(NamedTuple):
    """A margin in the measure's unit: its size, and where it comes from the data, its variance and covariance.

    The covariance is that with the difference between the sides.
    """

    amount: float
    variance: float = 0.0
    covariance: float = 0.0


class Equivalence(NamedTuple):
    """p of the two one-sided tests (the larger one), whether they show it, and how many pairs would.

    `pairs_needed`: with as many, and sides that truly do not differ, it would be shown four times in five; None where
    no number would do.
    """

    p: float
    shown: bool
    pairs_needed: int | None = None


def tost(estimate: Estimate, bound: Bound, alpha: float = 0.05, pairs: int = 0) -> Equivalence:
    """Whether the difference is shown to lie within the margin on either side of 0 (Schuirmann 1987).

    A margin that comes from the same pairs (a share of their mean) is an estimate itself. What is tested is therefore
    difference - margin < 0 and difference + margin > 0, each with its own standard error; with a fixed margin this is
    that the 1 - 2 alpha interval lies inside.

    Args:
        estimate: The difference.
        bound: The margin.
        alpha: The level.
        pairs: From how many the estimate comes.
    """
    amount = bound.amount
    above, below = (
        estimate._replace(centre=estimate.centre - side * amount, error=_error(estimate, bound, side))
        for side in (1, -1)
    )
    p = max(above.p_above(0.0), below.p_below(0.0))
    error = max(above.error, below.error)
    needed = None
    if amount > 0 and math.isfinite(error):
        needed = math.ceil(pairs * (reach(alpha, estimate.freedom) * error / amount) ** 2)
    return Equivalence(p, p <= alpha, needed)


def _error(estimate: Estimate, bound: Bound, side: int) -> float:
    """The standard error of the difference minus (side 1) or plus (side -1) the margin."""
    if not math.isfinite(estimate.error):
        return math.inf
    return math.sqrt(max(0.0, estimate.error**2 + bound.variance - 2 * side * bound.covariance))


def reach(alpha: float, freedom: float = math.inf) -> float:
    """How many standard errors the margin must be wide, for both tests to reject with the wanted power at 0."""
    return quantile(1 - alpha, freedom) + quantile((1 + _POWER) / 2, freedom)


def _h_at(h: float, rate: float) -> tuple[float, float]:
    """The difference of two rates that are `h` apart about a pooled rate, and its derivative by that rate."""
    angle = 2 * math.asin(math.sqrt(min(1.0, max(0.0, rate))))
    if not h / 2 < angle < math.pi - h / 2:  # at an end: from 0 to what is h from it, or so below 1
        return math.sin(h / 2) ** 2, 0.0
    return math.sin(h / 2) * math.sin(angle), math.sin(h / 2) * 2 / math.tan(angle)
