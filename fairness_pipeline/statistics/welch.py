"""A permutation test of whether groups differ in the mean of a score, by Welch's statistic (1951)."""

import numpy as np

DRAWS = 999
_MOST_AT_ONCE = 2_000_000
"""The number of scores that are permuted together."""
TWO, LARGEST, OTHERS, PAIR = "two groups", "largest gap", "others", "pair"
"""Contrasts: of two groups; of more groups the two that differ most, each against the others, and each pair."""

NO_PAIR = "the groups differ; which two is not shown"
"""The note of a row whose omnibus test rejects, although the interval of the two that differ most contains 0."""
UNLIKE_ALL = "differs from each of the others"
"""The end of the note of a row, after the only group that differs from every other in the same direction."""


def permuted_welch(score: np.ndarray, group: np.ndarray, seed: int, strata: list[np.ndarray] | None = None) -> float:
    """The p of equal means, by permuting the scores. The groups' variances may differ.

    Args:
        score: (units,) the score of each unit.
        group: (units,) the group of each unit, from 0; -1 if it is unknown, then the unit is left out.
        seed: The seed of the permutations.
        strata: Indices of units that are permuted among themselves; None permutes all units together.

    Examples:
        >>> permuted_welch(np.r_[np.arange(9.0), 20 + np.arange(9.0)], np.repeat([0, 1], 9), 0)
        0.001
    """
    known = group >= 0
    random = np.random.default_rng(seed)
    groups, positions = group[known], np.cumsum(known) - 1
    blocks = [positions[stratum[known[stratum]]] for stratum in ([np.arange(len(score))] if strata is None else strata)]
    groups = np.unique(groups, return_inverse=True)[1]  # drops groups without units
    count = int(groups.max(initial=-1)) + 1
    if count < 2 or np.ptp(score[known]) == 0:
        return 1.0
    observed = welch(score[None, known], groups, count)[0] * (1 - 1e-9)
    at_once, reached = max(1, _MOST_AT_ONCE // max(1, len(groups))), 0
    for start in range(0, DRAWS, at_once):
        drawn = np.tile(score[known], (min(at_once, DRAWS - start), 1))
        for block in blocks:
            drawn[:, block] = random.permuted(drawn[:, block], axis=1)
        reached += int((welch(drawn, groups, count) >= observed).sum())
    return (1 + reached) / (DRAWS + 1)


def welch(scores: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """(draws,) Welch's F of several draws of the scores.

    Args:
        scores: (draws, units).
        group: (units,) from 0.
        count: The number of groups.
    """
    member = np.eye(count)[group]
    n = member.sum(axis=0)
    mean = scores @ member / n
    squares = np.maximum(np.square(scores) @ member - n * np.square(mean), 0)
    tolerance = 1e-12 * max(1e-300, float(np.square(scores[0]).max(initial=0.0)))
    weight = n / np.maximum(squares / np.maximum(n - 1, 1), tolerance)
    total = weight.sum(axis=1, keepdims=True)
    centre = (weight * mean).sum(axis=1, keepdims=True) / total
    between = (weight * np.square(mean - centre)).sum(axis=1) / (count - 1)
    correction = (np.square(1 - weight / total) / np.maximum(n - 1, 1)).sum(axis=1)
    f: np.ndarray = between / (1 + 2 * (count - 2) / (count**2 - 1) * correction)
    return f


def of_like_labour(labour: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    """Strata of people with similar numbers of labels or texts: up to five, fewer if a group is small. People with
    equal numbers stay together.

    Args:
        labour: (people,) the number of labels or texts of each person.
        group: (people,) from 0; -1 for people who are left out.
    """
    known = np.flatnonzero(group >= 0)
    if not len(known):
        return []
    smallest = int(np.bincount(group[known])[np.unique(group[known])].min())
    count = max(1, min(5, smallest // 2))
    edges = np.quantile(labour[known], np.arange(1, count) / count)
    stratum = np.searchsorted(edges, labour[known], side="left")
    return [known[stratum == number] for number in np.unique(stratum)]
