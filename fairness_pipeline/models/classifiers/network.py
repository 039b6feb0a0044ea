"""A classifier that is trained here: word vectors in, two logits out; and its training and predictions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.classifiers.specification import Fitting
from fairness_pipeline.models.classifiers.texts import LabelledTexts, TextBatch
from fairness_pipeline.models.training import Examples, Judge, Trainer

_AT_ONCE = 256


class TextNetwork(nn.Module, ABC):
    """A network that is asked in two steps, so that something can be put between a text's words and its class.

    Attributes:
        width: Of a word's vector.
    """

    width: int

    @abstractmethod
    def embed(self, texts: torch.Tensor) -> torch.Tensor:
        """The vectors (texts, words, width) of the words (texts, words)."""

    @abstractmethod
    def logits(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logits (texts, 2) of texts of these lengths, from the vectors of their words."""

    def forward(self, batch: TextBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The weighted sum of the cross-entropies, and how many texts."""
        logits = self.logits(self.embed(batch.texts), batch.lengths)
        losses = cross_entropy(logits, batch.goals, reduction="none")
        return (losses * batch.weights).sum(), torch.tensor(len(batch.goals))


class Tokens(Protocol):
    """Texts to the numbers of their words, and back."""

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The numbers of each text's words, one at least."""

    def words(self, numbers: np.ndarray) -> list[str]:
        """The words of these numbers, for a reader."""

    def save(self, folder: Path) -> None:
        """Writes it where the architecture's `tokens_of` finds it."""


def inaccuracy(model: nn.Module, texts: Examples) -> float:
    """The share of texts whose goal is not what the network finds likelier."""
    assert isinstance(texts, LabelledTexts) and isinstance(model, TextNetwork)
    found = probabilities(model, [texts.context(i) for i in range(len(texts))]) >= 0.5
    return float(np.mean(found != texts.goals))


def fit(
    network: TextNetwork,
    train: LabelledTexts,
    valid: LabelledTexts,
    fitting: Fitting,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
) -> list[float]:
    """Trains until the validation accuracy has not improved for some epochs; leaves the best weights in the network.

    Goes on from where a killed training stopped.

    Args:
        network: With its first weights, on its device.
        train: What is trained on.
        valid: What tells when to stop.
        fitting: How long and how fast.
        folder: Where checkpoint and weights go.
        seed: Of the order.
        progress: Told how far it is.

    Returns:
        The validation accuracy after each epoch.

    Raises:
        FairnessError: a loss that is not a number.
    """
    trainer = Trainer(network, fitting.training, folder, seed, judge=Judge("error", inaccuracy))
    history = trainer.fit(train, valid, progress)
    network.load_state_dict(load_weights(folder / Trainer.WEIGHTS))  # which may be those of an earlier run
    return [1 - error for error in history]


@torch.inference_mode()
def probabilities(network: TextNetwork, texts: Sequence[np.ndarray]) -> np.ndarray:
    """The probability of class 1 of each text, which depends on it alone.

    Args:
        network: On its device.
        texts: The numbers of their words.
    """
    own = LabelledTexts(texts, np.zeros(len(texts)))
    device = next(network.parameters()).device
    was = network.training
    network.eval()
    found = np.empty(len(texts))
    for indices in own.batches(_AT_ONCE, seed=None):
        batch = own.batch(indices, device)
        logits = network.logits(network.embed(batch.texts), batch.lengths)
        found[indices] = logits.double().softmax(dim=1)[:, 1].cpu().numpy()
    network.train(was)
    return found
