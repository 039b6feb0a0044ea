"""The jackknife interval of diversity, which has no value per response; its test is in `permutation`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from fairness_pipeline.lexicons.text import EncodedWords, encode_words
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
        tokenized: The distinct responses, as lists of words, or encoded.

    Examples:
        >>> ngrams = NGrams([["i", "do"], ["i", "do", "not"]])
        >>> ngrams.diversity(np.array([0, 1, 1])).distinct_1
        0.375
    """

    def __init__(self, tokenized: Sequence[list[str]] | EncodedWords) -> None:
        encoded = tokenized if isinstance(tokenized, EncodedWords) else encode_words(tokenized)
        self.words = encoded.lengths
        self._unigrams, self._bigrams = _Incidence(encoded, 1), _Incidence(encoded, 2)

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

    def diversity_by_draw(self, words: np.ndarray, present: np.ndarray) -> np.ndarray:
        """distinct-1, distinct-2 and diversity in 64 draws at once: (64, 3).

        Args:
            words: (64,) the number of words of the side in each draw.
            present: (responses,) a word of 64 bits for each distinct response; bit k says whether the side has it in
                draw k.
        """
        kinds = np.array([each.distinct_by_draw(present) for each in (self._unigrams, self._bigrams)])
        one, two = np.divide(kinds, words, out=np.zeros(kinds.shape), where=words > 0)
        return np.stack([one, two, (one + two) / 2], axis=1)

    def without_blocks(self, responses: np.ndarray, block: np.ndarray, blocks: int) -> np.ndarray:
        """distinct-1, distinct-2 and diversity without each block of pairs, and last of all pairs: (blocks + 1, 3).

        Leaving out a block loses an n-gram if no other block contains it. One pass over the n-grams therefore covers
        all blocks.

        Args:
            responses: Index of the distinct response of each pair on one side.
            block: The block of each pair, from 0.
            blocks: The number of blocks.
        """
        count = len(self.words)
        narrow = np.min_scalar_type(-1 - blocks)  # small, so that random look-ups fit a cache
        first, last = np.full(count, blocks, narrow), np.full(count, -1, narrow)
        np.minimum.at(first, responses, block.astype(narrow))
        np.maximum.at(last, responses, block.astype(narrow))
        words = np.bincount(block, self.words[responses], blocks)
        left = np.append(words.sum() - words, words.sum())
        kinds = np.array([each.without_blocks(first, last, blocks) for each in (self._unigrams, self._bigrams)])
        shares = np.divide(kinds, left, out=np.zeros(kinds.shape), where=left > 0)
        return np.stack([*shares, shares.mean(axis=0)], axis=1)


class SideResponses(NamedTuple):
    """The n-grams of all distinct responses, and the index of each pair's response to side a and to side b."""

    ngrams: NGrams
    a: np.ndarray
    b: np.ndarray

    def take(self, kept: np.ndarray) -> Self:
        """The pairs for which `kept` is true."""
        return self._replace(a=self.a[kept], b=self.b[kept])


DRAWS = 64
"""Random draws that `distinct_by_draw` counts at once, a bit each."""
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)


