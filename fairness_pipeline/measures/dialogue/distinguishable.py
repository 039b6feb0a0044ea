"""Tests whether the words of an answer, with the groups' words masked, reveal which group was named.

It finds any difference in words, and not only those in lists; a reader has to judge whether a difference harms. See
`statistics/two_sample.py` for the test.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.measures.dialogue.breakdown import Words
from fairness_pipeline.measures.dialogue.measure import SIDES, Outcome, neutral_reading
from fairness_pipeline.measures.dialogue.text_features import WIDTH, commonest_names, commonest_sentence, features_of
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.statistics.two_sample import PairedSums, TwoSampleResult, distinguish_sides
from fairness_pipeline.statistics.verdicts import DIFFERS, DIFFERS_BY_LENGTH, too_few

DISTINGUISHABLE = "distinguishable"
"""The row of the significance table. Side a is chance, side b the share of pairs that are told apart."""

OUTCOMES = {
    DISTINGUISHABLE: Outcome(
        "Distinguishable answers",
        "score",
        "from the answers alone, without the groups' words, the group can be told in {high}% of pairs (chance: 50%)",
    )
}

DISTINGUISHABLE_ANSWERS = schema(
    **fields(SIDES, "pair_id", "side"),
    score=(pa.float64(), "how much the answer's words are those of answers to side b, by a classifier of other words"),
)
"""One row per answer. A pair is told apart if side b has the higher score."""

_SKETCH = 128
"""The number of dimensions to which a template's differences are projected before they are compared."""
_BLOCK, _LETTERS = 10_000, 8_000_000
"""The most pairs that are read at once, and the most letters."""
_LEVEL = 0.05
_MOST = 8
"""The most carriers that are named."""
_OVERLAP = 0.8
"""A carrier is left out if it shares this part of its answers with one that was named before."""


@dataclass(frozen=True)
class Carrier:
    """A word, or two words in a row, that one side's answers have more often (family-wise error controlled).

    Attributes:
        text: The words.
        side: The side whose answers have it more often: `a` or `b`.
        share_a: The share of side a's answers with it, in percent.
        share_b: The same of side b.
        words: The number of exchanged words with which that side has it more often.
        of_words: The number of exchanged words with which it occurs.
        p: The p, adjusted over all words.
        sentence: The commonest sentence with it.
        pairs: Some pairs that show it.
    """

    text: str
    side: str
    share_a: float
    share_b: float
    words: int
    of_words: int
    p: float
    sentence: str
    pairs: tuple[int, ...]


@dataclass(frozen=True)
class Distinguished:
    """The result of the test.

    Attributes:
        n: The number of pairs.
        words: The number of exchanged words, which are the sample.
        told_apart: The share of pairs that are told apart by a classifier of the other words, in percent; 50 is chance.
        p: The p of the hypothesis that the answers cannot be told apart.
        p_beyond_length: The p of statistics that the length of the exchanged words cannot raise.
        carriers: The words that carry the difference.
    """

    n: int
    words: int
    told_apart: float
    p: float
    p_beyond_length: float
    carriers: tuple[Carrier, ...]

    @property
    def figures(self) -> dict[str, Any]:
        """The result as JSON values."""
        carriers = [{**asdict(carrier), "pairs": list(carrier.pairs)} for carrier in self.carriers]
        return {**asdict(self), "carriers": carriers}

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> "Distinguished":
        """The result from its `figures`."""
        carriers = tuple(Carrier(**{**each, "pairs": tuple(each["pairs"])}) for each in figures["carriers"])
        return cls(**{**figures, "carriers": carriers})


