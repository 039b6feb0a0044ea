"""Texts in which nothing tells which group is named: the neutral reading of an answer."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.swapping import Swapper

MASK = "_"
"""What stands for a listed word: a mark in which no scorer reads anything."""


def masked(texts: pa.Array | pa.ChunkedArray, dimension: Dimension) -> pa.ChunkedArray:
    """The texts with `MASK` in place of every listed word of either group, pronouns that the list lacks included.

    Args:
        texts: Any texts.
        dimension: Whose words.
    """
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = whole.dictionary_encode()
    distinct = [
        text if not matches else _covered(text, matches)
        for text, (matches, _) in zip(
            encoded.dictionary.to_pylist(),
            Swapper(dimension, pronouns="extended").find_all(encoded.dictionary),
            strict=True,
        )
    ]
    return pa.chunked_array([pc.take(pa.array(distinct, pa.string()), encoded.indices)])


def _covered(text: str, matches: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, _ in matches:
        pieces += text[position:start], MASK
        position = end
    return "".join([*pieces, text[position:]])
