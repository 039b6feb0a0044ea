"""Is a gap between groups that were inferred from words made by the very words that tell the label?

A profanity filter and a dialect model look at the same words: who swears is both offensive and grouped by swearing.
Groups are therefore inferred once more without the words that tell the label; what is left of a gap is not circular.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lexicons.text import tokenize

MASKED_GROUPS = schema(
    text_id=(pa.string(), "of the text: its corpus's and its own hash"),
    author_group=(pa.string(), "a or b"),
)
"""The group of each test text as it is inferred without the label's words; texts of which nothing is left have none."""
_FEWEST = 3
"""Texts that a word must stand in."""
_LEVEL = 0.05


def label_words(texts: Sequence[tuple[str, int]]) -> list[str]:
    """The words that stand more often in texts of one label than of the other (two proportions, p below 5% a word).

    Not corrected over words: one that is masked for nothing costs little, one that tells the label and is left makes
    the inference circular.

    Args:
        texts: Texts with their labels, 1 or 0: all that a corpus has, balanced or not.

    Examples:
        >>> label_words([("you fool", 1)] * 9 + [("you there", 0)] * 9)
        ['fool', 'there']
    """
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    sizes = np.zeros(2)
    for text, label in texts:
        counts[label].update(set(tokenize(text)))
        sizes[label] += 1
    names = [word for word, count in (counts[0] + counts[1]).items() if count >= _FEWEST and word[:1].isalpha()]
    if not names or not sizes.all():
        return []
    found = np.array([[counts[label][word] for word in names] for label in (0, 1)], dtype=float)
    pooled = found.sum(axis=0) / sizes.sum()
    error = np.sqrt(pooled * (1 - pooled) * (1 / sizes).sum())
    difference = np.abs(found[0] / sizes[0] - found[1] / sizes[1])
    z = np.divide(difference, error, out=np.zeros(len(names)), where=error > 0)
    least = NormalDist().inv_cdf(1 - _LEVEL / 2)
    return sorted(word for word, own in zip(names, z, strict=True) if own > least)


def infer_masked_groups(texts: pa.Table, group: Callable[[str], str | None]) -> pa.Table:
    """A table of `MASKED_GROUPS`, of the test texts.

    Args:
        texts: As `AUTHORED_TEXTS`.
        group: What infers a text's group without the label's words.
    """
    rows = [
        {"text_id": row["text_id"], "author_group": own}
        for row in texts.to_pylist()
        if row["split"] == "test" and (own := group(row["text"])) is not None
    ]
    return pa.Table.from_pylist(rows, schema=MASKED_GROUPS)
