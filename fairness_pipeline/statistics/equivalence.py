"""Two one-sided tests (TOST): is the difference shown to be smaller than a difference that matters?"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Annotated, NamedTuple, Self

import numpy as np
import pydantic

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.statistics.intervals import Estimate, quantile

Share = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
_KINDS = ("cohens_h", "standard_deviations", "relative", "absolute")
POWER = 0.8
"""The power for which numbers of pairs are announced."""


class Margin(Specification):
    """The largest difference that does not matter. Exactly one of these fields gives its size."""

    cohens_h: Annotated[float, pydantic.Field(gt=0, lt=math.pi)] | None = None
    """For rates: Cohen's h, converted to percentage points at the pooled rate of the two sides."""
    standard_deviations: Share | None = None
    """For counts and scores: a number of standard deviations of a single response."""
    relative: Share | None = None
    """A share of the mean of the two sides."""
    absolute: Share | None = None
    """An amount in the measure's unit (percentage points, words per response, score)."""

    @pydantic.model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            raise ValueError(f"expected exactly one of {', '.join(map(repr, _KINDS))}")
        return self

    @property
    def kind(self) -> str:
        """The name of the field that gives the size."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    def bound(self, a: np.ndarray, b: np.ndarray, scale: float = 1.0) -> "Bound":
        """The margin on these pairs, in the measure's unit, with its uncertainty.

        `cohens_h`: the difference of two rates that are h apart, placed symmetrically around the pooled rate on the
        scale of 2 asin sqrt(p) and kept within 0 and 1. It is the same for a rate and its complement.
        `standard_deviations`: k s, where s is the standard deviation of a response (both sides pooled), and at least
        k^2 / 4, which equals `cohens_h` for a rate that is never seen.

        The variance includes one further pair that differs each way by the largest amount that any response shows, in
        addition to the pair in the interval. If no pair among n differs, this must not show more than the rule of three
        allows.

        Args:
            a: One number per pair (for `cohens_h` 0 or 1).
            b: The same for side b.
            scale: The scale of the unit: 100 for percentage points. An absolute margin is in the unit already.
        """
        middle = (a + b) / 2
        mean = float(middle.mean())
        largest = max(1.0, float(np.abs(a).max()), float(np.abs(b).max()))
        unseen = 2 * (scale * largest / len(a)) ** 2
        influence: np.ndarray | float = 0.0  # how far each pair moves the margin
        if self.cohens_h is not None:
            amount, slope = _h_at(self.cohens_h, mean)
            influence = slope * (middle - mean)
        elif self.standard_deviations is not None:
            k, squares = self.standard_deviations, ((a - a.mean()) ** 2 + (b - b.mean()) ** 2) / 2
            spread = math.sqrt(float(squares.mean()))
            amount = k * max(spread, k / 4)
            influence = k * (squares - spread**2) / (2 * spread) if spread > k / 4 else 0.0
        elif self.relative is not None:
            amount = self.relative * abs(mean)
            influence = self.relative * np.sign(mean) * (middle - mean)
        else:
            assert self.absolute is not None
            return Bound(self.absolute, unseen)
        square = scale * scale / len(a)
        return Bound(
            scale * amount,
            square * float(np.mean(np.square(influence))) + unseen,
            square * float(np.mean(influence * (a - b))),
        )

    def of_mean(self, mean: float, variance: float, covariance: float, scale: float = 1.0) -> "Bound":
        """The margin around a mean of the two sides that has no value per response, such as diversity.

        Args:
            mean: The mean of the two sides.
            variance: The variance of that mean.
            covariance: The covariance of that mean with the difference.
            scale: The scale of the unit.

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
        """The margin around the mean of two groups' rates.

        Args:
            rate: That mean, 0 to 1.
            variance: The variance of that mean. Its covariance with the difference is taken as 0, as for groups of
                equal size.
            scale: The scale of the unit.

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
        """The number of independent pairs that shows fairness with 80% power, if it is known before a run.

        It is known for a margin in standard deviations or in Cohen's h, for sides that truly do not differ: n = 2 (z /
        margin)^2.
        """
        size = self.cohens_h or self.standard_deviations
        return 2 * (reach(0.05, math.inf) / size) ** 2 if size else None


class Bound(NamedTuple):
    """A margin in the measure's unit: its size, and its variance and covariance if it is estimated from the data.

    The covariance is the covariance with the difference between the sides.
    """

    amount: float
    variance: float = 0.0
    covariance: float = 0.0


class Equivalence(NamedTuple):
    """The larger p of the two one-sided tests, whether they show equivalence, and how many pairs would show it.

    `pairs_needed`: the number of pairs that would show equivalence with 80% power if the sides truly did not differ.
    None if no number would.
    """

    p: float
    shown: bool
    pairs_needed: int | None = None


def tost(estimate: Estimate, bound: Bound, alpha: float = 0.05, pairs: int = 0) -> Equivalence:
    """Whether the difference is shown to lie within the margin on either side of 0 (Schuirmann 1987).

    A margin that comes from the same pairs (a share of their mean) is itself an estimate. The tests are therefore of
    difference - margin < 0 and difference + margin > 0, each with its own standard error. With a fixed margin this is
    equivalent to the 1 - 2 alpha interval lying inside the margin.

    Args:
        estimate: The difference.
        bound: The margin.
        alpha: The level.
        pairs: The number of pairs that the estimate comes from.

    Examples:
        >>> result = tost(Estimate(0.1, 0.2), Bound(1.0), pairs=100)
        >>> result.shown, result.pairs_needed
        (True, 35)
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


