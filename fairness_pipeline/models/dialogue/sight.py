"""Flags context pairs that a model trained here cannot fully see: it reads known words, up to a certain length."""

import numpy as np
import pyarrow as pa

from fairness_pipeline.models.vocabulary import UNKNOWN, Vocabulary


def out_of_sight(pairs: pa.Table, vocabulary: Vocabulary, longest: int) -> dict[str, np.ndarray]:
    """Two flags for each pair: the model cannot tell its contexts apart; swapping made a word unknown.

    Args:
        pairs: Columns `context_a`, `context_b`, `source_side`.
        vocabulary: The model's vocabulary.
        longest: The number of words of a context that the model reads.
    """
    sides = [[vocabulary.encode(text, longest) for text in pairs[f"context_{side}"].to_pylist()] for side in "ab"]
    alike = np.array([a == b for a, b in zip(*sides, strict=True)], dtype=bool)
    unknown = np.array([[words.count(UNKNOWN) for words in side] for side in sides]).reshape(2, -1)
    from_a = np.array([side == "a" for side in pairs["source_side"].to_pylist()], dtype=bool)
    made_unknown = np.where(from_a, unknown[1] > unknown[0], unknown[0] > unknown[1])
    return {"pairs that look alike to the model": alike, "words that swapping made unknown": made_unknown}
