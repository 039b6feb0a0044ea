"""Tests of groups that exchange the groups' labels within each cluster, all items of a cluster alike.

If the groups do not differ, the k scores of a cluster (`groups.Fit.scores`) may change places. A test over rows, or one
that exchanges within items, takes clusters for more than they are; a t test of one group against the others fails where
an outcome is rare (docs/outcomes.md). Every p here has a second guard, without which a group that merely varies more
than the others is accused: it is never below that of the contrast's own t test, and that of all groups together never
below the t test of the group with the largest effect. (The smallest p of any group, tried before, let 8 to 13% of
draws through where one group's spread was tripled; this lets 5 to 10%, with the same power.)

999 draws know no p below 0.001, which Holm over 50 verdicts lifts to 0.05. Where no draw reaches what is observed,
more are drawn if that is cheap; where still none does, the t test that guards, corrected by Bonferroni, says how far
below p is (`below_draws`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from fairness_pipeline.statistics.groups import Errors, Fit, each_against_others, of_two, sum_by

DRAWS = 999
_MORE_DRAWS = 9999
"""Where no draw of the first reaches what is observed."""
_CHEAP = 1 << 23
"""Numbers in all draws together up to which there are more."""
_MOST = 1000
"""Clusters that change labels one by one. More are first added up at random into so many: exchanging several clusters
alike is a relabelling, too, so the test stays valid."""
_AT_ONCE = 1 << 21
"""Numbers in a chunk of draws."""
FLIPS = 9999
"""Draws of signs, which cost little."""
_ALL_SIGNS = 13
"""Up to this many clusters, every pattern of signs is tried."""


@dataclass(frozen=True)
class Relabelled:
    """The p values of one outcome's groups.

    Attributes:
        omnibus: That no group differs: statistic sum of b_g^2.
        others: (k,) of each group against the mean of the others, corrected together: |b_g| against the largest of each
            draw.
        contrasts: (m,) of contrasts of two groups, corrected together: every draw is studentized anew.
        by_chance: The median of the largest gap between two groups in relabelled data.
        reach_others: How many standard errors an interval reaches that holds for all groups together, with 95%.
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
        draws: How many.
    """
    random = np.random.default_rng(seed)
    scores = _binned(fit.scores, random)
    count, total = len(fit.groups), fit.scores.sum(axis=0)
    squares, largest, ranges, most_others, most = (np.zeros(draws) for _ in range(5))
    done = 0
    for drawn in _shuffled(scores, draws, random):
        effects, moments = drawn.sum(axis=1), np.swapaxes(drawn, 1, 2) @ drawn
        own = slice(done, done := done + len(drawn))
        squares[own] = np.square(effects).sum(axis=1)
        largest[own] = np.abs(effects).max(axis=1)
        ranges[own] = np.ptp(effects, axis=1)
        of_one = np.diagonal(moments, axis1=1, axis2=2)
        most_others[own] = _t(effects, of_one, len(scores)).max(axis=1)
        most[own] = _t_of_two(effects, moments, first, second, len(scores)).max(axis=1)
    if draws < _MORE_DRAWS and np.square(total).sum() > squares.max() and scores.size * _MORE_DRAWS <= _CHEAP:
        return relabel(fit, first, second, seed, _MORE_DRAWS)
    observed = _t_of_two(total[None], (scores.T @ scores)[None], first, second, len(scores))[0]
    single, of_pairs = fit.errors(each_against_others(count)).p, fit.errors(of_two(first, second, count)).p
    omnibus, guard = _p(squares, np.square(total).sum()), single[np.argmax(np.abs(total))]
    return Relabelled(
        float(np.maximum(below_draws(omnibus, draws, count * guard), guard)),
        np.maximum(below_draws(_p(largest, np.abs(total)), draws, count * single), single),
        np.maximum(below_draws(_p(most, observed), draws, len(first) * of_pairs), of_pairs),
        float(np.median(ranges)),
        _reach(most_others),
        _reach(most),
    )


@dataclass(frozen=True)
class Intersections:
    """What crossed groups show beyond the sum of their attributes' effects.

    Attributes:
        effects: (k,) of each crossed group beyond its attributes.
        errors: Of each, as `Errors`.
        omnibus: The p that there is none.
        each: (k,) of each group, corrected together.
    """

    effects: np.ndarray
    errors: Errors
    omnibus: float
    each: np.ndarray


def intersections(fit: Fit, shape: tuple[int, int], seed: int, draws: int = DRAWS) -> Intersections:
    """Tests crossed groups beyond their margins. The levels of the two attributes change places separately. (To relabel
    whole crossed groups has little power: the variance of the margins swamps what is beyond them.)

    Args:
        fit: The crossed groups' effects; the second attribute changes fastest.
        shape: The number of levels of both attributes.
        seed: The seed of the draws.
        draws: How many.
    """
    random = np.random.default_rng(seed)
    beyond = np.kron(*(np.eye(levels) - 1 / levels for levels in shape))
    scores = _binned(fit.scores @ beyond, random)
    effects = fit.effects @ beyond
    squares, largest = np.zeros(draws), np.zeros(draws)
    done = 0
    per = max(1, _AT_ONCE // max(scores.size, 1))
    while done < draws:
        now = min(per, draws - done)
        first, second = (_orders(random, (now, len(scores)), levels) for levels in shape)
        places = (first[..., :, None] * shape[1] + second[..., None, :]).reshape(now, len(scores), -1)
        drawn = np.take_along_axis(np.broadcast_to(scores, places.shape), places, axis=2).sum(axis=1)
        squares[done : done + now] = np.square(drawn).sum(axis=1)
        largest[done : done + now] = np.abs(drawn).max(axis=1)
        done += now
    if draws < _MORE_DRAWS and np.square(effects).sum() > squares.max() and scores.size * _MORE_DRAWS <= _CHEAP:
        return intersections(fit, shape, seed, _MORE_DRAWS)
    errors, count = fit.errors(beyond), len(effects)
    omnibus, guard = _p(squares, np.square(effects).sum()), errors.p[np.argmax(np.abs(effects))]
    return Intersections(
        effects,
        errors,
        float(np.maximum(below_draws(omnibus, draws, count * guard), guard)),
        np.maximum(below_draws(_p(largest, np.abs(effects)), draws, count * errors.p), errors.p),
    )


def below_draws(p: np.ndarray, draws: int, tail: np.ndarray) -> np.ndarray:
    """The p of draws, and where none of them reaches what is observed, that of a test that knows how far below it is.

    Args:
        p: (m,) by draws, at least 1 / (draws + 1).
        draws: How many there were.
        tail: (m,) the p of the other test, corrected for how many contrasts were looked at.

    Examples:
        >>> below_draws(np.array([0.002, 0.001, 0.001]), 999, np.array([1e-9, 1e-9, 0.4])).tolist()
        [0.002, 1e-09, 0.001]
    """
    return np.where(p * (draws + 1) < 1.5, np.minimum(p, tail), p)


def flipped(scores: np.ndarray, seed: int, draws: int = FLIPS) -> np.ndarray:
    """The p that each of several means is 0, corrected together by step-down, when the signs of whole clusters are
    flipped. Up to 13 clusters every pattern is tried.

    Args:
        scores: (clusters, m) what each cluster contributes to each mean; 0 where it has no part.
        seed: The seed of the draws.
        draws: How many.

    Examples:
        >>> flipped(np.full((10, 1), 0.1), seed=0).round(4).tolist()
        [0.002]
    """
    kept = scores[np.any(scores != 0, axis=1)]
    exact = len(kept) <= _ALL_SIGNS
    if exact:
        signs = np.array([(1, *pattern) for pattern in product((1, -1), repeat=max(0, len(kept) - 1))], dtype=float)
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (draws, len(kept)))
    size = np.sqrt(np.square(kept).sum(axis=0))
    size[size == 0] = 1.0
    drawn = np.abs(signs @ kept) / size if len(kept) else np.zeros((1, scores.shape[1]))
    observed = np.abs(kept.sum(axis=0)) / size
    found, smallest = np.ones(scores.shape[1]), 0.0
    left = list(np.argsort(-observed, kind="stable"))
    for place in list(left):
        most = drawn[:, left].max(axis=1)
        reached = (most >= observed[place] * (1 - 1e-9)).sum()
        p = reached / len(most) if exact else (reached + 1) / (len(most) + 1)
        smallest = max(smallest, float(p))
        found[place] = smallest
        left.remove(place)
    return found


def _binned(scores: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The scores of the clusters that vary between groups, added up into few enough."""
    varying = scores[np.ptp(scores, axis=1) > 0]
    if len(varying) <= _MOST:
        return varying if len(varying) else scores[:1]
    bins = random.permutation(len(varying)) % _MOST
    return sum_by(bins, varying, _MOST)


