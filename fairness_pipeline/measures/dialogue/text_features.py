"""Turns texts into hashed features, one for each word and each two words in a row, and names the features."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from zlib import crc32

import numpy as np
import pyarrow as pa
from scipy import sparse

from fairness_pipeline.lexicons.masking import MASK
from fairness_pipeline.lexicons.text import encode_texts, tokenize

WIDTH = 1 << 21
"""The number of features into which words and pairs of words are hashed."""
_PICTURES = 0x2190
"""Marks from here on in Unicode are arrows, symbols and emoji."""
_READ = 500
"""The number of texts among which the commonest sentence is sought."""


def features_of(texts: pa.Array, requested: np.ndarray) -> tuple[sparse.csr_array, dict[tuple[int, str], np.ndarray]]:
    """(texts, `WIDTH`) whether a text has a word or mark, or two in a row, none of them a mask; and the texts that
    have each requested feature, by feature and words.

    Args:
        texts: The texts, with the groups' words masked.
        requested: Features whose words are looked up.
    """
    words, codes, owners = _words(texts)
    hashes = np.array([crc32(word.encode()) for word in words], dtype=np.uint64)
    is_mask = np.array([word == MASK for word in words], dtype=bool)
    single = np.flatnonzero(~is_mask[codes])
    inside = (owners[:-1] == owners[1:]) & ~is_mask[codes[:-1]] & ~is_mask[codes[1:]]
    first = np.flatnonzero(inside)
    alone = hashes[codes[single]] % np.uint64(WIDTH)
    mixed = hashes[codes[first]] * np.uint64(2654435761) ^ hashes[codes[first + 1]] * np.uint64(40503)
    joined = (mixed ^ mixed >> np.uint64(18)) % np.uint64(WIDTH)
    features = np.concatenate([alone, joined]).astype(np.int64)
    named: dict[tuple[int, str], list[int]] = {}
    positions = np.concatenate([single, first])
    for number in np.flatnonzero(np.isin(features, requested)).tolist() if len(requested) else ():
        start, length = positions[number], 1 if number < len(single) else 2
        name = " ".join(words[code] for code in codes[start : start + length])
        named.setdefault((int(features[number]), name), []).append(int(owners[start]))
    keys = np.concatenate([owners[single], owners[first]]) * np.int64(WIDTH) + features
    keys.sort()  # `np.unique` takes five times as long
    keys = keys[np.diff(keys, prepend=-1) != 0]
    starts = np.searchsorted(keys, np.arange(len(texts) + 1) * WIDTH)
    values = np.ones(len(keys), dtype=np.float32)
    present = sparse.csr_array((values, keys % WIDTH, starts), shape=(len(texts), WIDTH))
    return present, {key: np.array(holders) for key, holders in named.items()}


def _is_read(token: str) -> bool:
    """Whether a token is a word, a mask, `!`, `?` or a picture such as an emoji."""
    return token in ("!", "?", MASK) or token[0].isalnum() or ord(token[0]) >= _PICTURES


def _words(texts: pa.Array) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The words, and the word and text of each position. An article before a mask is dropped, as are repeated masks."""
    encoded = encode_texts(texts)
    codes, owners = encoded.codes, encoded.owners
    counts = np.array(list(map(_is_read, encoded.words)), dtype=bool)
    read = counts[codes]
    codes, owners = codes[read], owners[read]
    is_mask, article = (
        np.array([word in these for word in encoded.words], dtype=bool)[codes]
        for these in ((MASK,), ("a", "an", "the"))
    )
    same = owners[:-1] == owners[1:]
    kept = np.ones(len(codes), dtype=bool)
    kept[:-1] &= ~(article[:-1] & is_mask[1:] & same)
    kept[1:] &= ~(is_mask[1:] & is_mask[:-1] & same)
    return encoded.words, codes[kept], owners[kept]


def commonest_names(features: np.ndarray, counts: Mapping[tuple[int, str], int]) -> list[tuple[int, str]]:
    """The words of each feature: of the words that hash to it, those in most texts.

    Args:
        features: The features.
        counts: The number of texts, by feature and words.
    """
    return [max((key for key in counts if key[0] == index), key=lambda key: counts[key]) for index in features.tolist()]


def commonest_sentence(texts: Iterable[str], name: str) -> str:
    """The commonest sentence of the texts that contains a name; empty if there are no texts."""
    counts = Counter[str]()
    for text in islice(texts, _READ):
        sentences = [each for each in re.split(r"(?<=[.!?])\s+", text) if f" {name} " in _read_as(each)]
        counts.update(sentences or [text])  # two words in a row may span two sentences
    return counts.most_common(1)[0][0][:200] if counts else ""


def _read_as(text: str) -> str:
    return f" {' '.join(filter(_is_read, tokenize(text)))} "
