"""Defines what counts as a word, and when two spellings are the same word."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

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
    """The words of many texts as integers, in the order of the texts: `words[codes[i]]` is a word of text
    `owners[i]`."""

    words: list[str]
    codes: np.ndarray
    owners: np.ndarray


def encode_words(tokenized: Sequence[list[str]]) -> EncodedWords:
    """Texts, given as lists of words, as integers."""
    flat = pa.array([word for words in tokenized for word in words], pa.string()).dictionary_encode()
    owners = np.repeat(np.arange(len(tokenized)), [len(words) for words in tokenized])
    return EncodedWords(flat.dictionary.to_pylist(), flat.indices.to_numpy().astype(np.int64), owners)