def _shuffled(scores: np.ndarray, draws: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """The scores with the labels of each cluster shuffled, (draws, clusters, k), in chunks of draws."""
    per = max(1, _AT_ONCE // max(scores.size, scores.shape[1] ** 2))
    for begin in range(0, draws, per):
        yield random.permuted(np.broadcast_to(scores, (min(per, draws - begin), *scores.shape)), axis=2)


def _orders(random: np.random.Generator, shape: tuple[int, int], count: int) -> np.ndarray:
    """Random orders of `count` places, (*shape, count)."""
    return random.permuted(np.broadcast_to(np.arange(count), (*shape, count)), axis=2)


def _t_of_two(
    effects: np.ndarray, moments: np.ndarray, first: np.ndarray, second: np.ndarray, clusters: int
) -> np.ndarray:
    """|t| of contrasts of two groups, (draws, m); `moments` are the sums of products of the scores, (draws, k, k)."""
    of_one = np.diagonal(moments, axis1=1, axis2=2)
    squares = of_one[:, first] + of_one[:, second] - 2 * moments[:, first, second]
    return _t(effects[:, first] - effects[:, second], squares, clusters)


def _t(sums: np.ndarray, squares: np.ndarray, clusters: int) -> np.ndarray:
    """|t| of a sum over the clusters, given the sum of squares; infinite where every cluster has the same part."""
    variance = np.maximum(0.0, squares - np.square(sums) / clusters) * clusters / max(1, clusters - 1)
    still = variance <= 1e-12 * np.maximum(squares, 1e-300)
    certain = np.where(squares > 0, np.inf, 0.0)
    return np.where(still, certain, np.abs(sums) / np.sqrt(np.where(still, 1.0, variance)))


def _reach(largest: np.ndarray) -> float:
    """The largest |t| that 95% of the draws stay at or below."""
    return float(np.sort(largest)[math.ceil(0.95 * len(largest)) - 1])


def _p(drawn: np.ndarray, observed: np.ndarray | float) -> np.ndarray:
    """(c + 1) / (draws + 1), with c draws that reach what is observed; what differs in the last bits is equal."""
    threshold = np.asarray(observed) * (1 - 1e-9)
    return ((drawn[:, None] >= threshold.reshape(1, -1)).sum(axis=0) + 1).reshape(threshold.shape) / (len(drawn) + 1)