def distinguish(
    contexts: tuple[pa.ChunkedArray, pa.ChunkedArray] | None,
    responses: pa.Table,
    exchanged: Words,
    words: MaskedWords,
    *,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Distinguished, np.ndarray]:
    """Tests whether the answers of both sides can be told apart; and (2, pairs) the score of each answer.

    Args:
        contexts: The contexts of both sides, in the order of the pairs: with the words masked, pairs of one template
            are the same, and their lengths show which side of a word is longer. None if only the words are known.
        responses: Columns `pair_id`, `side`, `response`.
        exchanged: The words that each pair swaps. Pairs of a word change sides together; of the two ways to assign
            pairs of several words, the one with the larger p counts.
        words: The words that are masked.
        seed: The seed of the draws.
        progress: Receives the number of pairs that are read.
    """
    answers = neutral_reading(responses, words).sort_by([("side", "ascending"), ("pair_id", "ascending")])["response"]
    texts = _Texts(answers, progress)
    templates = np.arange(texts.pairs)
    if contexts is not None:
        templates = masked(contexts[0], words).combine_chunks().dictionary_encode().indices.to_numpy()
    results = []
    for clustering in exchanged.clusterings:
        numbers, cluster = np.unique(clustering, return_inverse=True)
        if contexts is None:
            direction = length_directions([exchanged.names[number] for number in numbers])
        else:
            direction = _context_directions(*contexts, cluster)
        result = distinguish_sides(_summed(texts, cluster, templates), direction, seed=seed)
        if len(numbers) < FEWEST_TO_TELL:
            result = result._replace(p=1.0, p_beyond=1.0, p_features=np.ones(len(result.kept)))
        results.append((result, cluster))
    result, cluster = max(results, key=lambda result: result[0].p)
    scores, present = _read(texts, result, cluster)
    apart = (scores[1] > scores[0]).mean() + (scores[1] == scores[0]).mean() / 2
    return (
        Distinguished(
            n=texts.pairs,
            words=int(cluster.max(initial=-1)) + 1,
            told_apart=100 * float(apart) if texts.pairs else 50.0,
            p=result.p,
            p_beyond_length=max(result.p_beyond for result, _ in results),
            carriers=tuple(_carriers(texts, present, cluster)) if result.p < _LEVEL else (),
        ),
        scores,
    )


def length_directions(names: Sequence[str]) -> np.ndarray:
    """The longer side of each exchanged word, in letters and in words: 1 for side b, -1 for side a, 0 for neither; NaN
    if letters and words disagree, or a name is not a pair of words.

    Args:
        names: As `Words.names`.

    Examples:
        >>> length_directions(["he / she", "sir / madam", "boy / girl", "man / men", "gay man / fellow"])
        array([ 1.,  1.,  1.,  0., -1.])
    """
    forms = [name.partition(" / ")[::2] for name in names]
    known = np.array([bool(b) for _, b in forms], dtype=bool)
    letters, words = (np.sign([size(b) - size(a) for a, b in forms]) for size in (len, lambda form: len(form.split())))
    return np.where(known, _agreeing(letters, words), np.nan)


