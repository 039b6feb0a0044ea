"""P_w(y | x): classifiers of points or texts that learn from the probability that each item is positive.

A classifier is called with mu_i of every item (Liu 2022, equation 5.4). It learns from sum of mu_i log p_i + (1 - mu_i)
log(1 - p_i) and returns p_i. This is the step in w of the extended EM, for GroupAnno and LFC-binary. With labels in
place of mu it is ordinary training.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import pydantic

from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.specification import Rate

_COMPONENTS = 100
"""The maximum number of components of the points' kernel."""


class ItemClassifierSettings(Specification):
    """How a classifier learns from inferred labels. For texts the settings follow Liu (2022, section 5.4.3)."""

    unhashed = frozenset({"threads"})

    embedding: Positive = 128
    """Width of a word embedding."""
    hidden: Positive = 256
    """Units of the recurrent network (GRU)."""
    learning_rate: Rate = 1e-3
    """Learning rate of Adam."""
    batch: Positive = 64
    """Texts per step."""
    epochs: Positive = 10
    """Passes over the items, and rounds of the extended EM."""
    vocabulary: Positive = 20_000
    """Number of known words. Other words are unknown."""
    longest: Positive = 100
    """Words of a text. Longer texts are cut."""
    gamma: Annotated[float, pydantic.Field(gt=0)] = 4.0
    """The gamma of the points' Gaussian kernel exp(-gamma distance^2)."""
    threads: Positive = 1
    """Threads of the processor."""


class PointClassifier:
    """Logistic regression on a Gaussian kernel, fitted anew at every call.

    Args:
        points: (items, features) of the training items.
        tests: (items, features) of the test items.
        settings: The settings; only `gamma` is used.
        seed: The seed of the kernel's points.
    """

    def __init__(self, points: np.ndarray, tests: np.ndarray, settings: ItemClassifierSettings, seed: int) -> None:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        centre, scale = points.mean(axis=0), np.maximum(points.std(axis=0), 1e-9)
        self._points, self._tests = (points - centre) / scale, (tests - centre) / scale
        kernel = Nystroem(gamma=settings.gamma, n_components=min(_COMPONENTS, len(points)), random_state=seed)
        self._model = make_pipeline(kernel, LogisticRegression(max_iter=1000))

    def __call__(self, probas: np.ndarray) -> np.ndarray:
        """P(y = 1) of the points."""
        labels = np.repeat([1, 0], len(probas))
        weights = np.maximum(np.concatenate([probas, 1 - probas]), 1e-12)
        self._model.fit(np.concatenate([self._points] * 2), labels, logisticregression__sample_weight=weights)
        predictions: np.ndarray = self._model.predict_proba(self._points)[:, 1]
        return predictions

    def learn(self, labels: np.ndarray) -> None:
        """Learns from labels."""
        self(labels)

    def predict(self) -> np.ndarray:
        """P(y = 1) of the test points."""
        predictions: np.ndarray = self._model.predict_proba(self._tests)[:, 1]
        return predictions


class TextClassifier:
    """A one-layer GRU over words. A call is one epoch of Adam."""

    def __init__(self, texts: Sequence[str], tests: Sequence[str], settings: ItemClassifierSettings, seed: int) -> None:
        import torch

        from fairness_pipeline.models.classifiers.specification import NetworkSettings
        from fairness_pipeline.models.classifiers.words import WordNetwork
        from fairness_pipeline.models.vocabulary import Vocabulary

        use_threads(settings.threads)
        vocabulary = Vocabulary.build(texts, settings.vocabulary)
        self._words, self._tests = (vocabulary.turns(split, settings.longest) for split in (texts, tests))
        torch.manual_seed(seed)
        widths = NetworkSettings(embedding=settings.embedding, hidden=settings.hidden)
        self._network = WordNetwork("rnn", widths, len(vocabulary))
        self._optimiser = torch.optim.Adam(self._network.parameters(), lr=settings.learning_rate)
        self._batch, self._epochs, self._seed, self._epoch = settings.batch, settings.epochs, seed, 0

    def __call__(self, probas: np.ndarray) -> np.ndarray:
        """P(y = 1) of the texts after one more epoch."""
        from fairness_pipeline.models.classifiers.network import probabilities

        self._learn_once(probas)
        return probabilities(self._network, self._words)

    def learn(self, labels: np.ndarray) -> None:
        """Learns from labels for all epochs."""
        for _ in range(self._epochs):
            self._learn_once(labels)

    def predict(self) -> np.ndarray:
        """P(y = 1) of the test texts."""
        from fairness_pipeline.models.classifiers.network import probabilities

        return probabilities(self._network, self._tests)

    def _learn_once(self, probas: np.ndarray) -> None:
        import torch
        from torch.nn.functional import cross_entropy

        from fairness_pipeline.models.classifiers.texts import LabelledTexts

        dataset = LabelledTexts(self._words, np.zeros(len(self._words)))
        goals = torch.from_numpy(np.stack([1 - probas, probas], axis=1)).float()
        self._epoch += 1
        self._network.train()
        for indices in dataset.batches(self._batch, 1000 * self._seed + self._epoch):
            batch = dataset.batch(indices, torch.device("cpu"))
            logits = self._network.logits(self._network.embed(batch.texts), batch.lengths)
            loss = cross_entropy(logits, goals[indices])
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
