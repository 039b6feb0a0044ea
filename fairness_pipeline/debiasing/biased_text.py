"""What the methods take for biased: what study 1 measures on responses, text by text.

An utterance is biased if it is offensive, clearly positive or clearly negative, or holds an attribute word (Liu 2022,
section 3.2.2.1).
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.measures.attribute_words import AttributeWordScorer
from fairness_pipeline.measures.politeness import PolitenessScorer
from fairness_pipeline.measures.sentiment import SentimentScorer
from fairness_pipeline.profiles import MeasureSettings
from fairness_pipeline.progress import Progress, report

_BATCH = 4096


class BiasScorer:
    """Scores texts with the measures that the audit uses.

    Args:
        dimension: Whose attribute lists are looked for.
        settings: Classifier and thresholds.
    """

    def __init__(self, dimension: Dimension, settings: MeasureSettings) -> None:
        self._scorers: tuple[Any, ...] = (
            PolitenessScorer.of(settings),
            SentimentScorer(settings.sentiment_threshold),
            AttributeWordScorer(dimension.attribute_words),
        )
        self.measures = ("offensive", "positive", "negative", *(f"{name}_words" for name in dimension.attribute_words))

    def __call__(self, texts: pa.Array, progress: Progress | None = None) -> dict[str, np.ndarray]:
        """`offensive`, `positive`, `negative` (0 or 1) and `<list>_words`, a count, for each attribute list.

        Each distinct text is scored once.
        """
        encoded = pa.chunked_array([texts]).combine_chunks().dictionary_encode()
        distinct = encoded.dictionary
        parts: list[dict[str, np.ndarray]] = []
        for start in range(0, len(distinct), _BATCH):
            table = pa.table({"response": distinct.slice(start, _BATCH)})
            offence, sentiment, words = (scorer(table) for scorer in self._scorers)
            columns = {"offensive": offence["offensive"]}
            columns |= {name: sentiment[name] for name in ("positive", "negative")}
            columns |= {f"{name}_words": words[name] for name in words.column_names}
            parts.append({name: values.to_numpy().astype(float) for name, values in columns.items()})
            report(progress, start + table.num_rows, len(distinct), "texts scored")
        codes = encoded.indices.to_numpy()
        return {
            name: np.concatenate([part[name] for part in parts])[codes] if parts else np.empty(0)
            for name in self.measures
        }

    def biased(self, texts: pa.Array, progress: Progress | None = None) -> np.ndarray:
        """Whether each text shows any of them."""
        scores = self(texts, progress)
        return np.any([values > 0 for values in scores.values()], axis=0)


def unbiased(texts: pa.Array, scorer: BiasScorer, progress: Progress | None = None) -> pa.Array:
    """The texts that are not biased, in their order."""
    return texts.filter(pc.invert(pa.array(scorer.biased(texts, progress))))
