"""A Hugging Face sequence classifier or regressor as a sentiment system, by id or folder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.sentiment.specification import Affect, ClassifierSource, SystemSpecification
from fairness_pipeline.models.specification import given
from fairness_pipeline.models.text_classifier import TextClassifier
from fairness_pipeline.workspace.distinct import Scorer


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """Scores are the probabilities of the labels that mean an affect, or a regressor's output scaled to 0..1.

    Raises:
        FairnessError: the model cannot be loaded or has no such label.
    """
    source = given(specification.huggingface)
    model = TextClassifier(source.name, source.revision, specification.device, "huggingface.name")
    columns = _columns(model, source, specification.affects)

    def score(sentences: pa.Table) -> pa.Table:
        texts = sentences["text"].to_pylist()
        outputs = (model.logits if model.regression else model.probabilities)(texts, source.at_once)
        scores = np.concatenate([part[:, columns].cpu().numpy() for part in outputs])
        if model.regression:
            scores = _in_range(scores, source)
        return pa.table(list(scores.T), names=list(specification.affects))

    return score


def _in_range(outputs: np.ndarray, source: ClassifierSource) -> np.ndarray:
    """A regressor's outputs, scaled to 0..1."""
    low, high = source.output_range or (0.0, 1.0)
    if outputs.min() < low or outputs.max() > high:
        raise FairnessError(
            f"huggingface.output_range: '{source.name}' gave {outputs.min():.4g} to {outputs.max():.4g}, "
            f"outside {low:g} to {high:g}; give the range of its outputs"
        )
    return (outputs - low) / (high - low)


def _columns(model: TextClassifier, source: ClassifierSource, affects: Sequence[Affect]) -> list[int]:
    """The index of the model's output for each affect."""
    if source.output_range and not model.regression:
        raise FairnessError(
            f"huggingface.output_range: '{source.name}' is a classifier, whose probabilities lie in 0..1; "
            "leave it out, or set its problem_type to 'regression' in its config.json"
        )
    if not source.labels:
        if len(model.labels) != 1:
            raise FairnessError(
                f"huggingface.labels: '{source.name}' has labels {', '.join(model.labels)}; say which stands "
                f"for which affect, for example {{{affects[0]}: {next(iter(model.labels))}}}"
            )
        return [0]
    columns = []
    for affect in affects:
        label = source.labels[affect]
        if label.lower() not in model.labels:
            raise FairnessError(
                f"huggingface.labels: {affect}: '{source.name}' has no label '{label}'; its labels: "
                f"{', '.join(model.labels)}"
            )
        columns.append(model.labels[label.lower()])
    return columns
