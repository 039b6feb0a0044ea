"""Permutation tests of groups: the groups' labels are exchanged within each cluster, alike for all its items.

If the groups do not differ, the k scores of a cluster (`groups.Fit.scores`) are exchangeable. A test over rows, or one
that exchanges within items, overstates how much the clusters tell; a t test of one group against the others fails if
the outcome is rare (docs/outcomes.md). A t test guards every p, or a group that merely varies more than the others
would be accused: p is never below that of the contrast's t test, and the omnibus p is never below that of the group
with the largest effect. (An earlier guard, the smallest p of any group, rejected in 8 to 13% of null draws if one
group's spread was tripled; this one rejects in 5 to 10%, with the same power.)

999 draws give no p below 0.001, which Holm over 50 verdicts raises to 0.05. If no draw reaches the observed statistic,
more are drawn if that is cheap. If still none does, p comes from the guarding t test, corrected by Bonferroni
(`below_draws`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from fairness_pipeline.statistics.groups import Errors, Fit, each_against_others, of_two, sum_by

DRAWS = 999
_MORE_DRAWS = 9999
"""Draws if none of the first reaches the observed statistic."""
_CHEAP = 1 << 23
"""The size of all draws together up to which more are drawn."""
_MOST_CLUSTERS = 1000
"""The most clusters that are relabelled one by one. More are first added up at random into this many bins: exchanging
several clusters alike is a relabelling, too, so the test stays valid."""
_AT_ONCE = 1 << 21
"""The size of a chunk of draws."""
FLIPS = 9999
"""Draws of signs, which cost little."""
_ALL_SIGNS = 13
"""Up to this many clusters, every pattern of signs is tried."""


@dataclass(frozen=True)
class Relabelled:
    """The p values of one outcome's groups.

    Attributes:
        omnibus: The p that no group differs, by the sum of b_g^2.
        others: (k,) the p of each group against the mean of the others, corrected together: |b_g| is compared with the
            largest of each draw.
        contrasts: (m,) the p of each contrast of two groups, corrected together. Every draw is studentized by itself.
        by_chance: The median of the largest gap between two groups in relabelled data.
        reach_others: The half-width, in standard errors, of 95% intervals that hold for all groups together.
        reach_contrasts: The same for all contrasts together.
    """

    omnibus: float
    others: np.ndarray
    contrasts: np.ndarray
    by_chance: float
    reach_others: float
    reach_contrasts: float


def relabel(fit: Fit, first: np.ndarray, second: np.ndarray, seed: int, draws: int = DRAWS) -> Relabelled:
    """Relabels the groups within clusters.

    Args:
        fit: The groups' effects.
        first: (m,) the first group of each contrast of two groups.
        second: (m,) the second group of each.
        seed: The seed of the draws.
        draws: The number of draws.
    """
    random = np.random.default_rng(seed)
    scores = _binned(fit.scores, random)
    count, total = len(fit.groups), fit.scores.sum(axis=0)
    squares, largest, ranges, max_t_others, max_t_contrasts = (np.zeros(draws) for _ in range(5))
    done = 0
    with threadpool_limits(1):  # the products are small, and threads would wait for each other
        for drawn in _shuffled(scores, draws, random):
            effects, moments = drawn.sum(axis=1), np.swapaxes(drawn, 1, 2) @ drawn
            chunk = slice(done, done := done + len(drawn))
            squares[chunk] = np.square(effects).sum(axis=1)
            largest[chunk] = np.abs(effects).max(axis=1)
            ranges[chunk] = np.ptp(effects, axis=1)
            group_squares = np.diagonal(moments, axis1=1, axis2=2)
            max_t_others[chunk] = _t(effects, group_squares, len(scores)).max(axis=1)
            max_t_contrasts[chunk] = _t_of_two(effects, moments, first, second, len(scores)).max(axis=1)
    if draws < _MORE_DRAWS and np.square(total).sum() > squares.max() and scores.size * _MORE_DRAWS <= _CHEAP:
        return relabel(fit, first, second, seed, _MORE_DRAWS)
    observed_t = _t_of_two(total[None], (scores.T @ scores)[None], first, second, len(scores))[0]
    p_others, p_contrasts = fit.errors(each_against_others(count)).p, fit.errors(of_two(first, second, count)).p
    omnibus, guard = _p(squares, np.square(total).sum()), p_others[np.argmax(np.abs(total))]
    return Relabelled(
        float(np.maximum(below_draws(omnibus, draws, count * guard), guard)),
        np.maximum(below_draws(_p(largest, np.abs(total)), draws, count * p_others), p_others),
        np.maximum(below_draws(_p(max_t_contrasts, observed_t), draws, len(first) * p_contrasts), p_contrasts),
        float(np.median(ranges)),
        _reach(max_t_others),
        _reach(max_t_contrasts),
    )


@dataclass(frozen=True)
class Intersections:
    """The effects of crossed groups beyond the sum of their attributes' effects.

    Attributes:
        effects: (k,) the effect of each crossed group beyond its attributes.
        errors: The effects with their standard errors.
        omnibus: The p that there is no such effect.
        each: (k,) the p of each group, corrected together.
    """

    effects: np.ndarray
    errors: Errors
    omnibus: float
    each: np.ndarray


def intersections(fit: Fit, shape: tuple[int, int], seed: int, draws: int = DRAWS) -> Intersections:
    """Tests crossed groups beyond their margins. The levels of the two attributes are exchanged separately.
    (Relabelling whole crossed groups has little power: the variance of the margins swamps the interaction.)

    Args:
        fit: The crossed groups' effects; the second attribute changes fastest.
        shape: The number of levels of both attributes.
        seed: The seed of the draws.
        draws: The number of draws.
    """
    random = np.random.default_rng(seed)
    interaction = np.kron(*(np.eye(levels) - 1 / levels for levels in shape))
    scores = _binned(fit.scores @ interaction, random)
    effects = fit.effects @ interaction
    squares, largest = np.zeros(draws), np.zeros(draws)
    done = 0
    chunk = max(1, _AT_ONCE // max(scores.size, 1))
    while done < draws:
        size = min(chunk, draws - done)
        first, second = (_orders(random, (size, len(scores)), levels) for levels in shape)
        indices = (first[..., :, None] * shape[1] + second[..., None, :]).reshape(size, len(scores), -1)
        drawn = np.take_along_axis(np.broadcast_to(scores, indices.shape), indices, axis=2).sum(axis=1)
        squares[done : done + size] = np.square(drawn).sum(axis=1)
        largest[done : done + size] = np.abs(drawn).max(axis=1)
        done += size
    if draws < _MORE_DRAWS and np.square(effects).sum() > squares.max() and scores.size * _MORE_DRAWS <= _CHEAP:
        return intersections(fit, shape, seed, _MORE_DRAWS)
    errors, count = fit.errors(interaction), len(effects)
    omnibus, guard = _p(squares, np.square(effects).sum()), errors.p[np.argmax(np.abs(effects))]
    return Intersections(
        effects,
        errors,
        float(np.maximum(below_draws(omnibus, draws, count * guard), guard)),
        np.maximum(below_draws(_p(largest, np.abs(effects)), draws, count * errors.p), errors.p),
    )


def below_draws(p: np.ndarray, draws: int, tail: np.ndarray) -> np.ndarray:
    """The p of draws, or if no draw reaches the observed statistic, the p of a test with a known tail if it is smaller.

    Args:
        p: (m,) the p of draws, at least 1 / (draws + 1).
        draws: The number of draws.
        tail: (m,) the p of the other test, corrected for the number of contrasts.

    Examples:
        >>> below_draws(np.array([0.002, 0.001, 0.001]), 999, np.array([1e-9, 1e-9, 0.4])).tolist()
        [0.002, 1e-09, 0.001]
    """
    return np.where(p * (draws + 1) < 1.5, np.minimum(p, tail), p)


def flipped(scores: np.ndarray, seed: int) -> np.ndarray:
    """The p that each of several means is 0, by flipping the signs of whole clusters, corrected together by step-down.
    With up to 13 clusters every pattern is tried.

    Args:
        scores: (clusters, m) what each cluster contributes to each mean; 0 if it has no value.
        seed: The seed of the draws.

    Examples:
        >>> flipped(np.full((10, 1), 0.1), seed=0).round(4).tolist()
        [0.002]
    """
    kept = scores[np.any(scores != 0, axis=1)]
    exact = len(kept) <= _ALL_SIGNS
    if exact:
        signs = np.array([(1, *pattern) for pattern in product((1, -1), repeat=max(0, len(kept) - 1))], dtype=float)
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (FLIPS, len(kept)))
    size = np.sqrt(np.square(kept).sum(axis=0))
    size[size == 0] = 1.0
    drawn = np.abs(signs @ kept) / size if len(kept) else np.zeros((1, scores.shape[1]))
    observed = np.abs(kept.sum(axis=0)) / size
    p_values, smallest = np.ones(scores.shape[1]), 0.0
    remaining = list(np.argsort(-observed, kind="stable"))
    for column in list(remaining):
        largest = drawn[:, remaining].max(axis=1)
        reached = (largest >= observed[column] * (1 - 1e-9)).sum()
        p = reached / len(largest) if exact else (reached + 1) / (len(largest) + 1)
        smallest = max(smallest, float(p))
        p_values[column] = smallest
        remaining.remove(column)
    return p_values


def _binned(scores: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The scores of the clusters that vary between groups, added up into few enough bins."""
    varying = scores[np.ptp(scores, axis=1) > 0]
    if len(varying) <= _MOST_CLUSTERS:
        return varying if len(varying) else scores[:1]
    bins = random.permutation(len(varying)) % _MOST_CLUSTERS
    return sum_by(bins, varying, _MOST_CLUSTERS)