def pairs_if_unseen(
    margin: Margin, estimate: Callable[[int], Estimate], alpha: float, freedom: float, scale: float
) -> int | None:
    """The smallest number of pairs that shows equivalence if no response of any pair shows the measure.

    Nothing varies then, so this is exact: the number from which on `tost` rejects. None if no number does, as with a
    margin that is a share of the mean.

    Args:
        margin: The margin.
        estimate: The estimate of the difference from a number of pairs that show nothing.
        alpha: The level.
        freedom: The degrees of freedom of the clusters; infinite without clusters.
        scale: The scale of the unit: 100 for percentage points.

    Examples:
        >>> from fairness_pipeline.statistics.intervals import rate_difference
        >>> pairs_if_unseen(Margin(cohens_h=0.05), lambda pairs: rate_difference(0, 0, pairs), 0.05, math.inf, 1.0)
        5264
    """
    nothing = margin.bound(np.zeros(1), np.zeros(1), scale)

    def shows(pairs: int) -> bool:
        gap = estimate(pairs).scaled(scale)
        bound = nothing._replace(variance=nothing.variance / pairs**2)
        return tost(gap._replace(freedom=min(gap.freedom, freedom)), bound, alpha, pairs).shown

    if not shows(_MOST_PAIRS):
        return None
    return bisect_left(range(_MOST_PAIRS), True, lo=1, key=shows)


_MOST_PAIRS = 10**9
"""More pairs than anybody has."""


def _error(estimate: Estimate, bound: Bound, side: int) -> float:
    """The standard error of the difference minus (side 1) or plus (side -1) the margin."""
    if not math.isfinite(estimate.error):
        return math.inf
    return math.sqrt(max(0.0, estimate.error**2 + bound.variance - 2 * side * bound.covariance))


def reach(alpha: float, freedom: float = math.inf) -> float:
    """The width that the margin needs, in standard errors, for both tests to reject with power `POWER` at 0."""
    return quantile(1 - alpha, freedom) + quantile((1 + POWER) / 2, freedom)


def _h_at(h: float, rate: float) -> tuple[float, float]:
    """The difference of two rates that are `h` apart around a pooled rate, and its derivative with respect to that
    rate."""
    angle = 2 * math.asin(math.sqrt(min(1.0, max(0.0, rate))))
    if not h / 2 < angle < math.pi - h / 2:  # at an end: from 0 to the rate h above it, or the same below 1
        return math.sin(h / 2) ** 2, 0.0
    return math.sin(h / 2) * math.sin(angle), math.sin(h / 2) * 2 / math.tan(angle)
