"""Does a gap between inferred groups come from the very words that predict the label?

A profanity filter and a dialect model look at the same words: a text with swear words is labelled offensive, and is
assigned to a group for the same words. Groups are therefore inferred again without the words that predict the label.
The remaining gap is not circular.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.classifiers.authored_texts import AUTHORED_TEXTS
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.text import tokenize

MASKED_GROUPS = schema(
    **fields(AUTHORED_TEXTS, "text_id", "author_group"),
)
"""The group of each test text, inferred without the label's words. Texts without any other words have none."""
_FEWEST = 3
"""The number of texts that must contain a word."""
_LEVEL = 0.05


def label_words(texts: Sequence[tuple[str, int]]) -> list[str]:
    """The words that occur more often in texts of one label than of the other (two proportions, p below 5% per word).

    There is no correction over words. Masking a word needlessly costs little, but a word that predicts the label and
    stays makes the inference circular.

    Args:
        texts: All texts of a corpus with their labels, 1 or 0, balanced or not.

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
    observed = np.array([[counts[label][word] for word in names] for label in (0, 1)], dtype=float)
    pooled = observed.sum(axis=0) / sizes.sum()
    error = np.sqrt(pooled * (1 - pooled) * (1 / sizes).sum())
    difference = np.abs(observed[0] / sizes[0] - observed[1] / sizes[1])
    z = np.divide(difference, error, out=np.zeros(len(names)), where=error > 0)
    threshold = NormalDist().inv_cdf(1 - _LEVEL / 2)
    return sorted(word for word, score in zip(names, z, strict=True) if score > threshold)


def infer_masked_groups(texts: pa.Table, group: Callable[[str], str | None]) -> pa.Table:
    """A table of `MASKED_GROUPS` for the test texts.

    Args:
        texts: As `AUTHORED_TEXTS`.
        group: The function that infers a text's group without the label's words.
    """
    rows = [
        {"text_id": row["text_id"], "author_group": inferred}
        for row in texts.to_pylist()
        if row["split"] == "test" and (inferred := group(row["text"])) is not None
    ]
    return pa.Table.from_pylist(rows, schema=MASKED_GROUPS)