def count_bits(words: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """How often each bit is set, (64,), weighted: from a histogram of each byte."""
    octets = words.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
    return np.concatenate([np.bincount(octets[:, i], weights, minlength=256) @ _BITS for i in range(8)])


_FEW = 12
"""Responses of an n-gram that are looked at first."""


class _Shared:
    """The responses of the n-grams that several responses hold. What is asked of an n-gram is mostly settled by a few
    of its responses, drawn at random; the rest are read where it is not.

    Args:
        owners: The responses, n-gram by n-gram, each n-gram's in a random order.
        counts: How many responses each n-gram has.
    """

    def __init__(self, owners: np.ndarray, counts: np.ndarray) -> None:
        few = np.minimum(counts, _FEW)
        begins = (np.cumsum(counts) - counts).astype(np.int32)
        first = np.arange(len(owners), dtype=np.int32) < np.repeat(begins + _FEW, counts)
        self._few, self._few_begins = owners[first], np.cumsum(few) - few
        self._rest, rest = owners[~first], counts - few
        self._long = np.flatnonzero(rest)
        self._rest_counts = rest[self._long]
        self._rest_begins = np.cumsum(self._rest_counts) - self._rest_counts

    def fold(
        self, folds: Sequence[tuple[np.ufunc, np.ndarray]], settled: Callable[..., np.ndarray]
    ) -> list[np.ndarray]:
        """For each n-gram, each function over the values of its responses: as many arrays as there are `folds`.

        Args:
            folds: Functions such as the maximum, which may take one value twice; and the value of each response.
            settled: Whether further responses cannot change what is asked, from the values so far.
        """
        folded = [ufunc.reduceat(_at(values, self._few), self._few_begins) for ufunc, values in folds]
        rest = np.flatnonzero(~settled(*(each[self._long] for each in folded)))
        if len(rest):
            counts = self._rest_counts[rest]
            begins = np.cumsum(counts) - counts
            owners = self._rest[np.repeat(self._rest_begins[rest] - begins, counts) + np.arange(counts.sum())]
            unsettled = self._long[rest]
            for each, (ufunc, values) in zip(folded, folds, strict=True):
                each[unsettled] = ufunc(each[unsettled], ufunc.reduceat(_at(values, owners), begins))
        return folded


def _at(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    return values.take(places, mode="clip")  # without a check of each place, twice as fast


class _Incidence:
    """The n-grams that each response holds.

    Args:
        words: The words of the responses.
        order: The number of words of an n-gram: one or two.

    Attributes:
        _alone: (responses,) how many n-grams only this response holds.
        _shared: The other n-grams, in parts: sorting needs several times the memory of its input.
    """

    def __init__(self, words: EncodedWords, order: int) -> None:
        responses, ends = len(words.lengths), np.cumsum(words.lengths)
        starts = np.ones(len(words.codes), dtype=bool)  # whether an n-gram starts at a word
        if order == 2:
            starts[ends[words.lengths > 0] - 1] = False
        drawn = np.random.default_rng(0).permutation(responses).astype(np.int32)  # an n-gram's responses in this order
        places = np.argsort(drawn).astype(np.int32)
        self._alone = np.zeros(responses)
        self._shared: list[_Shared] = []
        parts = 1 << (len(words.codes) // _PART).bit_length()
        for part in range(parts):
            chosen = np.flatnonzero(starts & (words.codes & (parts - 1) == part))
            owners = np.repeat(places, np.diff(np.searchsorted(chosen, ends), prepend=0))
            holders, begins = _holders([words.codes[chosen + shift] for shift in range(order)], owners, responses)
            holders = drawn[holders]
            counts = np.diff(begins, append=len(holders))
            alone = counts == 1
            self._alone += np.bincount(holders[begins[alone]], minlength=responses)
            shared = holders[np.repeat(~alone, counts)]
            if len(shared):
                self._shared.append(_Shared(shared, counts[~alone]))

    def distinct(self, present: np.ndarray) -> int:
        """How many n-grams the responses that are `present` hold together."""
        shared = sum(int(part.fold([(np.logical_or, present)], _all_bits)[0].sum()) for part in self._shared)
        return int(self._alone[present].sum()) + shared

    def distinct_by_draw(self, present: np.ndarray) -> np.ndarray:
        """`distinct` in 64 draws at once: (64,).

        Args:
            present: (responses,) a word of 64 bits each; bit k says whether the response is present in draw k.
        """
        shared = (count_bits(part.fold([(np.bitwise_or, present)], _all_bits)[0]) for part in self._shared)
        return sum(shared, start=count_bits(present, self._alone))

    def without_blocks(self, first: np.ndarray, last: np.ndarray, blocks: int) -> np.ndarray:
        """How many n-grams are left without each block, and last how many all blocks have: (blocks + 1,).

        Args:
            first: (responses,) the first block that each response is in; `blocks` if it is in none.
            last: (responses,) the last one; -1 if it is in none.
            blocks: The number of blocks.
        """
        count = self._alone[last >= 0].sum()
        lost = np.bincount(first[first == last], self._alone[first == last], blocks)
        for part in self._shared:
            earliest, latest = part.fold([(np.minimum, first), (np.maximum, last)], np.less)
            count += (latest >= 0).sum()
            lost += np.bincount(earliest[earliest == latest], minlength=blocks)
        return np.append(count - lost, count)


def _all_bits(values: np.ndarray) -> np.ndarray:
    return values == ~np.zeros_like(values)


_PART = 2_000_000
"""N-grams that are sorted together."""


def _holders(codes: Sequence[np.ndarray], owners: np.ndarray, responses: int) -> tuple[np.ndarray, np.ndarray]:
    """The owners of each kind of n-gram, one kind after another and each owner once; and where each kind begins.

    Args:
        codes: The words of each n-gram: an array of first words, and one of second words.
        owners: The response of each n-gram.
        responses: The number of responses.
    """
    kinds = codes[0].astype(np.int64)
    for code in codes[1:]:
        kinds *= int(code.max(initial=0)) + 1
        kinds += code
    if int(kinds.max(initial=0)) >= np.iinfo(np.int64).max // (responses + 1):  # too large to hold the owner as well
        kinds = pa.array(kinds).dictionary_encode().indices.to_numpy().astype(np.int64)
    both = kinds
    both *= responses
    both += owners
    both.sort()
    both = both[np.diff(both, prepend=-1) > 0]  # an owner may hold a kind twice
    kinds = both // max(responses, 1)
    both -= kinds * responses
    return both.astype(np.int32), np.flatnonzero(np.diff(kinds, prepend=-1))


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
    gaps = left_out(ngrams, a, b, blocks, block)
    count = len(gaps.without["diversity"])
    estimates = {}
    for name, value in gaps.whole.items():
        mean = gaps.means[name]
        if count < 2:
            estimates[name] = Jackknife(Estimate(value, np.inf), mean, np.inf, 0.0)
            continue
        spread = (count - 1) / count * np.cov(gaps.without[name], gaps.means_without[name], ddof=0) * count
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
    """The differences in distinct-1, distinct-2 and diversity for a delete-block jackknife.

    The pairs are cut into `blocks` runs, or one run per pair if there are fewer pairs. `block` gives each pair's
    block if the blocks are not runs.
    """
    blocks = min(blocks, len(a))
    if block is None:
        block = np.arange(len(a)) * blocks // len(a)
    both = [ngrams.without_blocks(side, block, blocks) for side in (a, b)]
    sides = np.stack(both, axis=1)
    whole, sides = sides[-1], sides[: blocks if blocks > 1 else 0]
    return LeftOut(
        dict(zip(MEASURES, (whole[0] - whole[1]).tolist(), strict=True)),
        dict(zip(MEASURES, (sides[:, 0] - sides[:, 1]).T, strict=True)),
        dict(zip(MEASURES, whole.mean(axis=0).tolist(), strict=True)),
        dict(zip(MEASURES, sides.mean(axis=1).T, strict=True)),
    )


def jackknifed(value: float, without: np.ndarray) -> Estimate:
    """A figure with the error of leaving out each of g blocks: error^2 = (g - 1) / g * sum (d_i - mean d)^2."""
    count = len(without)
    variance = (count - 1) / count * ((without - without.mean()) ** 2).sum() if count > 1 else np.inf
    return Estimate(value, float(np.sqrt(variance)), max(count - 1, 1))


MEASURES = ("distinct_1", "distinct_2", "diversity")


def values(ngrams: NGrams, responses: np.ndarray) -> np.ndarray:
    """The figures named in `MEASURES` of one side's responses."""
    diversity = ngrams.diversity(responses)
    return np.array([getattr(diversity, name) for name in MEASURES])
