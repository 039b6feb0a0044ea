"""Trains text classifiers and predicts with them: networks from word vectors to two logits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.classifiers.specification import Fitting
from fairness_pipeline.models.classifiers.texts import LabelledTexts, TextBatch
from fairness_pipeline.models.training import Judge, Trainer

_AT_ONCE = 256


class TextNetwork(nn.Module, ABC):
    """A network that runs in two steps, so that a layer can be put between the words of a text and its class.

    Attributes:
        width: The width of a word's vector.
    """

    width: int

    @abstractmethod
    def embed(self, texts: torch.Tensor) -> torch.Tensor:
        """The vectors (texts, words, width) of the words (texts, words)."""

    @abstractmethod
    def logits(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logits (texts, 2) of texts with these lengths, from the vectors of their words."""

    def forward(self, batch: TextBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The weighted sum of the cross-entropies, and the number of texts."""
        logits = self.logits(self.embed(batch.texts), batch.lengths)
        losses = cross_entropy(logits, batch.goals, reduction="none")
        return (losses * batch.weights).sum(), torch.tensor(len(batch.goals))


class Tokens(Protocol):
    """Converts texts to the numbers of their words, and back."""

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The numbers of each text's words, at least one for each text."""

    def words(self, numbers: np.ndarray) -> list[str]:
        """The words with these numbers, in readable form."""

    def save(self, folder: Path) -> None:
        """Saves the tokens where the architecture's `tokens_of` finds them."""


def inaccuracy(model: nn.Module, texts: EncodedDialogues) -> float:
    """The share of texts for which the network finds the wrong class more likely."""
    assert isinstance(texts, LabelledTexts) and isinstance(model, TextNetwork)
    predicted = probabilities(model, [texts.context(i) for i in range(len(texts))]) >= 0.5
    return float(np.mean(predicted != texts.goals))


def fit(
    network: TextNetwork,
    train: LabelledTexts,
    valid: LabelledTexts,
    fitting: Fitting,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
) -> list[float]:
    """Trains until the validation accuracy has not improved for some epochs, and then restores the best weights.

    The network is on its device. A killed training is resumed.

    Returns:
        The validation accuracy after each epoch.

    Raises:
        FairnessError: a loss is not a finite number.
    """
    trainer = Trainer(network, fitting.training, folder, seed, judge=Judge("error", inaccuracy))
    history = trainer.fit(train, valid, progress)
    network.load_state_dict(load_weights(folder / Trainer.WEIGHTS))  # these may come from an earlier run
    return [1 - error for error in history]


@torch.inference_mode()
def probabilities(network: TextNetwork, texts: Sequence[np.ndarray]) -> np.ndarray:
    """The probability of class 1 for each text (the numbers of its words), which depends on that text alone."""
    examples = LabelledTexts(texts, np.zeros(len(texts)))
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    positive = np.empty(len(texts))
    for indices in examples.batches(_AT_ONCE, seed=None):
        batch = examples.batch(indices, device)
        logits = network.logits(network.embed(batch.texts), batch.lengths)
        positive[indices] = logits.double().softmax(dim=1)[:, 1].cpu().numpy()
    network.train(was_training)
    return positive
