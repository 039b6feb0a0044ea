"""A Hugging Face sequence classifier or regressor, by id or folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models.systems.specification import ClassifierSource, SystemSpecification


class ClassifierScorer:
    """Probabilities of the labels that stand for affects, or a regressor's output brought into 0..1.

    Args:
        specification: The system's file.

    Raises:
        FairnessError: when it scores: the model cannot be loaded, or has no such label.
    """

    def __init__(self, specification: SystemSpecification) -> None:
        self.specification = specification
        self.source = _source(specification)
        self._loaded: tuple[Any, Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    def __call__(self, sentences: pa.Table) -> dict[str, np.ndarray]:
        """The scores of each sentence."""
        import torch

        tokenizer, model, columns = self._model()
        texts, parts = sentences["sentence"].to_pylist(), []
        with torch.inference_mode():
            for start in range(0, len(texts), self.source.batch):
                piece = texts[start : start + self.source.batch]
                encoded = tokenizer(piece, padding=True, truncation=True, return_tensors="pt").to(model.device)
                parts.append(self._scores(model, model(**encoded).logits.double())[:, columns].cpu().numpy())
        return dict(zip(self.specification.affects, np.concatenate(parts).T, strict=True))

    def _scores(self, model: Any, logits: Any) -> Any:
        if not self.source.labels:
            low, high = self.source.output_range
            if logits.min() < low or logits.max() > high:
                raise FairnessError(
                    f"huggingface.output_range: '{self.source.name}' gave {logits.min():.4g} to {logits.max():.4g}, "
                    f"outside {low:g} to {high:g}; give the range of its outputs"
                )
            return (logits - low) / (high - low)
        several = model.config.problem_type == "multi_label_classification"
        return logits.sigmoid() if several else logits.softmax(dim=-1)

    def _model(self) -> tuple[Any, Any, Any]:
        if self._loaded is None:
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
            from transformers.utils import logging

            from fairness_pipeline.models.devices import device_of

            logging.disable_progress_bar()  # the caller has its own

            name, revision = self.source.name, self.source.revision
            try:
                tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
                model = AutoModelForSequenceClassification.from_pretrained(name, revision=revision)
            except (OSError, ValueError) as error:
                raise FairnessError(
                    f"huggingface.name: '{name}' cannot be loaded as a Hugging Face text classifier: {error}"
                ) from error
            self._loaded = tokenizer, model.to(device_of(self.specification)).eval(), self._columns(model)
        return self._loaded

    def _columns(self, model: Any) -> list[int]:
        places = {str(label).lower(): int(index) for index, label in model.config.id2label.items()}
        if not self.source.labels:
            if len(places) != 1:
                raise FairnessError(
                    f"huggingface.labels: '{self.source.name}' has labels {', '.join(places)}; say which stands for "
                    f"which affect, for example {{{self.specification.affects[0]}: {next(iter(places))}}}"
                )
            return [0]
        if len(places) == 1 and model.config.problem_type != "multi_label_classification":
            raise FairnessError(
                f"huggingface.labels: '{self.source.name}' has one output, whose share of all is always 1; leave "
                "'labels' out and give its 'output_range'"
            )
        columns = []
        for affect in self.specification.affects:
            label = self.source.labels[affect]
            if label.lower() not in places:
                raise FairnessError(
                    f"huggingface.labels: {affect}: '{self.source.name}' has no label '{label}'; its labels: "
                    f"{', '.join(places)}"
                )
            columns.append(places[label.lower()])
        return columns


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> ClassifierScorer:
    """The model."""
    return ClassifierScorer(specification)


def _source(specification: SystemSpecification) -> ClassifierSource:
    assert specification.huggingface is not None
    return specification.huggingface
