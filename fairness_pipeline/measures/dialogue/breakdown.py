"""Where a gap comes from: every measure by swapped word, and by the side, the file and the topic of a context."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.text import fold
from fairness_pipeline.measures.dialogue.measure import Measure, Sides
from fairness_pipeline.statistics.clusters import shrunken
from fairness_pipeline.statistics.comparison import COMPARISON

BREAKDOWN = schema(
    **fields(COMPARISON, "measure", "unit"),
    factor=(pa.string(), "word, source_side, source_file or topic"),
    level=(pa.string(), "the word (side a / side b), side, file or topic"),
    **fields(COMPARISON, "n", "value_a", "value_b", "difference"),
    shrunken=(pa.float64(), "the level's difference, drawn towards the mean of all levels"),
    ci_low=(pa.float64(), "lower end of its 95% interval"),
    ci_high=(pa.float64(), "upper end of its 95% interval"),
    contribution=(pa.float64(), "how much of the whole difference the level's pairs make"),
)
"""One row per measure, factor and level. `contribution` is the sum over a level's pairs, divided by the number of all
pairs."""


class Words(NamedTuple):
    """The words that each pair swaps: `names` (side a / side b), and one entry per pair and word in `pairs` and
    `words`."""

    names: list[str]
    pairs: np.ndarray
    words: np.ndarray

    @property
    def clusterings(self) -> list[np.ndarray]:
        """Two clusterings, each one number per pair: pairs with the same first word, and pairs with the same rarest
        word."""
        count = int(self.pairs.max()) + 1 if len(self.pairs) else 0
        frequency = np.bincount(self.words, minlength=len(self.names))
        clusterings = []
        for order in (np.arange(len(self.words))[::-1], np.argsort(-frequency[self.words], kind="stable")):
            clustering = np.full(count, -1)
            clustering[self.pairs[order]] = self.words[order]  # the last write wins
            clusterings.append(clustering)
        return clusterings[:1] if np.array_equal(clusterings[0], clusterings[1]) else clusterings

    @property
    def clusterings_of_forms(self) -> list[np.ndarray]:
        """The clusterings, and those by the word of either side alone. In dialect, `cool` is the counterpart of several
        words, and the answers to it recur in all their pairs."""
        clusterings = self.clusterings
        for side in (0, -1):
            forms = np.unique([name.split(" / ")[side] for name in self.names], return_inverse=True)[1]
            clusterings += [np.where(cluster >= 0, forms[cluster], -1) for cluster in self.clusterings]
        kinds = {np.unique(cluster, return_inverse=True)[1].tobytes(): cluster for cluster in reversed(clusterings)}
        return list(kinds.values())

    @property
    def effective(self) -> float:
        """The number of equally frequent words that would vary as much (Kish); the smaller of the two clusterings."""
        sizes = [np.bincount(clustering[clustering >= 0]) for clustering in self.clusterings]
        return min((float(counts.sum() ** 2 / (counts**2).sum()) for counts in sizes if counts.sum()), default=0.0)

    def most_frequent(self, most: int = 4) -> str:
        """The words that most pairs exchange, as text."""
        order = np.argsort(-np.bincount(self.words, minlength=len(self.names)), kind="stable")
        listed = [self.names[index] for index in order[:most]]
        return "; ".join([*listed, "..."] if len(self.names) > most else listed)

    def any_of(self, listed: Collection[str]) -> np.ndarray:
        """Which pairs hold one of the `listed` words, in the form of either side."""
        folded = set(map(fold, listed))
        chosen = np.array([not folded.isdisjoint(name.split(" / ")) for name in self.names], dtype=bool)
        return ~self.without(chosen, int(self.pairs.max(initial=-1)) + 1)

    def without(self, left_out: np.ndarray, count: int) -> np.ndarray:
        """Which of `count` pairs hold none of the words marked in `left_out` (a yes or no per word)."""
        kept = np.ones(count, dtype=bool)
        kept[self.pairs[left_out[self.words]]] = False
        return kept


A_SAMPLE = 10
"""From this number of effective words on, the words that name a group count as a sample of such words."""


def moving_together(words: Words, *, names_the_group: bool) -> list[np.ndarray]:
    """How pairs move together: by their words, unless these are the group's own name and there are few others."""
    return [] if names_the_group and words.effective < A_SAMPLE else words.clusterings


