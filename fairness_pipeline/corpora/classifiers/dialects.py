"""Infers the dialect of a text with the mixed-membership model of Blodgett, Green and O'Connor (2016).

The model reads words, not people: anybody may write a text in African American-aligned English. The model has four
dialects (African American, Hispanic, other, White). Its authors validated only the first and the last.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_lines
from fairness_pipeline.lexicons.text import tokenize

DIALECTS = ("african_american", "hispanic", "other", "white")
_PRIOR = 1.0
_PASSES = 5
_KNOWN = 0.2
"""The smallest share of a text's words that the model must know."""


class DialectModel:
    """The model that gives a text's shares in the four dialects.

    p(word w | dialect k) = (count_wk + 1) / count_k. A text's shares follow by collapsed variational inference (CVB0):
    q_ik ~ p(w_i | k) (sum over j != i of q_jk + alpha), alpha = 1, five passes.

    Args:
        counts: `model_count_table.txt`: four numbers on each line, one line for each word.
        vocabulary: `model_vocab.txt`: a count and a word on each line, in the same order.

    Raises:
        FairnessError: a file is missing, or a line has an unexpected form.
    """

    def __init__(self, counts: Path, vocabulary: Path) -> None:
        rows = []
        for number, line in read_lines(counts):
            try:
                row = [float(cell) for cell in line.split()]
            except ValueError:
                row = []
            if len(row) != len(DIALECTS):
                raise FairnessError(f"{counts}, line {number}: expected {len(DIALECTS)} numbers, found {line[:60]!r}")
            rows.append(row)
        words = [line.partition("\t")[2] for _, line in read_lines(vocabulary)]
        if len(words) != len(rows):
            raise FairnessError(f"{vocabulary}: {len(words):,} words, and {len(rows):,} lines in {counts}")
        table = np.array(rows)
        likelihood = (table + 1) / table.sum(axis=0)
        self._likelihood = likelihood / likelihood.sum(axis=1, keepdims=True)
        self._indices = {word: index for index, word in enumerate(words)}

    def shares(self, text: str, without: Collection[str] = ()) -> np.ndarray | None:
        """The text's shares in `DIALECTS`, which sum to 1; None if the model knows too few of its words."""
        words = [word for word in tokenize(text) if word not in without]
        indices = [index for word in words if (index := self._indices.get(word)) is not None]
        if not indices or len(indices) < _KNOWN * len(words):
            return None
        likelihood = self._likelihood[indices]
        memberships = likelihood.copy()
        total = memberships.sum(axis=0)
        for _ in range(_PASSES - 1):
            for i, word_likelihood in enumerate(likelihood):
                total -= memberships[i]
                updated = word_likelihood * (total + _PRIOR)
                memberships[i] = updated / updated.sum()
                total += memberships[i]
        return total / total.sum()

    def group(self, text: str, confidence: float, without: Collection[str] = ()) -> str | None:
        """b if the share in African American-aligned English is above `confidence`, a if that in White English is."""
        shares = self.shares(text, without)
        if shares is None:
            return None
        if shares[DIALECTS.index("african_american")] > confidence:
            return "b"
        return "a" if shares[DIALECTS.index("white")] > confidence else None
