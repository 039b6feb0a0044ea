"""A Hugging Face sequence classifier or regressor as a sentiment system, by id or folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.sentiment.specification import ClassifierSource, SystemSpecification
from fairness_pipeline.models.text_classifier import TextClassifier


class ClassifierScorer:
    """Scores are the probabilities of the labels that mean an affect, or a regressor's output scaled to 0..1.

    Raises:
        FairnessError: while scoring, if the model cannot be loaded or has no such label.
    """

    def __init__(self, specification: SystemSpecification) -> None:
        self.specification = specification
        self.source = _source(specification)
        self._loaded: tuple[TextClassifier, list[int]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    def __call__(self, sentences: pa.Table) -> pa.Table:
        """The scores of each sentence, with one column for each affect."""
        model, columns = self._model()
        texts = sentences["text"].to_pylist()
        outputs = (model.logits if model.regression else model.probabilities)(texts, self.source.at_once)
        scores = np.concatenate([part[:, columns].cpu().numpy() for part in outputs])
        if model.regression:
            scores = self._in_range(scores)
        return pa.table(list(scores.T), names=list(self.specification.affects))

    def _in_range(self, outputs: np.ndarray) -> np.ndarray:
        """A regressor's outputs, scaled to 0..1."""
        low, high = self.source.output_range or (0.0, 1.0)
        if outputs.min() < low or outputs.max() > high:
            raise FairnessError(
                f"huggingface.output_range: '{self.source.name}' gave {outputs.min():.4g} to {outputs.max():.4g}, "
                f"outside {low:g} to {high:g}; give the range of its outputs"
            )
        return (outputs - low) / (high - low)

    def _model(self) -> tuple[TextClassifier, list[int]]:
        if self._loaded is None:
            device = self.specification.device
            model = TextClassifier(self.source.name, self.source.revision, device, "huggingface.name")
            self._loaded = model, self._columns(model)
        return self._loaded

    def _columns(self, model: TextClassifier) -> list[int]:
        """The index of the model's output for each affect."""
        if self.source.output_range and not model.regression:
            raise FairnessError(
                f"huggingface.output_range: '{self.source.name}' is a classifier, whose probabilities lie in 0..1; "
                "leave it out, or set its problem_type to 'regression' in its config.json"
            )
        if not self.source.labels:
            if len(model.labels) != 1:
                raise FairnessError(
                    f"huggingface.labels: '{self.source.name}' has labels {', '.join(model.labels)}; say which stands "
                    f"for which affect, for example {{{self.specification.affects[0]}: {next(iter(model.labels))}}}"
                )
            return [0]
        columns = []
        for affect in self.specification.affects:
            label = self.source.labels[affect]
            if label.lower() not in model.labels:
                raise FairnessError(
                    f"huggingface.labels: {affect}: '{self.source.name}' has no label '{label}'; its labels: "
                    f"{', '.join(model.labels)}"
                )
            columns.append(model.labels[label.lower()])
        return columns


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> ClassifierScorer:
    """The scorer of the model."""
    return ClassifierScorer(specification)


def _source(specification: SystemSpecification) -> ClassifierSource:
    assert specification.huggingface is not None
    return specification.huggingface
