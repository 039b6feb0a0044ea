"""Text classifiers beside plain code."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.models.classifiers.network import fit
from fairness_pipeline.models.classifiers.registry import new_network, new_tokens
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification, Fitting, NetworkSettings
from fairness_pipeline.models.classifiers.texts import LabelledTexts
from fairness_pipeline.models.classifiers.words import WordTokens
from fairness_pipeline_tests.benchmark import plain
from fairness_pipeline_tests.benchmark.shared import Ratio, dialogues, rate


def classifiers() -> list[Ratio]:
    """An epoch of the thesis' CNN (300 wide, 100 filters of 3, 4 and 5 words), in texts a second; batches of 64."""
    table, which = dialogues()
    texts = [text for text in table["context"].to_pylist()[:6000] if text.split()]
    labels = np.random.default_rng(1).integers(0, 2, len(texts))
    classifier = ClassifierSpecification(architecture="cnn", network=NetworkSettings(vocabulary=8000))
    fitting = Fitting(epochs=1)
    tokens = new_tokens(classifier, texts)
    assert isinstance(tokens, WordTokens)

    def ours() -> None:
        encoded = tokens.encode(texts)
        train, valid = LabelledTexts(encoded, labels), LabelledTexts(encoded[:8], labels[:8])
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            fit(new_network(classifier, tokens), train, valid, fitting, Path(folder), 0)

    def theirs() -> None:
        torch.manual_seed(0)
        model = new_network(classifier, tokens)
        plain.train_classifier(model, tokens.vocabulary, texts, labels.tolist(), fitting.batch)

    longest = max(len(tokenize(text)) for text in texts)
    note = f"{len(texts):,} of {which}, cut into words once; the plain loop pads to the longest, {longest} words"
    return [Ratio("training, CNN classifier", "texts", rate(len(texts), theirs), rate(len(texts), ours), 1.8, note)]
