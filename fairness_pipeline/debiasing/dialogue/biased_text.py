"""Decides which texts are biased, by the measures that the audit applies to responses.

An utterance is biased if it is offensive, clearly positive or clearly negative, or holds an attribute word (Liu 2022,
section 3.2.2.1).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.measures.dialogue.measure import Scorings, SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import marking
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.workspace.distinct import each_distinct

_NO_TEXTS = pa.table({"text": pa.array([], pa.string())})


class BiasScorer:
    """Scores texts with the measures that the audit uses, text by text.

    Args:
        scorings: Classifier, thresholds and attribute lists, by measure.
    """

    def __init__(self, scorings: Scorings) -> None:
        markers = [(measure, scorings[measure.table].scorer) for measure in marking()]
        self._scorers = [(measure, scorer) for measure, scorer in markers if scorer]
        self._names = [list(measure.of_texts(scorer(_NO_TEXTS))) for measure, scorer in self._scorers]
        self.measures = [name for names in self._names for name in names]
        self._words = next((words for measure, _ in markers if (words := scorings[measure.table].masked)), None)

    def __call__(self, texts: pa.Array, progress: Progress | None = None) -> dict[str, np.ndarray]:
        """Returns each measure's value of each text (0 or 1, or a count), by its row's name in a significance table.

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
        """Compares texts of side a with those of side b on each measure, pair by pair, with the groups' words masked:
        the reading on which verdicts rest."""
        scores_a, scores_b = (self(masked(texts, self._words) if self._words else texts) for texts in (a, b))
        rows = []
        for (measure, _), names in zip(self._scorers, self._names, strict=True):
            kinds = {name: bool if measure.kind(name) == "rates" else float for name in names}
            values = {name: (scores_a[name].astype(kind), scores_b[name].astype(kind)) for name, kind in kinds.items()}
            rows += measure.compare_values(values, settings, ranks=False)
        return rows

    def biased(self, texts: pa.Array, progress: Progress | None = None) -> np.ndarray:
        """Whether each text is biased by any measure."""
        scores = self(texts, progress)
        return np.any([values > 0 for values in scores.values()], axis=0)


def unbiased(texts: pa.Array, scorer: BiasScorer, progress: Progress | None = None) -> pa.Array:
    """The texts that are not biased, in their order."""
    return texts.filter(pc.invert(pa.array(scorer.biased(texts, progress))))
