"""Defines words: how a text is tokenized, and when two spellings are the same word."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TOKEN = re.compile(r"@?\w+(?:['’-]\w+)*|[^\w\s]")
"""A word or one punctuation mark. Inner apostrophes and hyphens and the `@` of a user name belong to the word."""


def fold(text: str) -> str:
    """`text` in the spelling in which lists are compared: lower case, straight apostrophes."""
    return text.lower().replace("’", "'")


def tokenize(text: str) -> list[str]:
    """The words and punctuation marks of `text`, folded.

    >>> tokenize("He’s my step-son!")
    ["he's", 'my', 'step-son', '!']
    """
    return TOKEN.findall(fold(text))


class EncodedWords(NamedTuple):
    """The words of many texts as integers, in the order of the texts: `words[codes[i]]` is a word of text `owners[i]`,
    which has `lengths[owners[i]]` words."""

    words: list[str]
    codes: np.ndarray
    lengths: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The text of each word."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int32), self.lengths)

    def cut(self, texts: np.ndarray, lengths: np.ndarray | None = None) -> "EncodedWords":
        """The first words of some of the texts, as new texts.

        Args:
            texts: Indices of the texts; repetitions are allowed.
            lengths: The number of words of each, at most its length; None for all words.
        """
        lengths = self.lengths[texts] if lengths is None else lengths
        begins = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])[texts]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        codes = np.empty(total, dtype=self.codes.dtype)
        blocks = np.searchsorted(ends, np.arange(0, total, _PART), side="right").tolist()
        for start, end in pairwise([*blocks, len(texts)]):  # the indices take more memory than the codes
            block = lengths[start:end]
            shifts = np.repeat(begins[start:end] - ends[start:end] + block, block)
            first = ends[start - 1] if start else 0
            codes[first : first + len(shifts)] = self.codes[shifts + np.arange(first, first + len(shifts))]
        return self._replace(codes=codes, lengths=lengths)


def encode_words(tokenized: Sequence[Sequence[str]]) -> EncodedWords:
    """Texts, given as lists of words, as integers."""
    words = pa.array([word for words in tokenized for word in words], pa.string()).dictionary_encode()
    lengths = np.array([len(words) for words in tokenized], dtype=np.int64)
    return EncodedWords(words.dictionary.to_pylist(), words.indices.to_numpy(), lengths)


_tokenized = lru_cache(1 << 18)(tokenize)
"""Different texts share most of their pieces."""


def encode_texts(
    texts: pa.Array | pa.ChunkedArray,
    prepare: Callable[[pa.Array], pa.Array] = lambda texts: texts,
    words_of: Callable[[str], Sequence[str]] = _tokenized,
) -> EncodedWords:
    """The words of texts as integers. No word spans white space, so each distinct piece between white space is
    tokenized once.

    Args:
        texts: The texts.
        prepare: Transforms a part of the texts before they are tokenized.
        words_of: The words of a piece; `tokenize` by default.
    """
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    ends = np.cumsum(np.asarray(pc.utf8_length(whole), dtype=np.int64))
    cuts = [0, *np.searchsorted(ends, np.arange(_PART, ends[-1] if len(ends) else 0, _PART)).tolist(), len(whole)]
    parts = [_pieces(prepare(whole.slice(start, end - start))) for start, end in pairwise(cuts) if end > start]
    pieces = pa.chunked_array([part for part, _ in parts], _PIECES).unify_dictionaries().chunks
    numbered = encode_words(list(map(words_of, pieces[0].dictionary.to_pylist() if pieces else [])))
    counts = [int(numbered.lengths[part.indices.to_numpy()].sum()) for part in pieces]
    codes, lengths = np.empty(sum(counts), dtype=np.int32), [np.empty(0, dtype=np.int64)]
    for part, (_, offsets), count, end in zip(pieces, parts, counts, np.cumsum(counts), strict=True):
        words = numbered.cut(part.indices.to_numpy())
        codes[end - count : end] = words.codes
        lengths.append(np.diff(np.concatenate([[0], np.cumsum(words.lengths)])[offsets]))
    return EncodedWords(numbered.words, codes, np.concatenate(lengths))


_PART = 1_500_000
"""Characters that are encoded, or words that are copied, at once."""
_PIECES = pa.dictionary(pa.int32(), pa.string())


def _pieces(texts: pa.Array) -> tuple[pa.DictionaryArray, np.ndarray]:
    """The texts cut at white space, one after another; and where each text begins, and the last one ends."""
    cut = pc.ascii_split_whitespace(texts)
    return cut.flatten().dictionary_encode(), np.asarray(cut.offsets) - cut.offsets[0].as_py()