def _agreeing(letters: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The direction by letters, or by words if both sides have as many letters; NaN if letters and words disagree."""
    return np.where(letters * words < 0, np.nan, np.where(letters == 0, words, letters))


def _context_directions(a: pa.ChunkedArray, b: pa.ChunkedArray, cluster: np.ndarray) -> np.ndarray:
    """The longer side of each cluster's contexts, in letters and in words, as `length_directions`; NaN also if each
    side is longer in some pairs."""
    signs = []
    for size in (pc.utf8_length, lambda texts: pc.list_value_length(pc.utf8_split_whitespace(texts))):
        longer = np.sign(size(b).to_numpy().astype(int) - size(a).to_numpy())
        most, least = (np.full(int(cluster.max(initial=-1)) + 1, start) for start in (-1, 1))
        np.maximum.at(most, cluster, longer)
        np.minimum.at(least, cluster, longer)
        signs.append(np.where(most * least < 0, np.nan, most + least).clip(-1, 1))
    return _agreeing(*signs)


class _Block(NamedTuple):
    """Some pairs: (texts, features) whether a text has a feature; the text of each pair's sides; and the texts that
    have each requested feature, by feature and words."""

    pairs: slice
    present: sparse.csr_array
    a: np.ndarray
    b: np.ndarray
    named: dict[tuple[int, str], np.ndarray]


class _Texts:
    """Masked answers, side a's before side b's, read a block of pairs at a time.

    Attributes:
        pairs: The number of pairs.
        requested: Features whose words are looked up while blocks are read.
    """

    def __init__(self, answers: pa.ChunkedArray, progress: Progress | None) -> None:
        self.answers, self.pairs = answers, len(answers) // 2
        letters = pc.sum(pc.utf8_length(answers)).as_py() or 0
        self._block = max(1, min(_BLOCK, int(_LETTERS * self.pairs / max(letters, 1))))
        self.requested = np.empty(0, dtype=np.int64)
        self._progress = progress

    def blocks(self) -> Iterator[_Block]:
        """All pairs, a block at a time."""
        for start in range(0, self.pairs, self._block):
            report(self._progress, start, self.pairs, "pairs of answers")
            pairs = slice(start, min(start + self._block, self.pairs))
            count = pairs.stop - start
            sides = [self.answers.slice(begin + start, count) for begin in (0, self.pairs)]
            encoded = pa.concat_arrays([chunk for side in sides for chunk in side.chunks]).dictionary_encode()
            index = encoded.indices.to_numpy()
            present, named = features_of(encoded.dictionary, self.requested)
            yield _Block(pairs, present, index[:count], index[count:], named)


def _summed(texts: _Texts, cluster: np.ndarray, templates: np.ndarray) -> PairedSums:
    count = int(cluster.max(initial=-1)) + 1
    features, differing = sparse.csr_array((count, WIDTH)), np.zeros(WIDTH, dtype=np.int64)
    keys, group = np.unique(templates.astype(np.int64) * max(count, 1) + cluster, return_inverse=True)
    _, template, clusters = np.unique(keys // max(count, 1), return_inverse=True, return_counts=True)
    shared = clusters[template] > 1  # agreement within a template needs two words
    group = np.where(shared, np.cumsum(shared) - 1, -1)[group]
    keys = keys[shared]
    sketch = np.zeros((len(keys), _SKETCH))
    random = np.random.default_rng(0)
    bucket, sign = random.integers(_SKETCH, size=WIDTH), random.choice([-1.0, 1.0], WIDTH)
    for block in texts.blocks():
        difference = block.present[block.b] - block.present[block.a]
        difference.eliminate_zeros()
        pairs = difference.shape[0]
        of_cluster = sparse.csr_array((np.ones(pairs), (cluster[block.pairs], np.arange(pairs))), shape=(count, pairs))
        features = features + of_cluster @ difference
        differing += np.bincount(difference.indices, minlength=WIDTH)
        of_group = np.repeat(group[block.pairs], np.diff(difference.indptr))
        columns, values = difference.indices[of_group >= 0], difference.data[of_group >= 0]
        cells = of_group[of_group >= 0] * _SKETCH + bucket[columns]
        sketch += np.bincount(cells, values * sign[columns], sketch.size).reshape(sketch.shape)
    alike = np.zeros((count, count))
    begins = np.flatnonzero(np.diff(keys // max(count, 1), prepend=-1))[1:]
    for numbers, sums in zip(np.split(keys, begins), np.split(sketch, begins), strict=True):
        words = numbers % max(count, 1)
        alike[np.ix_(words, words)] += sums @ sums.T
    np.fill_diagonal(alike, 0.0)
    return PairedSums(features, differing, np.bincount(cluster, minlength=count), alike)


class _Present(NamedTuple):
    """Features that carry a difference, the strongest first: their words, their p, and for each (2, pairs) whether an
    answer has it."""

    names: list[str]
    p: np.ndarray
    has: list[np.ndarray]


def _read(texts: _Texts, result: TwoSampleResult, cluster: np.ndarray) -> tuple[np.ndarray, _Present]:
    """(2, pairs) each answer's score by the classifier that has not seen its word; and the features that carry."""
    order = np.lexsort([-np.abs(result.statistics), result.p_features])
    strongest = [number for number in order.tolist() if result.p_features[number] <= _LEVEL][: 5 * _MOST]
    texts.requested = result.kept[strongest]
    scores = np.zeros((2, texts.pairs))
    has: dict[tuple[int, str], np.ndarray] = {}
    for block in texts.blocks():
        fold = result.folds[cluster[block.pairs]]
        by_fold = block.present[:, result.kept] @ result.weights
        for side, index in enumerate((block.a, block.b)):
            scores[side, block.pairs] = by_fold[index, fold]
            for key, holders in block.named.items():
                held = has.setdefault(key, np.zeros((2, texts.pairs), dtype=bool))
                held[side, block.pairs] = np.isin(index, holders)
    named = commonest_names(texts.requested, {key: int(held.sum()) for key, held in has.items()})
    return scores, _Present([name for _, name in named], result.p_features[strongest], [has[key] for key in named])


def _carriers(texts: _Texts, present: _Present, cluster: np.ndarray) -> Iterator[Carrier]:
    """The carriers of the difference, the strongest first; of those in nearly the same answers only one."""
    earlier: list[np.ndarray] = []
    for name, p, has in zip(present.names, present.p, present.has, strict=True):
        if len(earlier) == _MOST or any((has & other).sum() >= _OVERLAP * (has | other).sum() for other in earlier):
            continue
        earlier.append(has)
        a, b = has
        side = int(b.sum() > a.sum())
        per_word = np.bincount(cluster, b.astype(float) - a)
        more, shows = (per_word > 0) == bool(side), np.flatnonzero(has[side] & ~has[1 - side])
        yield Carrier(
            text=name,
            side="ab"[side],
            share_a=100 * float(a.mean()),
            share_b=100 * float(b.mean()),
            words=int((more & (per_word != 0)).sum()),
            of_words=int((np.bincount(cluster, a | b) > 0).sum()),
            p=float(p),
            sentence=commonest_sentence(
                (str(texts.answers[pair + side * texts.pairs]) for pair in shows.tolist()), name
            ),
            pairs=tuple(shows[:_SHOWN].tolist()),
        )


_SHOWN = 6
"""The most pairs that are shown for a carrier."""


def comparison(distinguished: Distinguished) -> Comparison:
    """The row of the significance table, before p is adjusted.

    `value_a` is chance, `value_b` the share of pairs that are told apart. Such a row can never be fair: a test that
    finds nothing shows nothing.
    """
    few = distinguished.words < FEWEST_TO_TELL
    return Comparison(
        measure=DISTINGUISHABLE,
        unit="percent",
        n=distinguished.n,
        value_a=50.0,
        value_b=distinguished.told_apart,
        difference=50.0 - distinguished.told_apart,
        p_holm=distinguished.p,
        p_bh=distinguished.p,
        paired_test="sides of whole words exchanged",
        p_paired=distinguished.p,
        p_clusters=distinguished.p,
        clusters=distinguished.words,
        note=too_few(distinguished.words) if few else "",
    )


def with_verdict(row: Comparison, distinguished: Distinguished, alpha: float) -> Comparison:
    """The row with its verdict: `differs`, unless the length of the exchanged words may explain it."""
    if row.p_holm >= alpha:
        return replace(row, verdict="inconclusive")
    return replace(row, verdict=DIFFERS if distinguished.p_beyond_length < alpha else DIFFERS_BY_LENGTH)


def describe_carriers(distinguished: Distinguished) -> str | None:
    """The carriers of the difference, in one line; None if no word carries it by itself.

    Examples:
        >>> police = Carrier("police", "b", 0.0, 8.8, 23, 23, 0.003, "You should inform the police.", ())
        >>> describe_carriers(Distinguished(400, 37, 56.0, 0.001, 0.001, (police,)))
        '"police" (b 8.8%, a 0%)'
    """
    parts = []
    for carrier in distinguished.carriers[:3]:
        sides = sorted((("a", carrier.share_a), ("b", carrier.share_b)), key=lambda side: side[0] != carrier.side)
        parts.append(f'"{carrier.text}" ({", ".join(f"{side} {_percent(share)}%" for side, share in sides)})')
    return "; ".join(parts) or None


def _percent(share: float) -> str:
    return f"{share:.0f}" if share >= 10 else f"{share:.2g}"


def with_groups(carriers: str, groups: tuple[str, str]) -> str:
    """`describe_carriers` with the groups' names for the sides.

    Examples:
        >>> with_groups('"police" (b 8.8%, a 0%)', ("male", "female"))
        '"police" (female 8.8%, male 0%)'
    """
    return re.sub(r"\b([ab]) (?=[\d.]+%)", lambda side: f"{groups[side[1] == 'b']} ", carriers)
