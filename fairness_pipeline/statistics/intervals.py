"""The estimated paired difference with its standard error. Intervals and equivalence follow from it."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import scipy  # its special functions avoid distribution objects, which cost a millisecond
from numpy.typing import ArrayLike


class Estimate(NamedTuple):
    """A difference (side a minus side b): centre, standard error and degrees of freedom.

    Infinite degrees of freedom mean a normal distribution. An infinite error means that nothing is known.

    Examples:
        >>> low, high = Estimate(1.0, 0.5).interval(0.95)
        >>> round(low, 2), round(high, 2)
        (0.02, 1.98)
    """

    centre: float
    error: float
    freedom: float = math.inf

    def scaled(self, factor: float) -> Self:
        """The same in another unit."""
        return self._replace(centre=self.centre * factor, error=self.error * factor)

    def minus(self, other: "Estimate") -> Self:
        """The difference to an independent estimate, with the fewer degrees of freedom of both."""
        error, freedom = math.hypot(self.error, other.error), min(self.freedom, other.freedom)
        return self._replace(centre=self.centre - other.centre, error=error, freedom=freedom)

    def interval(self, level: float) -> tuple[float, float]:
        """The central interval of the difference at `level`."""
        if not math.isfinite(self.error):
            return -math.inf, math.inf
        reach = self._quantile(0.5 + level / 2) * self.error
        return float(self.centre - reach), float(self.centre + reach)

    def p_above(self, bound: float) -> float:
        """The one-sided p of the hypothesis that the difference is at or above `bound`. The alternative is below."""
        return self._p(self.centre - bound)

    def p_below(self, bound: float) -> float:
        """The one-sided p of the hypothesis that the difference is at or below `bound`. The alternative is above."""
        return self._p(bound - self.centre)

    def p_zero(self) -> float:
        """The two-sided p of the hypothesis that there is no difference."""
        return min(1.0, 2 * min(self.p_above(0.0), self.p_below(0.0)))

    def in_accord_with(self, p: float, alpha: float = 0.05) -> tuple[Self, float]:
        """Reconciles this estimate with a test's `p`: the more cautious of the two prevails.

        If the test rejects at `alpha` but the 1 - alpha interval contains 0, p becomes the interval's p. If the
        interval excludes 0 but the test does not reject, the error grows until both give the same p.
        """
        p_interval = self.p_zero()
        if p >= alpha > p_interval and math.isfinite(self.error):
            reach = -self._quantile(p / 2)
            return self._replace(error=abs(self.centre) / reach if reach > 0 else math.inf), p
        return self, max(p, p_interval) if p_interval >= alpha else p

    def corrected(self, comparisons: int, alpha: float = 0.05) -> Self:
        """The estimate with an error whose 1 - alpha interval holds for this many estimates together (Bonferroni)."""
        wider = self._quantile(1 - alpha / 2 / comparisons) / self._quantile(1 - alpha / 2)
        return self._replace(error=wider * self.error)

    def minimum_detectable(self, alpha: float = 0.05, power: float = 0.8) -> float:
        """The true difference that a two-sided test at `alpha` would find with `power`."""
        if not math.isfinite(self.error):
            return math.inf
        return (self._quantile(1 - alpha / 2) + self._quantile(power)) * self.error

    def _p(self, excess: float) -> float:
        if not math.isfinite(self.error):
            return 1.0
        if self.error == 0:
            return 0.0 if excess < 0 else 1.0
        scaled = excess / self.error
        return float(
            scipy.special.stdtr(self.freedom, scaled) if math.isfinite(self.freedom) else scipy.special.ndtr(scaled)
        )

    def _quantile(self, share: float) -> float:
        return quantile(share, self.freedom)


def finite(value: float) -> float | None:
    """The value, or None if it is infinite or not a number, as tables store it."""
    return value if math.isfinite(value) else None


def of_interval(centre: float, low: float | None, high: float | None) -> Estimate:
    """The estimate behind a 95% interval in a table. The interval is taken as normal, so the error is never too small.
    Without an interval nothing is known."""
    if low is None or high is None:
        return Estimate(centre, math.inf)
    return Estimate(centre, (high - low) / (2 * quantile(0.975)))


_NORMAL = 1e9
"""Degrees of freedom that are effectively infinite but can still be searched."""


def combined(centre: float, parts: Sequence[tuple[float, float]]) -> Estimate:
    """An estimate whose variance is a sum of independent parts, each with its own degrees of freedom.

    Its 95% interval reaches sqrt(sum of (t_i e_i)^2), each part by its own t (Cochran 1964; Zou and Donner 2008). A
    part with one or two degrees of freedom that happens to be small is therefore not treated as known, unlike with
    Satterthwaite (1946).

    Args:
        centre: The estimate.
        parts: The variance and degrees of freedom of each part. Infinite degrees of freedom mean that the variance is
            effectively known. An infinite variance means that nothing is known.
    """
    known = [(variance, min(max(1.0, freedom), _NORMAL)) for variance, freedom in parts if variance != 0]
    total = sum(variance for variance, _ in known)
    if not known or not math.isfinite(total):
        return Estimate(centre, math.sqrt(total))
    reach = math.sqrt(sum(variance * quantile(0.975, freedom) ** 2 for variance, freedom in known) / total)
    low, high = (pick(freedom for _, freedom in known) for pick in (min, max))
    if reach <= quantile(0.975, high) * (1 + 1e-9):
        return Estimate(centre, math.sqrt(total), high)
    if reach >= quantile(0.975, low) * (1 - 1e-9):
        return Estimate(centre, math.sqrt(total), low)
    from scipy.optimize import brentq  # here, as loading it takes long

    freedom = brentq(lambda degrees: quantile(0.975, degrees) - reach, low, high)
    return Estimate(centre, math.sqrt(total), float(freedom))


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum of independent variances (Satterthwaite 1946), at least 1.

    Args:
        parts: The variance and degrees of freedom of each part.

    Examples:
        >>> satterthwaite([(1.0, 9.0), (1.0, 9.0)])
        18.0
    """
    total = sum(variance for variance, _ in parts)
    squares = sum(variance**2 / max(freedom, 1e-3) for variance, freedom in parts)
    return max(1.0, total**2 / squares) if squares > 0 else 1.0


