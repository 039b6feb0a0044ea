"""The ratio of a group's rate to the best group's, with an interval, and what it says of the four-fifths rule.

The plain rule "estimate below 0.8" accuses an innocent group in 78 to 100% of tables with eight groups.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.intervals import quantile

FOUR_FIFTHS = 0.8
_FEW = 10
"""With fewer selected, or fewer unselected, rows or clusters the interval is at least Koopman's."""
_WIDEST = 1e9

Word = Literal["below 4/5 shown", "4/5 shown", "cannot tell"]


class Ratio(NamedTuple):
    """The ratio of two rates with its interval; None if nobody is selected in the second group."""

    value: float | None
    low: float
    high: float


class Selected(NamedTuple):
    """A group's rows.

    Attributes:
        selected: The number of selected rows.
        rows: The number of rows.
        clusters: The number of clusters; that of rows if rows are independent.
        clusters_selected: The number of clusters with selected rows, or with unselected rows, whichever is smaller.
    """

    selected: float
    rows: float
    clusters: float
    clusters_selected: float

    @classmethod
    def of(cls, selected: np.ndarray, cluster: np.ndarray | None) -> "Selected":
        """From the rows of a group.

        Args:
            selected: (n,) 1 or 0.
            cluster: (n,) the cluster of each row; None if rows are independent.
        """
        total, rows = float(selected.sum()), len(selected)
        if cluster is None:
            return cls(total, rows, rows, min(total, rows - total))
        numbers = np.unique(cluster, return_inverse=True)[1]
        sums, sizes = np.bincount(numbers, selected), np.bincount(numbers)
        return cls(total, rows, len(sizes), float(min((sums > 0).sum(), (sums < sizes).sum())))


def rate_ratio(first: Selected, second: Selected, variance: float, freedom: float, level: float = 0.95) -> Ratio:
    """The ratio of the first group's rate to the second's, on the log scale.

    If few rows or clusters are selected, or few are not, the interval is at least Koopman's for as many independent
    rows as there are clusters. With fewer than eight clusters nothing is known.

    Args:
        first: The rows of the first group.
        second: The rows of the second group.
        variance: The variance of the log ratio; NaN if it is unknown, as when nobody is selected.
        freedom: Its degrees of freedom.
        level: The level of the interval.

    Examples:
        >>> groups = [Selected.of(np.repeat([1.0, 0.0], [count, 100 - count]), None) for count in (30, 50)]
        >>> ratio = rate_ratio(*groups, 1 / 30 - 1 / 100 + 1 / 50 - 1 / 100, math.inf)
        >>> round(ratio.value, 2), round(ratio.low, 3), round(ratio.high, 3)
        (0.6, 0.42, 0.858)
    """
    rates = first.selected / first.rows, second.selected / second.rows
    if rates[1] == 0:
        return Ratio(None, 0.0, math.inf)
    value = rates[0] / rates[1]
    groups = (first, second)
    clustered = any(group.clusters < group.rows for group in groups)
    if clustered and min(group.clusters for group in groups) < FEWEST_TO_TELL:
        return Ratio(value, 0.0, math.inf)
    intervals = []
    if value > 0 and math.isfinite(variance) and variance > 0:
        reach = quantile(0.5 + level / 2, freedom) * math.sqrt(variance)
        intervals.append((value * math.exp(-reach), value * math.exp(reach)))
    if min(group.clusters_selected for group in groups) < _FEW or not intervals:
        counts = [rate * group.clusters for rate, group in zip(rates, groups, strict=True)]
        intervals.append(koopman((counts[0], counts[1]), (first.clusters, second.clusters), level))
    return Ratio(value, min(low for low, _ in intervals), max(high for _, high in intervals))


def koopman(selected: tuple[float, float], sizes: tuple[float, float], level: float = 0.95) -> tuple[float, float]:
    """The score interval of the ratio of two independent rates (Koopman 1984).

    Examples:
        >>> low, high = koopman((3, 9), (100, 100))
        >>> round(low, 4), round(high, 4)
        (0.0995, 1.0998)
    """
    from scipy.optimize import brentq  # here, as loading it takes long

    (x, y), (m, n) = selected, sizes
    most = quantile(0.5 + level / 2) ** 2

    def excess(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        middle = ratio * (m + y) + x + n
        first = (middle - math.sqrt(max(0.0, middle**2 - 4 * ratio * (m + n) * (x + y)))) / (2 * (m + n))
        first = min(1.0, ratio, max(0.0, first))
        return _score(x, m, first) + _score(y, n, min(1.0, first / ratio)) - most

    end = math.log(_WIDEST)
    centre = math.log(max(x, 1e-6) / m * n / max(y, 1e-6))
    low = math.exp(brentq(excess, -end, centre)) if x > 0 and excess(-end) > 0 > excess(centre) else 0.0
    high = math.exp(brentq(excess, centre, end)) if y > 0 and excess(end) > 0 > excess(centre) else math.inf
    return low, high


def _score(count: float, size: float, rate: float) -> float:
    """The square of how far a count lies from a rate, in standard deviations of the rate."""
    gap = count - size * rate
    if abs(gap) <= 1e-9 * size:
        return 0.0
    return gap**2 / max(size * rate * (1 - rate), 1e-12)


def log_ratio_variance(
    selected: np.ndarray, group: np.ndarray, first: int, second: int, cluster: np.ndarray | None
) -> tuple[float, float]:
    """The variance of the log ratio of two groups' rates, and its degrees of freedom: over clusters by linearisation,
    or over independent rows.

    Args:
        selected: (n,) 1 or 0.
        group: (n,) the group of each row, numbered from 0.
        first: The first group.
        second: The second group.
        cluster: (n,) the cluster of each row, numbered from 0; None if rows are independent.
    """
    influence = np.zeros(len(selected))
    for number, sign in ((first, 1.0), (second, -1.0)):
        mask = group == number
        rate, size = selected[mask].mean(), mask.sum()
        if rate == 0:
            return math.nan, math.inf
        influence[mask] += sign * (selected[mask] / rate - 1) / size
    if cluster is None:
        return float(np.square(influence).sum()), math.inf
    in_either = (group == first) | (group == second)
    numbers = np.unique(cluster[in_either], return_inverse=True)[1]
    count = int(numbers.max()) + 1
    if count < 2:
        return math.nan, math.inf
    sums = np.bincount(numbers, influence[in_either], count)
    return float(np.square(sums).sum()) * count / (count - 1), count - 1.0


def word_of(low: float, high: float) -> Word:
    """The word for what an interval of the ratio says of four fifths.

    Examples:
        >>> word_of(0.5, 0.7), word_of(0.85, 1.0), word_of(0.7, 0.9)
        ('below 4/5 shown', '4/5 shown', 'cannot tell')
    """
    return "below 4/5 shown" if high < FOUR_FIFTHS else "4/5 shown" if low >= FOUR_FIFTHS else "cannot tell"
