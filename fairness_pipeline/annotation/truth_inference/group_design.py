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
"""The rates that are estimated of two classes: of the positive and of the negative one."""


class Levels(NamedTuple):
    """The groups of a category.

    Attributes:
        names: The groups, in the category's order.
        code: (annotators,) the index of each annotator's group in `names`; -1 if it is unknown.
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
        >>> levels = levels_of(pd.Series(["a"] * 5 + ["b"] * 6 + ["c", None]))
        >>> levels.names, levels.code.tolist()[-3:], levels.too_few
        (('a', 'b'), [1, -1, -1], {'c': 1})
    """
    import pandas as pd

    groups = column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
    counts = groups.value_counts()
    present = [name for name in groups.cat.categories if counts[name] > 0]
    kept = present if len(present) < 3 else [name for name in present if counts[name] >= FEWEST_RATERS]
    code = np.full(len(groups), -1)
    for level, name in enumerate(kept):
        code[(groups == name).fillna(False).to_numpy(bool)] = level
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
        matrix: (annotators, 1 + sum of k - 1): a column of 1, then one for each group but the last of each category. It
            is 1 if the annotator is in the group, -1 if in the last one, else 0; also 0 if the group is unknown.
        levels: The groups of each category.
    """

    matrix: np.ndarray
    levels: Mapping[str, Levels]

    @classmethod
    def of(cls, groups: "pd.DataFrame", annotators: "pd.Index") -> Self:
        """The design of the annotators who labelled.

        Args:
            groups: One row per annotator (the index), one column per category.
            annotators: The annotators who labelled.

        Raises:
            FairnessError: an annotator is missing or has two rows; a category has one group; the groups of categories
                determine each other.
        """
        if groups.index.has_duplicates:
            first = groups.index[groups.index.duplicated()][0]
            raise FairnessError(f"'{first}' has two rows in the annotators' table; keep one")
        missing = annotators.difference(groups.index)
        if len(missing):
            raise FairnessError(f"{len(missing):,} annotators are not in the annotators' table, such as '{missing[0]}'")
        rows = groups.loc[annotators]
        levels = {str(name): levels_of(rows[name]) for name in rows.columns}
        for category, groups_of_category in levels.items():
            if len(groups_of_category.names) < 2:
                few = ", ".join(f"{name} ({count})" for name, count in groups_of_category.too_few.items())
                note = f"; of fewer than {FEWEST_RATERS} annotators: {few}" if few else ""
                raise FairnessError(
                    f"category '{category}': expected two groups of annotators or more who labelled, found "
                    f"{', '.join(groups_of_category.names) or 'none'}{note}; leave the category out"
                )
        columns = [
            np.ones((len(rows), 1)),
            *(sum_to_zero(groups_of_category) for groups_of_category in levels.values()),
        ]
        design = cls(np.concatenate(columns, axis=1), levels)
        if entangled := design._entangled():
            raise FairnessError(
                f"categories {', '.join(entangled)} are collinear: their effects cannot be separated; keep one "
                "category with all the groups, or leave one out (modelled)"
            )
        return design

    def columns_of(self, category: str) -> slice:
        """The columns of a category."""
        start = 1
        for name, levels in self.levels.items():
            if name == category:
                return slice(start, start + len(levels.names) - 1)
            start += len(levels.names) - 1
        raise KeyError(category)

    def effect(self, category: str, level: int) -> np.ndarray:
        """(columns,) the weights of the columns' parameters that give the effect of a group."""
        weights = np.zeros(self.matrix.shape[1])
        columns = self.columns_of(category)
        if level < columns.stop - columns.start:
            weights[columns.start + level] = 1.0
        else:
            weights[columns] = -1.0
        return weights

    def with_level(self, category: str, level: int) -> np.ndarray:
        """The design if every annotator were in one group of a category."""
        matrix = self.matrix.copy()
        columns = self.columns_of(category)
        matrix[:, columns] = self.effect(category, level)[columns]
        return matrix

    def precision(self, sd: float) -> np.ndarray:
        """(columns, columns) of a normal prior on the effects that treats all groups of a category alike; of two groups
        N(0, sd^2). It is 0 for the first column."""
        precision = np.zeros((self.matrix.shape[1],) * 2)
        for category in self.levels:
            columns = self.columns_of(category)
            size = columns.stop - columns.start
            precision[columns, columns] = (np.eye(size) + np.ones((size, size))) / (2 * sd**2)
        return precision

    def _entangled(self) -> list[str]:
        """The categories with columns that the other columns determine."""
        rank = np.linalg.matrix_rank(self.matrix)
        if rank == self.matrix.shape[1]:
            return []
        entangled = []
        for category, levels in self.levels.items():
            others = np.delete(self.matrix, np.r_[self.columns_of(category)], axis=1)
            if rank - np.linalg.matrix_rank(others) < len(levels.names) - 1:
                entangled.append(f"'{category}'")
        return entangled


def sum_to_zero(levels: Levels) -> np.ndarray:
    """(annotators, k - 1): a column for each group but the last; rows of unknown groups are 0."""
    size = len(levels.names)
    code = np.concatenate([np.eye(size - 1), -np.ones((1, size - 1)), np.zeros((1, size - 1))])
    columns: np.ndarray = code[levels.code]
    return columns


def kish(weights: np.ndarray) -> float:
    """The number of equal weights with the same information (Kish 1965)."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 1.0
