"""A published Hugging Face sequence classifier, by id or folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification, PublishedClassifier
from fairness_pipeline.models.text_classifier import TextClassifier


class PublishedScorer:
    """Gives the total probability of the labels that mean the positive class.

    Raises:
        FairnessError: while scoring, if the model cannot be loaded or has no such label.
    """

    def __init__(self, specification: ClassifierSpecification) -> None:
        self.specification = specification
        self._loaded: tuple[TextClassifier, list[int]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    def __call__(self, texts: pa.Table) -> pa.Table:
        """A table with the column `probability`."""
        source = _source(self.specification)
        model, columns = self._model()
        parts = model.probabilities(texts["text"].to_pylist(), source.at_once)
        return pa.table({"probability": np.concatenate([part[:, columns].sum(1).cpu().numpy() for part in parts])})

    def _model(self) -> tuple[TextClassifier, list[int]]:
        if self._loaded is None:
            source = _source(self.specification)
            model = TextClassifier(source.name, source.revision, self.specification.device, "huggingface.name")
            if model.regression:
                raise FairnessError(f"huggingface.name: '{source.name}' is a regressor; expected a classifier")
            if isinstance(source.positive, dict):
                raise FairnessError(
                    "huggingface.positive: expected the labels of the positive class, as the corpus has two classes; "
                    f"found those of {', '.join(source.positive)}"
                )
            for label in source.positive:
                if label.lower() not in model.labels:
                    raise FairnessError(
                        f"huggingface.positive: '{source.name}' has no label '{label}'; its labels: "
                        f"{', '.join(model.labels)}"
                    )
            self._loaded = model, [model.labels[label.lower()] for label in source.positive]
        return self._loaded


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> PublishedScorer:
    """The scorer of the published classifier."""
    return PublishedScorer(specification)


def _source(specification: ClassifierSpecification) -> PublishedClassifier:
    assert specification.huggingface is not None
    return specification.huggingface