def _shuffled(scores: np.ndarray, draws: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """The scores with the labels of each cluster shuffled, (draws, clusters, k), in chunks of draws."""
    chunk = max(1, _AT_ONCE // max(scores.size, scores.shape[1] ** 2))
    for begin in range(0, draws, chunk):
        yield random.permuted(np.broadcast_to(scores, (min(chunk, draws - begin), *scores.shape)), axis=2)


def _orders(random: np.random.Generator, shape: tuple[int, int], count: int) -> np.ndarray:
    """Random permutations of 0 to `count` - 1, (*shape, count)."""
    return random.permuted(np.broadcast_to(np.arange(count), (*shape, count)), axis=2)


def _t_of_two(
    effects: np.ndarray, moments: np.ndarray, first: np.ndarray, second: np.ndarray, clusters: int
) -> np.ndarray:
    """|t| of contrasts of two groups, (draws, m); `moments` are the sums of products of the scores, (draws, k, k)."""
    group_squares = np.diagonal(moments, axis1=1, axis2=2)
    squares = group_squares[:, first] + group_squares[:, second] - 2 * moments[:, first, second]
    return _t(effects[:, first] - effects[:, second], squares, clusters)


def _t(sums: np.ndarray, squares: np.ndarray, clusters: int) -> np.ndarray:
    """|t| of a sum over the clusters, given the sum of squares; infinite if all clusters contribute the same."""
    variance = np.maximum(0.0, squares - np.square(sums) / clusters) * clusters / max(1, clusters - 1)
    constant = variance <= 1e-12 * np.maximum(squares, 1e-300)
    limit = np.where(squares > 0, np.inf, 0.0)
    return np.where(constant, limit, np.abs(sums) / np.sqrt(np.where(constant, 1.0, variance)))


def _reach(largest: np.ndarray) -> float:
    """The largest |t| that 95% of the draws do not exceed."""
    return float(np.sort(largest)[math.ceil(0.95 * len(largest)) - 1])


def _p(drawn: np.ndarray, observed: np.ndarray | float) -> np.ndarray:
    """(c + 1) / (draws + 1), with c draws that reach the observed value. Rounding differences count as equal."""
    threshold = np.asarray(observed) * (1 - 1e-9)
    return ((drawn[:, None] >= threshold.reshape(1, -1)).sum(axis=0) + 1).reshape(threshold.shape) / (len(drawn) + 1)
