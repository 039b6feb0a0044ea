"""The paired permutation test of diversity, which has no value per response.

A draw decides for each pair whether its responses change places. 64 draws are packed into one word per pair, a bit
each: one `or` over words then tells in which of them a side has a response or an n-gram.
"""

from collections.abc import Iterator
from itertools import islice, product

import numpy as np

from fairness_pipeline.foundation.side_by_side import in_threads
from fairness_pipeline.statistics.resampling import DRAWS, MEASURES, NGrams, count_bits, values

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
    cluster_of = np.arange(len(a)) if cluster is None else cluster
    count = int(cluster_of.max()) + 1
    exact = cluster is not None and count <= _EXACT
    if not exact and not permutations:
        return dict.fromkeys(MEASURES, 1.0)
    observed = np.abs(values(ngrams, a) - values(ngrams, b))
    # Differences that differ only in the last bits of a float count as equal.
    threshold = observed * (1 - 1e-9) - 1e-15
    patterns = _every_pattern(count) if exact else _random_patterns(count, permutations, seed)
    exchanged = _Exchanged(ngrams, a, b, cluster_of, count)
    reached, draws = np.zeros(len(MEASURES), dtype=np.int64), 0
    for differences in in_threads(exchanged.differences, _packs(patterns)):
        reached += (np.abs(differences) >= threshold).sum(axis=0)
        draws += len(differences)
    p = reached / draws if exact else (reached + 1) / (draws + 1)
    return dict(zip(MEASURES, p.tolist(), strict=True))


def _packs(patterns: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The patterns, `DRAWS` at a time."""
    while pack := list(islice(patterns, DRAWS)):
        yield np.array(pack)


def _random_patterns(clusters: int, permutations: int, seed: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(seed)
    return (random.random(clusters) < 0.5 for _ in range(permutations))


def _every_pattern(clusters: int) -> Iterator[np.ndarray]:
    """The patterns that keep the last cluster in place: exchanging all clusters only changes the sign."""
    return (np.array([*pattern, False]) for pattern in product((False, True), repeat=clusters - 1))


class _Exchanged:
    """The two sides after clusters of pairs have changed places.

    Args:
        ngrams: The n-grams of the distinct responses.
        a: (pairs,) index of each pair's response to side a.
        b: The same for side b.
        cluster: (pairs,) the cluster of each pair.
        clusters: The number of clusters.
    """

    def __init__(self, ngrams: NGrams, a: np.ndarray, b: np.ndarray, cluster: np.ndarray, clusters: int) -> None:
        self._ngrams = ngrams
        responses = np.concatenate([a, b])
        order = np.argsort(responses, kind="stable")
        self._begins = np.flatnonzero(np.diff(responses[order], prepend=-1))
        self._responses = responses[order][self._begins]
        self._cluster = np.concatenate([cluster, cluster])[order]
        self._from_b = np.where(order < len(a), np.uint64(0), ~np.uint64(0))
        words_a, words_b = ngrams.words[a], ngrams.words[b]
        self._words = int(words_a.sum()), int(words_b.sum())
        self._gained = np.bincount(cluster, words_b - words_a, clusters)  # by side a if the cluster is exchanged

    def differences(self, swaps: np.ndarray) -> np.ndarray:
        """Side a minus side b in each draw, (draws, 3).

        Args:
            swaps: (draws, clusters) whether a cluster is exchanged; at most 64 draws.
        """
        draws = len(swaps)
        packed = np.zeros((8, swaps.shape[1]), dtype=np.uint8)
        packed[: -(-draws // 8)] = np.packbits(swaps, axis=0, bitorder="little")
        moved = np.ascontiguousarray(packed.T).view("<u8").ravel()
        gained = count_bits(moved, self._gained)
        in_b = moved[self._cluster] ^ self._from_b  # b's response where it stays, and a's where it is exchanged
        sides = []
        for words, present in ((self._words[0] + gained, ~in_b), (self._words[1] - gained, in_b)):
            held = np.zeros(len(self._ngrams.words), dtype=np.uint64)
            held[self._responses] = np.bitwise_or.reduceat(present, self._begins)
            sides.append(self._ngrams.diversity_by_draw(words, held))
        return (sides[0] - sides[1])[:draws]
