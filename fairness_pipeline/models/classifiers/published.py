"""A published Hugging Face sequence classifier, by id or folder."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.models.specification import given
from fairness_pipeline.models.text_classifier import TextClassifier
from fairness_pipeline.workspace.distinct import Scorer


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> Scorer:
    """Gives the total probability of the labels that mean the positive class: a table with the column `probability`.

    Raises:
        FairnessError: the model cannot be loaded or has no such label.
    """
    source = given(specification.huggingface)
    model = TextClassifier(source.name, source.revision, specification.device, "huggingface.name")
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
                f"huggingface.positive: '{source.name}' has no label '{label}'; its labels: {', '.join(model.labels)}"
            )
    columns = [model.labels[label.lower()] for label in source.positive]

    def score(texts: pa.Table) -> pa.Table:
        parts = model.probabilities(texts["text"].to_pylist(), source.at_once)
        return pa.table({"probability": np.concatenate([part[:, columns].sum(1).cpu().numpy() for part in parts])})

    return score
