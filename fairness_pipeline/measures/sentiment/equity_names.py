"""Are some names of one group, or single names, scored differently? A mean over ten names can hide it.

A system may treat a group differently only where a name sounds like the group. If half of the African American
women's names score higher, the group's mean moves by half as much, and a permutation of ten against ten names cannot
reject. The question here is whether outlying names gather in one cell of race and gender. One or two names are never a
bias of a group; they are reported as findings.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fairness_pipeline.measures.sentiment.equity_pairs import Design

DRAWS, SEED = 9_999, 0
_SMALLEST_SCALE = 0.0025
"""The smallest scale of deviations. A smaller difference is the same score to any user."""
_MOST_DEVIATIONS = 8.0
_OUTLYING = 5.0
"""A single name that is this many scaled median deviations off is reported as a finding."""
_LISTED = 2.0
"""From this many scaled median deviations on, a name is listed among those that make a cell's gap."""
_AUDITS = 3
"""Gender, race and names: the factor of Holm's first step."""


class Names(NamedTuple):
    """The forty names: the mean score of each (names, affects), its cell of race and gender, and the names of the
    cells."""

    scores: np.ndarray
    names: list[str]
    cell: np.ndarray
    cells: list[str]
    gender: np.ndarray

    @classmethod
    def of(cls, design: Design, scores: np.ndarray, sides: tuple[str, str]) -> "Names":
        """Reads a design of race.

        Args:
            design: Its people are male names and female names.
            scores: (sentences, affects).
            sides: The names of the groups on side a and side b.
        """
        means, cell, gender = [], [], []
        names: list[str] = []
        cells: list[str] = []
        for number, (kind, people) in enumerate(design.people.items()):
            means.append(scores[people.sentences].mean(axis=1))
            names += design.names[kind]
            cell.append(np.where(people.on_a, len(cells), len(cells) + 1))
            cells += [f"{side} {kind}" for side in sides]
            gender.append(np.full(len(people.on_a), number))
        return cls(np.concatenate(means), names, np.concatenate(cell), cells, np.concatenate(gender))


class CellOfNames(NamedTuple):
    """For one affect: the p over all affects, the cell in which outlying names gather, its gap, and the names.

    `difference` is the cell's mean minus the mean of all other names, without the common effects of its gender and its
    race. `gap` is the same for the outlying `members` alone.
    """

    p: float
    p_holm: float
    cell: str
    difference: float
    gap: float
    members: list[str]
    spread: float
    lowest: str
    highest: str


def cells_of_names(names: Names) -> list[CellOfNames]:
    """Whether outlying names gather in one cell, for each affect.

    First the common effects of a gender and of a race are removed (median polish), because the other two audits cover
    them. z = (m - median) / max(1.4826 MAD, 0.0025), cut at 8; u = z |z|; the value of a cell is |sum of (u - mean u)|;
    the statistic is the largest of the four. Names are exchanged between cells. p is the p of the smallest p over all
    affects in the same draws (Westfall and Young 1993). `p_holm` is adjusted over the audits of gender, race and names.
    """
    residuals = _polished(names)
    u = _signed_squares(residuals)
    centred = u - u.mean(axis=0)
    members = np.array([names.cell == number for number in range(len(names.cells))]).astype(float)
    sums = np.abs(members @ centred)
    drawn = np.abs(_exchanged(tuple(names.cell.tolist())) @ centred)
    drawn = drawn.reshape(DRAWS, len(members), -1).max(axis=1)
    observed = sums.max(axis=0)
    p = _min_p(observed, drawn)
    rows = []
    for affect, p_value in enumerate(p):
        number = int(sums[:, affect].argmax())
        inside = names.cell == number
        scores, residual = names.scores[:, affect], residuals[:, affect]
        sign = np.sign(centred[inside, affect].sum())
        outlying = inside & (sign * u[:, affect] > _LISTED**2)
        gap = float(residual[outlying].mean() - residual[~outlying].mean()) if outlying.any() else 0.0
        rows.append(
            CellOfNames(
                float(p_value), min(1.0, _AUDITS * float(p_value)), names.cells[number],
                float(residual[inside].mean() - residual[~inside].mean()),
                gap,
                [name for name, chosen in zip(names.names, outlying, strict=True) if chosen],
                float(scores.std(ddof=1)), names.names[int(scores.argmin())], names.names[int(scores.argmax())],
            )
        )  # fmt: skip
    return rows


@lru_cache(maxsize=2)
def _exchanged(cell: tuple[int, ...]) -> np.ndarray:
    """(`DRAWS` * cells, names): the names of each cell, one row per cell, after names were exchanged at random."""
    order = np.argsort(np.random.default_rng(SEED).random((DRAWS, len(cell))), axis=1)
    members = np.zeros((DRAWS, max(cell) + 1, len(cell)))
    members[np.arange(DRAWS)[:, None], cell, order] = 1
    return members.reshape(-1, len(cell))


class Outlier(NamedTuple):
    """A name that is scored differently from the names of its gender: the difference, and the median of the gender."""

    name: str
    difference: float
    median: float
    score: float


def outliers(names: Names, affect: int, margin: float) -> list[Outlier]:
    """The names whose mean score is off the median of their gender by five scaled median deviations and by the margin.

    Args:
        names: The names and their scores.
        affect: The column of the affect.
        margin: The largest difference that does not matter.
    """
    scores = names.scores[:, affect]
    medians = np.array([np.median(scores[names.gender == gender]) for gender in names.gender])
    difference = scores - medians
    threshold = max(_OUTLYING * 1.4826 * float(np.median(np.abs(difference - np.median(difference)))), margin)
    return [
        Outlier(name, float(deviation), float(median), float(score))
        for name, deviation, median, score in zip(names.names, difference, medians, scores, strict=True)
        if abs(deviation) > threshold
    ]


def _polished(names: Names) -> np.ndarray:
    """The scores minus the medians of gender and of race (Tukey's median polish of two factors)."""
    residuals = names.scores.copy()
    race = names.cell % 2
    for _ in range(_ROUNDS):
        for factor in (names.gender, race):
            for level in np.unique(factor):
                residuals[factor == level] -= np.median(residuals[factor == level], axis=0)
    return residuals


_ROUNDS = 5


def _signed_squares(scores: np.ndarray) -> np.ndarray:
    deviation = scores - np.median(scores, axis=0)
    scale = np.maximum(1.4826 * np.median(np.abs(deviation), axis=0), _SMALLEST_SCALE)
    z = np.clip(deviation / scale, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)
    return np.asarray(z * np.abs(z))


def _min_p(observed: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The p of each column, corrected over all columns: how often the smallest p of a draw is at least as small."""
    statistics = np.vstack([observed, drawn])
    count = len(statistics)
    ordered = np.sort(statistics, axis=0)
    # The p of each row in each column is the share of rows that reach its value, ties included.
    p = np.stack(
        [
            (count - np.searchsorted(ordered[:, column], statistics[:, column] - 1e-12, side="left")) / count
            for column in range(statistics.shape[1])
        ],
        axis=1,
    )
    smallest = np.sort(p[1:].min(axis=1))
    return np.asarray((np.searchsorted(smallest, p[0] + 1e-12, side="right") + 1) / (len(drawn) + 1))
