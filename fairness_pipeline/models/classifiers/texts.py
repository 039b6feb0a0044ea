"""Texts as integers with a goal each (the label or the author's group), for training the networks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from fairness_pipeline.models.batching import EncodedDialogues, cut, pad, shuffled
from fairness_pipeline.models.devices import moved

_WINDOW = 20
"""How many batches of texts are sorted by length together."""


class TextBatch(NamedTuple):
    """Padded texts (texts, words), their lengths on the CPU, and the goal and weight of each text."""

    texts: torch.Tensor
    lengths: torch.Tensor
    goals: torch.Tensor
    weights: torch.Tensor


class LabelledTexts(EncodedDialogues):
    """Texts in the form that the shared training loop takes; the batch size counts texts, not words.

    A goal is 0 or 1: a text's label or its author's group. The weights in the loss are 1 by default.
    """

    def __init__(self, turns: Sequence[np.ndarray], goals: np.ndarray, weights: np.ndarray | None = None) -> None:
        super().__init__(turns, [()] * len(turns))
        self.goals = goals.astype(np.int64)
        self._weights = np.ones(len(goals), np.float32) if weights is None else weights.astype(np.float32)

    def batches(self, batch_tokens: int, seed: int | None) -> list[np.ndarray]:
        """Batches of `batch_tokens` texts of similar length, in random order if there is a seed."""
        ones = np.ones(len(self), np.int64)
        if seed is None:
            return cut(np.argsort(self.lengths, kind="stable"), ones, batch_tokens)
        return shuffled(self.lengths, ones, batch_tokens, _WINDOW * batch_tokens, seed)

    def batch(self, indices: np.ndarray, device: torch.device) -> TextBatch:  # type: ignore[override]
        """The texts at `indices`, padded."""
        texts = [self.context(i) for i in indices]
        return TextBatch(
            pad(texts, device),
            torch.tensor([len(text) for text in texts]),
            moved(torch.from_numpy(self.goals[indices]), device),
            moved(torch.from_numpy(self._weights[indices]), device),
        )
