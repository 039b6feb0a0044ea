"""Groups of annotators as columns of a design: sum-to-zero coded, k - 1 columns for the k groups of a category."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from fairness_pipeline.corpora.annotators.annotated_corpus import FEWEST_RATERS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.statistics.intervals import Estimate

if TYPE_CHECKING:
    import pandas as pd

RESPONSES = ("sensitivity", "specificity")
"""What is estimated of two classes: of the positive and of the negative one."""


class Levels(NamedTuple):
    """The groups of a category.

    Attributes:
        names: The groups, in the category's order.
        code: (annotators,) the place of each annotator's group in `names`; -1 if it is unknown.
        too_few: The groups that count as unknown, with their numbers of annotators.
    """

    names: tuple[str, ...]
    code: np.ndarray
    too_few: dict[str, int]


def levels_of(column: "pd.Series") -> Levels:
    """The groups of the annotators who labelled, in the order of the column's categories, or sorted.

    Args:
        column: The group of each annotator; missing where it is not known.

    Examples:
        >>> import pandas as pd
        >>> found = levels_of(pd.Series(["a"] * 5 + ["b"] * 6 + ["c", None]))
        >>> found.names, found.code.tolist()[-3:], found.too_few
        (('a', 'b'), [1, -1, -1], {'c': 1})
    """
    import pandas as pd

    own = column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
    counts = own.value_counts()
    present = [name for name in own.cat.categories if counts[name] > 0]
    kept = present if len(present) < 3 else [name for name in present if counts[name] >= FEWEST_RATERS]
    code = np.full(len(own), -1)
    for place, name in enumerate(kept):
        code[(own == name).fillna(False).to_numpy(bool)] = place
    too_few = {str(name): int(counts[name]) for name in present if name not in kept}
    return Levels(tuple(map(str, kept)), code, too_few)


class GroupContrast(NamedTuple):
    """One group of a category minus another.

    Attributes:
        category: The category.
        first: The first group.
        second: The second group.
        response: `sensitivity` or `specificity`; of several classes the number of the class.
        estimate: The difference.
    """

    category: str
    first: str
    second: str
    response: str
    estimate: Estimate


class GroupMean(NamedTuple):
    """The mean rate of a group, always a probability, with its 95% interval where the model has one."""

    category: str
    group: str
    response: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class GroupDesign:
    """The design of annotators' rates.

    Attributes:
        matrix: (annotators, 1 + sum of k - 1): 1, then of each category for each group but the last 1 if the annotator
            is in it, -1 if they are in the last, else 0; all 0 if their group is unknown.
        levels: The groups of each category.
    """

    matrix: np.ndarray
    levels: Mapping[str, Levels]

    @classmethod
    def of(cls, groups: "pd.DataFrame", annotators: "pd.Index") -> Self:
        """The design of the annotators who labelled.

        Args:
            groups: One row per annotator (the index), one column per category.
            annotators: Those who labelled.

        Raises:
            FairnessError: an annotator is missing or stands there twice; a category has one group; the groups of
                categories determine each other.
        """
        if groups.index.has_duplicates:
            first = groups.index[groups.index.duplicated()][0]
            raise FairnessError(f"'{first}' has two rows in the annotators' table; keep one")
        missing = annotators.difference(groups.index)
        if len(missing):
            raise FairnessError(f"{len(missing):,} annotators are not in the annotators' table, such as '{missing[0]}'")
        own = groups.loc[annotators]
        levels = {str(name): levels_of(own[name]) for name in own.columns}
        for category, found in levels.items():
            if len(found.names) < 2:
                few = ", ".join(f"{name} ({count})" for name, count in found.too_few.items())
                told = f"; of fewer than {FEWEST_RATERS} annotators: {few}" if few else ""
                raise FairnessError(
                    f"category '{category}': expected two groups of annotators or more who labelled, found "
                    f"{', '.join(found.names) or 'none'}{told}; leave the category out"
                )
        columns = [np.ones((len(own), 1)), *(sum_to_zero(found) for found in levels.values())]
        design = cls(np.concatenate(columns, axis=1), levels)
        if entangled := design._entangled():
            raise FairnessError(
                f"categories {', '.join(entangled)}: the group of an annotator in one follows from the others, so that "
                "no labels tell their effects apart; keep one category with all the groups, or leave one out (modelled)"
            )
        return design

    def place(self, category: str) -> slice:
        """The columns of a category."""
        start = 1
        for name, own in self.levels.items():
            if name == category:
                return slice(start, start + len(own.names) - 1)
            start += len(own.names) - 1
        raise KeyError(category)

    def effect(self, category: str, level: int) -> np.ndarray:
        """(columns,) the weights of the columns' parameters that give the effect of a group."""
        found = np.zeros(self.matrix.shape[1])
        own = self.place(category)
        if level < own.stop - own.start:
            found[own.start + level] = 1.0
        else:
            found[own] = -1.0
        return found

    def with_level(self, category: str, level: int) -> np.ndarray:
        """The design if every annotator were in one group of a category."""
        found = self.matrix.copy()
        own = self.place(category)
        found[:, own] = self.effect(category, level)[own]
        return found

    def precision(self, sd: float) -> np.ndarray:
        """(columns, columns) of a normal prior on the effects that treats all groups of a category alike; of two groups
        N(0, sd^2). It is 0 for the first column."""
        found = np.zeros((self.matrix.shape[1],) * 2)
        for category in self.levels:
            own = self.place(category)
            size = own.stop - own.start
            found[own, own] = (np.eye(size) + np.ones((size, size))) / (2 * sd**2)
        return found

    def _entangled(self) -> list[str]:
        """The categories with columns that the other columns determine."""
        rank = np.linalg.matrix_rank(self.matrix)
        if rank == self.matrix.shape[1]:
            return []
        found = []
        for category, own in self.levels.items():
            others = np.delete(self.matrix, np.r_[self.place(category)], axis=1)
            if rank - np.linalg.matrix_rank(others) < len(own.names) - 1:
                found.append(f"'{category}'")
        return found


def sum_to_zero(levels: Levels) -> np.ndarray:
    """(annotators, k - 1): a column for each group but the last; rows of unknown groups are 0."""
    size = len(levels.names)
    code = np.concatenate([np.eye(size - 1), -np.ones((1, size - 1)), np.zeros((1, size - 1))])
    found: np.ndarray = code[levels.code]
    return found


def kish(weights: np.ndarray) -> float:
    """The number of equal weights that tell as much as these (Kish 1965)."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 1.0
