"""Diversity has no value per response. Its test and its interval therefore come from resampling pairs."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.lexicons.text import encode_words
from fairness_pipeline.statistics.intervals import Estimate


class Diversity(NamedTuple):
    """The number of words of one side, and its distinct-1, distinct-2 and their mean as shares of the words."""

    words: int
    distinct_1: float
    distinct_2: float
    diversity: float


class NGrams:
    """The words and word pairs that each distinct response holds, with every count that distinct-n needs.

    Args:
        tokenized: The distinct responses, as lists of words.

    Examples:
        >>> ngrams = NGrams([["i", "do"], ["i", "do", "not"]])
        >>> ngrams.diversity(np.array([0, 1, 1])).distinct_1
        0.375
    """

    def __init__(self, tokenized: list[list[str]]) -> None:
        self.words = np.array([len(tokens) for tokens in tokenized], dtype=np.int64)
        encoded = encode_words(tokenized)
        self._unigrams = _Incidence(encoded.codes, encoded.owners)
        together = encoded.owners[1:] == encoded.owners[:-1]
        pairs = encoded.codes[:-1] * len(encoded.words) + encoded.codes[1:]
        compact = pa.array(pairs[together]).dictionary_encode().indices.to_numpy()
        self._bigrams = _Incidence(compact, encoded.owners[1:][together])

    def diversity(self, responses: np.ndarray) -> Diversity:
        """distinct-n = distinct n-grams / words (Li et al. 2016; Liu et al. 2020, section 2.4.1).

        Args:
            responses: Index of the distinct response of each pair on one side.
        """
        words = int(self.words[responses].sum())
        present = np.zeros(len(self.words), dtype=bool)
        present[responses] = True
        one = self._unigrams.distinct(present) / words if words else 0.0
        two = self._bigrams.distinct(present) / words if words else 0.0
        return Diversity(words, one, two, (one + two) / 2)

    def without_blocks(self, responses: np.ndarray, block: np.ndarray, blocks: int) -> np.ndarray:
        """distinct-1, distinct-2 and diversity with each block of pairs left out in turn, (blocks, 3).

        Leaving out a block loses an n-gram if no other block contains it. One pass over the n-grams therefore covers
        all blocks.

        Args:
            responses: Index of the distinct response of each pair on one side.
            block: The block of each pair, from 0.
            blocks: The number of blocks.
        """
        count = len(self.words)
        present = np.zeros(count, dtype=bool)
        present[responses] = True
        first, last = np.full(count, blocks), np.full(count, -1)
        np.minimum.at(first, responses, block)
        np.maximum.at(last, responses, block)
        words = self.words[responses].sum() - np.bincount(block, self.words[responses], blocks)
        grams = self._unigrams, self._bigrams
        kinds = np.array([each.without_blocks(present, first, last, blocks) for each in grams])
        shares = np.divide(kinds, words, out=np.zeros(kinds.shape), where=words > 0)
        return np.stack([*shares, shares.mean(axis=0)], axis=1)


class _Incidence:
    """The kinds of things (numbered n-grams) that each owner (response) holds, as two flat arrays."""

    def __init__(self, kinds: np.ndarray, owners: np.ndarray) -> None:
        self._kinds = kinds
        self._owners = owners
        self._count = int(kinds.max()) + 1 if len(kinds) else 0

    def distinct(self, present: np.ndarray) -> int:
        """How many kinds the owners that are `present` hold together."""
        found = np.zeros(self._count, dtype=bool)
        found[self._kinds[present[self._owners]]] = True
        return int(found.sum())

    def without_blocks(self, present: np.ndarray, first: np.ndarray, last: np.ndarray, blocks: int) -> np.ndarray:
        """How many kinds are left without each block, for owners that lie in the blocks from `first` to `last`."""
        used = present[self._owners]
        kinds, owners = self._kinds[used], self._owners[used]
        earliest, latest = np.full(self._count, blocks), np.full(self._count, -1)
        np.minimum.at(earliest, kinds, first[owners])
        np.maximum.at(latest, kinds, last[owners])
        alone = earliest[earliest == latest]
        return int((latest >= 0).sum()) - np.bincount(alone, minlength=blocks)[:blocks]


_EXACT = 10
"""Up to this many clusters, every pattern of exchanges is tried."""


def permutation_p(
    ngrams: NGrams, a: np.ndarray, b: np.ndarray, permutations: int, seed: int, cluster: np.ndarray | None = None
) -> dict[str, float]:
    """Paired permutation test of distinct-1, distinct-2 and diversity.

    Under the null hypothesis the two responses of a pair may change places. p = (c + 1) / (permutations + 1), where c
    is the number of random exchanges whose difference is at least as large as the observed one. If pairs move together,
    all pairs of a cluster change places at once. With up to ten clusters every pattern is tried, and p is exact.

    Args:
        ngrams: The n-grams of the distinct responses.
        a: Index of each pair's response to side a.
        b: The same for side b.
        permutations: The number of random exchanges.
        seed: The seed of the exchanges.
        cluster: The cluster of each pair, numbered from 0 without gaps. If it is None, each pair is its own cluster.
    """
    random = np.random.default_rng(seed)
    observed = np.abs(_differences(ngrams, a, b))
    # Differences that differ only in the last bits of a float count as equal.
    threshold = observed * (1 - 1e-9) - 1e-15
    reached = np.zeros(len(_MEASURES), dtype=np.int64)
    own = np.arange(len(a)) if cluster is None else cluster
    count = int(own.max()) + 1
    exact = cluster is not None and count <= _EXACT
    # Only the patterns that keep the last cluster in place: exchanging all clusters only changes the sign.
    patterns = product((False, True), repeat=count - 1) if exact else ()
    draws = 0
    for swap in (
        (np.array([*pattern, False]) for pattern in patterns)
        if exact
        else (random.random(count) < 0.5 for _ in range(permutations))
    ):
        moved = swap[own]
        reached += np.abs(_differences(ngrams, np.where(moved, b, a), np.where(moved, a, b))) >= threshold
        draws += 1
    p = reached / draws if exact else (reached + 1) / (draws + 1)
    return dict(zip(_MEASURES, p.tolist(), strict=True))


class Jackknife(NamedTuple):
    """An estimated difference, and the mean of the two sides with its variance and its covariance with the
    difference."""

    estimate: Estimate
    mean: float
    variance: float
    covariance: float


def jackknife(
    ngrams: NGrams, a: np.ndarray, b: np.ndarray, blocks: int, block: np.ndarray | None = None
) -> dict[str, Jackknife]:
    """Delete-block jackknife of the differences in distinct-1, distinct-2 and diversity.

    The pairs are cut into `blocks` runs of consecutive pairs, and each run is left out once. Resampling with
    replacement would repeat responses and so bias distinct-n down. error^2 = (g - 1) / g * sum (d_i - mean d)^2 over
    the g blocks, plus the variance of one average pair that differs each way, 2 (mean value / n)^2: as for rates, a few
    equal pairs must not claim certainty. `block` gives each pair's block if the blocks are not runs.
    """
    found = left_out(ngrams, a, b, blocks, block)
    count = len(found.without["diversity"])
    estimates = {}
    for name, value in found.whole.items():
        mean = found.means[name]
        if count < 2:
            estimates[name] = Jackknife(Estimate(value, np.inf), mean, np.inf, 0.0)
            continue
        spread = (count - 1) / count * np.cov(found.without[name], found.means_without[name], ddof=0) * count
        error = np.sqrt(spread[0, 0] + 2 * (mean / len(a)) ** 2)
        estimates[name] = Jackknife(Estimate(value, float(error), count - 1), mean, spread[1, 1], spread[0, 1])
    return estimates


class LeftOut(NamedTuple):
    """The differences (side a minus side b) by measure: over all pairs, and with each block of pairs left out in turn.

    `means` and `means_without` are the same for the mean of the two sides.
    """

    whole: dict[str, float]
    without: dict[str, np.ndarray]
    means: dict[str, float]
    means_without: dict[str, np.ndarray]


def left_out(ngrams: NGrams, a: np.ndarray, b: np.ndarray, blocks: int, block: np.ndarray | None = None) -> LeftOut:
    """The differences in distinct-1, distinct-2 and diversity that a delete-block jackknife works on.

    The pairs are cut into `blocks` runs, or one run per pair if there are fewer pairs. If `block` is given, it says
    which block each pair is in.
    """
    blocks = min(blocks, len(a))
    if block is None:
        block = np.arange(len(a)) * blocks // len(a)
    both = [ngrams.without_blocks(side, block, blocks) for side in (a, b)]
    sides = np.stack(both, axis=1)[: blocks if blocks > 1 else 0]
    whole = np.array([_values(ngrams, side) for side in (a, b)])
    return LeftOut(
        dict(zip(_MEASURES, (whole[0] - whole[1]).tolist(), strict=True)),
        dict(zip(_MEASURES, (sides[:, 0] - sides[:, 1]).T, strict=True)),
        dict(zip(_MEASURES, whole.mean(axis=0).tolist(), strict=True)),
        dict(zip(_MEASURES, sides.mean(axis=1).T, strict=True)),
    )


_MEASURES = ("distinct_1", "distinct_2", "diversity")


def _differences(ngrams: NGrams, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _values(ngrams, a) - _values(ngrams, b)


def _values(ngrams: NGrams, responses: np.ndarray) -> np.ndarray:
    found = ngrams.diversity(responses)
    return np.array([getattr(found, name) for name in _MEASURES])
