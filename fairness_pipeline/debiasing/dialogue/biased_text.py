"""What the methods take for biased: what is measured on responses, text by text.

An utterance is biased if it is offensive, clearly positive or clearly negative, or holds an attribute word (Liu 2022,
section 3.2.2.1).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.workspace.distinct import each_distinct


class BiasScorer:
    """Scores texts with the measures that the audit uses, text by text.

    Args:
        dimension: Whose attribute lists are looked for.
        settings: Classifier and thresholds.
    """

    def __init__(self, dimension: Dimension, settings: MeasureSettings) -> None:
        self._scorers = [(m, m.scorer(settings, dimension)) for m in measures() if m.scorer and m.marks_text]
        self._dimension = dimension
        self.measures = [name for measure, _ in self._scorers for name in measure.names(dimension)]

    def __call__(self, texts: pa.Array, progress: Progress | None = None) -> dict[str, np.ndarray]:
        """What each measure says of each text (0 or 1, or a count), by the name of its row in a significance table.

        Each distinct text is scored once.
        """
        if not len(texts):
            return {name: np.empty(0) for name in self.measures}
        scored = each_distinct(texts, self._score, progress=progress, note="texts scored")
        return {name: scored[name].to_numpy() for name in self.measures}

    def _score(self, texts: pa.Table) -> pa.Table:
        columns: dict[str, np.ndarray] = {}
        for measure, scorer in self._scorers:
            columns |= measure.of_texts(scorer(texts))
        return pa.table(columns)

    def compare(self, a: pa.Array, b: pa.Array, settings: SignificanceSettings) -> list[Comparison]:
        """Each measure on texts of side a against those of side b, pair by pair."""
        of_a, of_b = self(a), self(b)
        rows = []
        for measure, _ in self._scorers:
            kinds = {name: bool if measure.kind(name) == "rates" else float for name in measure.names(self._dimension)}
            values = {name: (of_a[name].astype(kind), of_b[name].astype(kind)) for name, kind in kinds.items()}
            rows += measure.compare_values(values, settings, ranks=False)
        return rows

    def biased(self, texts: pa.Array, progress: Progress | None = None) -> np.ndarray:
        """Whether each text shows any of them."""
        scores = self(texts, progress)
        return np.any([values > 0 for values in scores.values()], axis=0)


def unbiased(texts: pa.Array, scorer: BiasScorer, progress: Progress | None = None) -> pa.Array:
    """The texts that are not biased, in their order."""
    return texts.filter(pc.invert(pa.array(scorer.biased(texts, progress))))
