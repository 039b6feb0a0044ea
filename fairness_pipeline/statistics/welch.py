"""Do groups differ in the mean of a score? Welch's statistic (1951), with the scores exchanged among all."""

import numpy as np

DRAWS = 999
_MOST_AT_ONCE = 2_000_000
"""Scores that are exchanged together."""
TWO, LARGEST, OTHERS, PAIR = "two groups", "largest gap", "others", "pair"
"""Contrasts of groups: of two; of more the two that differ most, each against the others, and each pair."""

NO_PAIR = "the groups differ; which two is not shown"
"""The note of a row that rests on a test of all groups, where the interval of the two that differ most has 0."""
UNLIKE_ALL = "differs from each of the others"
"""The end of the note of such a row, after the one group that every pair tells apart in one direction."""


def permuted_welch(score: np.ndarray, group: np.ndarray, seed: int, strata: list[np.ndarray] | None = None) -> float:
    """The p of equal means when scores change places; groups may vary by different amounts.

    Args:
        score: (units,).
        group: (units,) the group of each unit, from 0; -1 if it is unknown, then the unit is left out.
        seed: The seed of the exchanges.
        strata: Places of units that change places among themselves; all of them if it is None.

    Examples:
        >>> permuted_welch(np.r_[np.arange(9.0), 20 + np.arange(9.0)], np.repeat([0, 1], 9), 0)
        0.001
    """
    known = group >= 0
    count = int(group.max(initial=-1)) + 1
    if count < 2:
        return 1.0
    random = np.random.default_rng(seed)
    own, places = group[known], np.cumsum(known) - 1
    within = [places[part[known[part]]] for part in ([np.arange(len(score))] if strata is None else strata)]
    own = np.unique(own, return_inverse=True)[1]  # a group without units is none
    count = int(own.max(initial=-1)) + 1
    if count < 2 or np.ptp(score[known]) == 0:
        return 1.0
    observed = welch(score[None, known], own, count)[0] * (1 - 1e-9)
    at_once, reached = max(1, _MOST_AT_ONCE // max(1, len(own))), 0
    for start in range(0, DRAWS, at_once):
        drawn = np.tile(score[known], (min(at_once, DRAWS - start), 1))
        for place in within:
            drawn[:, place] = random.permuted(drawn[:, place], axis=1)
        reached += int((welch(drawn, own, count) >= observed).sum())
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
    least = 1e-12 * max(1e-300, float(np.square(scores[0]).max(initial=0.0)))
    weight = n / np.maximum(squares / np.maximum(n - 1, 1), least)
    whole = weight.sum(axis=1, keepdims=True)
    centre = (weight * mean).sum(axis=1, keepdims=True) / whole
    between = (weight * np.square(mean - centre)).sum(axis=1) / (count - 1)
    few = (np.square(1 - weight / whole) / np.maximum(n - 1, 1)).sum(axis=1)
    found: np.ndarray = between / (1 + 2 * (count - 2) / (count**2 - 1) * few)
    return found


def of_like_labour(labour: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    """People with similarly many labels or texts: up to five strata, fewer if a group is small. Those with equally many
    stay together.

    Args:
        labour: (people,) how many labels or texts each gave.
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
