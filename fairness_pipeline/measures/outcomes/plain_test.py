"""The usual test, which treats every trial as independent. It is shown beside the verdict, and never part of it."""

from collections.abc import Sequence

import numpy as np
import scipy.special

from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.statistics.groups import Cells


class PlainTest:
    """Chi-square of rates, or F of numbers, over the trials of groups.

    Args:
        cells: The cells for a group column.
        draws: (n,) the number of trials of each cell.
        whole: The cells before averaging over other columns, with the squares of their trials.
        rates: Whether the outcome is a rate.
    """

    def __init__(self, cells: Cells, draws: np.ndarray, whole: OutcomeCells, *, rates: bool) -> None:
        count = len(cells.groups)
        self.name = "chi-square over rows" if rates else "F over rows"
        self._rates = rates
        self._sizes = np.bincount(cells.group, draws, count)
        self._sums = np.bincount(cells.group, draws * cells.value, count)
        squares = float((whole.square * whole.draws).sum()) * self._sizes.sum() / max(1.0, float(whole.draws.sum()))
        self._within = squares - float((np.square(self._sums) / self._sizes).sum())
        self._freedom = max(1.0, self._sizes.sum() - count)

    def between(self, parts: Sequence[Sequence[int] | np.ndarray]) -> tuple[float, float]:
        """The statistic and the p that parts of the groups have equal means. For numbers all groups give the variance.

        Args:
            parts: The groups of each part, numbered as in the cells.
        """
        sizes, sums = (np.array([column[part].sum() for part in parts]) for column in (self._sizes, self._sums))
        total, n, count = sums.sum(), sizes.sum(), len(parts)
        between = float((np.square(sums) / sizes).sum() - total**2 / n)
        if self._rates:
            rate = total / n
            statistic = max(0.0, between) / (rate * (1 - rate)) if 0 < rate < 1 else 0.0
            return statistic, float(scipy.special.chdtrc(count - 1, statistic))
        statistic = between / (count - 1) / (self._within / self._freedom) if self._within > 0 else 0.0
        return statistic, float(scipy.special.fdtrc(count - 1, self._freedom, max(0.0, statistic)))
