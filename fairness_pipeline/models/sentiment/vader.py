"""VADER: a rule-based system for valence (Hutto and Gilbert 2014)."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.lexicons.vader import Vader
from fairness_pipeline.models.sentiment.specification import SystemSpecification


class VaderScorer:
    """Gives (compound + 1) / 2 as the score of valence."""

    def __init__(self) -> None:
        self._vader = Vader()

    def __call__(self, sentences: pa.Table) -> pa.Table:
        """The score of each sentence."""
        compound = np.array(self._vader.compound(sentences["text"].to_pylist()), dtype=np.float64)
        return pa.table({"valence": (compound + 1) / 2})


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> VaderScorer:
    """The scorer; it needs no preparation."""
    return VaderScorer()
