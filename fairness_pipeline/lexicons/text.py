"""Defines what counts as a word, and when two spellings are the same word."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

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
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def cut(self, texts: np.ndarray, lengths: np.ndarray) -> "EncodedWords":
        """The first words of some of the texts, as texts of their own.

        Args:
            texts: Which texts, any number of times each.
            lengths: How many words of each; no more than it has.
        """
        begins = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])[texts]
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + lengths, lengths)
        return self._replace(codes=self.codes[places], lengths=lengths)


def encode_words(tokenized: Sequence[list[str]]) -> EncodedWords:
    """Texts, given as lists of words, as integers."""
    return _together([_numbered(tokenized)])


def encode_texts(texts: list[str]) -> EncodedWords:
    """The words of texts as integers, by `tokenize`; many texts in parts, side by side."""
    parts = [texts[start : start + _PART] for start in range(0, len(texts), _PART)]
    return _together([*in_processes(_encoded, parts, _LEAST)])


_PART = 25_000
_LEAST = 6
"""Fewer parts are encoded in one process."""


_Numbered = tuple[pa.DictionaryArray, np.ndarray]
"""The words of a part's texts one after another, and how many each text has."""


_START = "\0"
"""Stands before each text where many are cut into words at once. It is a mark of its own, so no word reaches across it,
and no letter behind or before it changes how a text is folded."""


def _encoded(texts: list[str]) -> _Numbered:
    """The words of the texts, cut at once: many short lists take longer, most of all where Python looks for cycles."""
    whole = "".join([_START + text for text in texts])
    if whole.count(_START) != len(texts):
        return _numbered([tokenize(text) for text in texts])
    flat = pa.array(tokenize(whole), pa.string()).dictionary_encode()
    codes = flat.indices.to_numpy()
    starts = codes == 0
    words = pa.DictionaryArray.from_arrays(codes[~starts] - 1, flat.dictionary.slice(1))
    return words, np.diff(np.flatnonzero(starts), append=len(codes)) - 1


def _numbered(tokenized: Sequence[list[str]]) -> _Numbered:
    flat = pa.array([word for words in tokenized for word in words], pa.string()).dictionary_encode()
    return flat, np.array([len(words) for words in tokenized], dtype=np.int64)


def _together(parts: Sequence[_Numbered]) -> EncodedWords:
    kind = pa.dictionary(pa.int32(), pa.string())
    chunks = pa.chunked_array([flat for flat, _ in parts], kind).unify_dictionaries().chunks
    words = chunks[0].dictionary.to_pylist() if chunks else []
    codes = [np.empty(0, dtype=np.int64), *(chunk.indices.to_numpy().astype(np.int64) for chunk in chunks)]
    lengths = [np.empty(0, dtype=np.int64), *(own for _, own in parts)]
    return EncodedWords(words, np.concatenate(codes), np.concatenate(lengths))
