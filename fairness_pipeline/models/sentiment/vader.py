"""VADER: a rule-based system for valence (Hutto and Gilbert 2014)."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.models.sentiment.specification import SystemSpecification


class VaderScorer:
    """Gives (compound + 1) / 2 as the score of valence."""

    def __init__(self) -> None:
        self._analyzer: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_analyzer": None}

    def __call__(self, sentences: pa.Table) -> pa.Table:
        """The score of each sentence."""
        if self._analyzer is None:
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

            self._analyzer = SentimentIntensityAnalyzer()
        texts = sentences["text"].to_pylist()
        compound = np.array([self._analyzer.polarity_scores(text)["compound"] for text in texts], dtype=np.float64)
        return pa.table({"valence": (compound + 1) / 2})


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> VaderScorer:
    """The scorer; it needs no preparation."""
    return VaderScorer()
