"""Tests whether a group of annotators is divided: half of it may lean one way, half the other.

An annotator's leaning is how much more often they say positive than others do on the same items. The test compares
between groups how far leanings spread around the group's mean, beyond the chance of single labels.
"""

import math
from typing import NamedTuple

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.measures.annotators.item_by_group import strictness
from fairness_pipeline.statistics.intervals import quantile
from fairness_pipeline.statistics.welch import of_like_labour, permuted_welch

SPREAD_MARGIN = 0.1
"""A difference of the groups' typical leanings that does not matter."""
_FEWEST = 3
"""The fewest annotators of each group."""


class RaterSpread(NamedTuple):
    """How far the annotators of each group lean from their group's mean.

    Attributes:
        p: The p of leanings that vary equally in all groups, by permuting annotators of like labour.
        typical: (groups,) the typical (root mean square) leaning of a group's annotators, beyond chance, 0..1.
        upper: The upper 95% bound of the largest difference, as the root of the difference of mean squares.
        above: (groups,) how many annotators of a group lean towards positive.
        people: (groups,) how many there are.
    """

    p: float
    typical: tuple[float, ...]
    upper: float
    above: tuple[int, ...]
    people: tuple[int, ...]

    @property
    def divided(self) -> int:
        """The index of the group whose annotators lean farthest."""
        return int(np.argmax(self.typical))

    @property
    def matters(self) -> bool:
        """Whether the typical leanings differ by the margin or more."""
        return max(self.typical) - min(self.typical) >= SPREAD_MARGIN

    @property
    def small(self) -> bool:
        """Whether the largest difference is shown to be small."""
        return self.upper < 1.5 * SPREAD_MARGIN

    def describe(self, name: str) -> str:
        """The finding in words; `name` is that of the divided group."""
        return (
            f"{name}: annotators typically lie {100 * max(self.typical):.0f} points from their group's mean, "
            f"{self.above[self.divided]} of {self.people[self.divided]} towards positive, the others towards negative"
        )


def rater_spread(labels: Labels, sides: np.ndarray) -> RaterSpread | None:
    """The test, and the groups' typical leanings. None if a group has too few annotators with two labels or more.

    A leaning's square minus its sampling variance estimates what lies beyond chance; Welch's statistic compares these
    between the groups. The item's mean includes the label itself, so with k labels a residual is too small by
    (k - 1) / k; items with one label tell nothing.

    Args:
        labels: The labels of all annotators.
        sides: The group of each annotator, from 0; -1 if it is unknown.
    """
    items, people = len(labels.items), len(sides)
    count = np.bincount(labels.item, minlength=items)
    kept = count[labels.item] > 1
    item, annotator, z = labels.item[kept], labels.annotator[kept], labels.label[kept].astype(float)
    labour = np.bincount(annotator, minlength=people)
    leaning = np.zeros(people)
    by_label = strictness(item, annotator, z, items, people)
    leaning[annotator] = by_label
    of_item = np.bincount(item, z - by_label, items) / np.maximum(count, 1)
    squares = np.square((z - of_item[item] - by_label) * count[item] / (count[item] - 1))
    chance = np.bincount(annotator, squares, people) / np.maximum(labour - 1, 1) / np.maximum(labour, 1)
    group = np.where(labour > 1, sides, -1)
    groups = [np.flatnonzero(group == side) for side in range(int(sides.max(initial=-1)) + 1)]
    if len(groups) < 2 or min(map(len, groups)) < _FEWEST:
        return None
    beyond = np.zeros(people)
    above = []
    for members in groups:
        deviation = leaning[members] - leaning[members].mean()
        beyond[members] = np.square(deviation) * len(members) / (len(members) - 1) - chance[members]
        above.append(int((deviation > 0).sum()))
    means = [float(beyond[members].mean()) for members in groups]
    typical = tuple(math.sqrt(max(0.0, mean)) for mean in means)
    p = permuted_welch(beyond, group, 0, of_like_labour(labour, group))
    farthest, nearest = groups[int(np.argmax(means))], groups[int(np.argmin(means))]
    error = math.sqrt(sum(float(beyond[members].var(ddof=1)) / len(members) for members in (farthest, nearest)))
    freedom = min(len(farthest), len(nearest)) - 1
    upper = math.sqrt(max(0.0, max(means) - min(means) + quantile(0.95, freedom) * error))
    return RaterSpread(p, typical, upper, tuple(above), tuple(map(len, groups)))