def quantile(share: float, freedom: float = math.inf) -> float:
    """The quantile of Student's t at a share, or of the normal distribution if the degrees of freedom are infinite."""
    return float(scipy.special.stdtrit(freedom, share) if math.isfinite(freedom) else scipy.special.ndtri(share))


def rate_difference(only_a: int, only_b: int, pairs: int) -> Estimate:
    """The difference of two paired rates (Bonett and Price 2012): one pair is added to each discordant count.

    The plain error would be 0 if no pair is discordant, and three equal pairs would claim certainty.

    Args:
        only_a: Pairs in which only side a has the property.
        only_b: Pairs in which only side b has it.
        pairs: All pairs.

    Examples:
        >>> estimate = rate_difference(only_a=10, only_b=2, pairs=98)
        >>> round(estimate.centre, 2), round(estimate.error, 4)
        (0.08, 0.0366)
    """
    p_a, p_b = (only_a + 1) / (pairs + 2), (only_b + 1) / (pairs + 2)
    error = math.sqrt((p_a + p_b - (p_a - p_b) ** 2) / (pairs + 2))
    return Estimate(p_a - p_b, error)


def most_that_differ(differing: ArrayLike, clusters: ArrayLike, alpha: float = 0.05) -> np.ndarray:
    """The exact upper limit of the share of clusters in which two groups differ (Clopper and Pearson 1934). A rate
    cannot differ by more.

    Examples:
        >>> most_that_differ(np.array([0, 5]), np.array([30, 5])).round(3).tolist()
        [0.095, 1.0]
    """
    differing, clusters = np.asarray(differing, dtype=float), np.asarray(clusters, dtype=float)
    alike = np.maximum(clusters - differing, 1e-9)
    return np.where(differing >= clusters, 1.0, scipy.special.betaincinv(differing + 1, alike, 1 - alpha))


def count_difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The mean of paired differences of counts, with Student's t.

    As in `rate_difference`, one pair that differs by +1 and one that differs by -1 are added. The plain error would be
    0 if all pairs agree, and three equal pairs would claim certainty. In a thousand pairs the two do not matter.
    """
    difference = np.concatenate((a - b, [1.0, -1.0]))
    return Estimate(
        float(difference.mean()), float(difference.std(ddof=1) / math.sqrt(len(difference))), len(difference) - 1
    )


def unseen_count(pairs: int) -> Estimate:
    """`count_difference` of pairs in which nothing is seen."""
    return Estimate(0.0, math.sqrt(2 / ((pairs + 1) * (pairs + 2))), pairs + 1)


def mean_difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The mean of paired differences of scores, with Student's t. One pair alone says nothing."""
    difference = a - b
    if len(difference) < 2:
        return Estimate(float(difference.mean()), math.inf)
    error = float(difference.std(ddof=1) / math.sqrt(len(difference)))
    return Estimate(float(difference.mean()), error, len(difference) - 1)
