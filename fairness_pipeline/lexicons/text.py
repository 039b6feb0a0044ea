"""Defines what counts as a word, and when two spellings are the same word."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.side_by_side import in_processes

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
        """The first words of some of the texts, as texts of their own.

        Args:
            texts: Which texts, any number of times each.
            lengths: How many words of each, no more than it has; all of them if it is None.
        """
        lengths = self.lengths[texts] if lengths is None else lengths
        begins = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])[texts]
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + lengths, lengths)
        return self._replace(codes=self.codes[places], lengths=lengths)


def encode_words(tokenized: Sequence[list[str]]) -> EncodedWords:
    """Texts, given as lists of words, as integers."""
    return _together([_numbered(tokenized)])


def encode_texts(texts: list[str]) -> EncodedWords:
    """The words of texts as integers, by `tokenize`; many texts in parts, side by side."""
    ends = np.cumsum([len(text) for text in texts])
    cuts = [0, *np.searchsorted(ends, np.arange(_PART, ends[-1] if len(ends) else 0, _PART)).tolist(), len(texts)]
    parts = [texts[start:end] for start, end in pairwise(cuts) if end > start]
    return _together([*in_processes(_encoded, parts, _LEAST)])


_PART = 1_500_000
"""Characters that are encoded at once."""
_LEAST = 6
"""Fewer parts are encoded in one process."""


_Numbered = tuple[pa.DictionaryArray, np.ndarray]
"""The words of a part's texts one after another, and how many each text has."""


def _encoded(texts: list[str]) -> _Numbered:
    """The words of the texts. No word reaches across white space: what stands between is cut into words once, however
    often it is there."""
    pieces = pc.ascii_split_whitespace(pa.array(texts, pa.string()))
    distinct = pieces.flatten().dictionary_encode()
    cut = [tokenize(piece) for piece in distinct.dictionary.to_pylist()]
    numbered, counts = _numbered(cut)
    words = EncodedWords([], numbered.indices.to_numpy(), counts).cut(distinct.indices.to_numpy())
    ends = np.concatenate([[0], np.cumsum(words.lengths)])[np.asarray(pieces.offsets)]
    return pa.DictionaryArray.from_arrays(words.codes, numbered.dictionary), np.diff(ends)


def _numbered(tokenized: Sequence[list[str]]) -> _Numbered:
    flat = pa.array([word for words in tokenized for word in words], pa.string()).dictionary_encode()
    return flat, np.array([len(words) for words in tokenized], dtype=np.int64)


def _together(parts: Sequence[_Numbered]) -> EncodedWords:
    kind = pa.dictionary(pa.int32(), pa.string())
    chunks = pa.chunked_array([flat for flat, _ in parts], kind).unify_dictionaries().chunks
    words = chunks[0].dictionary.to_pylist() if chunks else []
    codes = [np.empty(0, dtype=np.int32), *(chunk.indices.to_numpy() for chunk in chunks)]
    lengths = [np.empty(0, dtype=np.int64), *(own for _, own in parts)]
    return EncodedWords(words, np.concatenate(codes), np.concatenate(lengths))