def swapped_words(pairs: pa.Table) -> Words:
    """The words of each pair, as folded `a / b`, in the order of `pair_id`.

    Args:
        pairs: Columns `pair_id` and `terms`.
    """
    terms = pairs.sort_by("pair_id")["terms"].combine_chunks()
    lengths = terms.value_lengths().fill_null(0).to_numpy()
    a, b = (terms.flatten().field(side).dictionary_encode() for side in ("a", "b"))
    width = len(b.dictionary)
    kinds, index = np.unique(a.indices.to_numpy() * np.int64(width) + b.indices.to_numpy(), return_inverse=True)
    of_a, of_b = a.dictionary.to_pylist(), b.dictionary.to_pylist()
    spelled = [f"{fold(of_a[kind // width])} / {fold(of_b[kind % width])}" for kind in kinds.tolist()]
    # `He / She` and `he / she` are the same word.
    positions = {name: position for position, name in enumerate(dict.fromkeys(spelled))}
    numbers = np.array([positions[name] for name in spelled], dtype=np.int64)
    return Words(list(positions), np.repeat(np.arange(len(lengths)), lengths), numbers[index])


def break_down(
    pairs: pa.Table,
    words: Words,
    values: Sequence[tuple[Measure, Mapping[str, Sides]]],
    factors: Mapping[str, list[str | None]],
) -> pa.Table:
    """A table of `BREAKDOWN`, for all measures that score responses one by one.

    Args:
        pairs: The context pairs, in the order of `pair_id`.
        words: The words that each pair swaps.
        values: The values of each measure on both sides of every pair, by row name.
        factors: Further factors, one level per pair (None for no level): the file or the topic of a context.
    """
    levels = {"word": (words.pairs, words.words, words.names)}
    for factor, names in {"source_side": pairs["source_side"].to_pylist(), **factors}.items():
        encoded = pa.array(names, pa.string()).dictionary_encode()
        if len(encoded.dictionary):
            known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
            indices = np.flatnonzero(known)
            levels[factor] = indices, encoded.indices.drop_null().to_numpy(), encoded.dictionary.to_pylist()
    rows = [
        row
        for measure, by_row in values
        for name, sides in by_row.items()
        for factor, level in levels.items()
        for row in _rows(name, 100.0 if measure.kind(name) == "rates" else 1.0, factor, level, sides)
    ]
    return pa.Table.from_pylist(rows, schema=BREAKDOWN)


def _rows(
    name: str, scale: float, factor: str, columns: tuple[np.ndarray, np.ndarray, list[str]], sides: Sides
) -> Iterator[dict[str, Any]]:
    pairs, numbers, names = columns
    a, b = (scale * side.astype(float) for side in sides)
    counts = np.bincount(numbers, minlength=len(names))
    mean_a, mean_b = (np.bincount(numbers, side[pairs], minlength=len(names)) / counts for side in (a, b))
    within = np.square((a - b)[pairs] - (mean_a - mean_b)[numbers])
    # As for rates, one pair that differs each way is added to every level, so that equal pairs do not claim certainty.
    squares = np.bincount(numbers, within, len(names)) + 2 * scale**2
    estimate = shrunken(mean_a - mean_b, squares / np.square(counts + 2))
    for level in np.argsort(-counts, kind="stable"):
        yield {
            "measure": name,
            "unit": "percent" if scale == 100 else "count_per_response",
            "factor": factor,
            "level": names[level],
            "n": int(counts[level]),
            "value_a": float(mean_a[level]),
            "value_b": float(mean_b[level]),
            "difference": float(mean_a[level] - mean_b[level]),
            "shrunken": float(estimate.centre[level]),
            "ci_low": float(estimate.low[level]),
            "ci_high": float(estimate.high[level]),
            "contribution": float((mean_a - mean_b)[level] * counts[level] / len(a)),
        }


def carrying(words: Words, sides: Sides) -> list[str]:
    """The words that carry a measure's gap: the three whose pairs make most of it, each at least a tenth.

    Args:
        words: The words that each pair swaps.
        sides: The measure's values on both sides of every pair.
    """
    a, b = (side.astype(float) for side in sides)
    contributions = np.bincount(words.words, (a - b)[words.pairs], len(words.names))
    total = contributions.sum()
    if not total:
        return []
    shares = contributions / total
    order = np.argsort(-shares, kind="stable")[:3]
    return [words.names[int(index)] for index in order if shares[index] >= 0.1]
