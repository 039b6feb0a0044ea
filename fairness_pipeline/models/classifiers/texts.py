"""Texts with two goals, label and author's group, as integers: what every network here is trained on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from fairness_pipeline.models.batching import EncodedDialogues, pad

_WINDOW = 20
"""Batches' worth of texts that are sorted by length together."""


class TextBatch(NamedTuple):
    """Padded texts (texts, words), their lengths on the CPU, and the goal and the weight of each."""

    texts: torch.Tensor
    lengths: torch.Tensor
    goals: torch.Tensor
    weights: torch.Tensor


class LabelledTexts(EncodedDialogues):
    """Texts as the shared training loop takes them; a batch is so many texts, not words.

    Args:
        turns: The numbers of each text's words.
        goals: What is predicted of each, 0 or 1: its label, or its author's group.
        weights: What each counts in the loss; 1 where left out.
    """

    def __init__(self, turns: Sequence[np.ndarray], goals: np.ndarray, weights: np.ndarray | None = None) -> None:
        super().__init__(turns, [()] * len(turns))
        self.goals = goals.astype(np.int64)
        self._weights = np.ones(len(goals), np.float32) if weights is None else weights.astype(np.float32)

    def batches(self, batch_tokens: int, seed: int | None) -> list[np.ndarray]:
        """As many texts each as `batch_tokens` says, of like length; in random order for a seed."""
        lengths = self.lengths
        if seed is None:
            order = np.argsort(lengths, kind="stable")
            return [order[start : start + batch_tokens] for start in range(0, len(order), batch_tokens)]
        random = np.random.default_rng(seed)
        order = random.permutation(len(self))
        window = _WINDOW * batch_tokens
        batches = []
        for start in range(0, len(order), window):
            part = order[start : start + window]
            part = part[np.argsort(lengths[part], kind="stable")]
            batches += [part[place : place + batch_tokens] for place in range(0, len(part), batch_tokens)]
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, indices: np.ndarray, device: torch.device) -> TextBatch:  # type: ignore[override]
        """The texts at `indices`, padded."""
        texts = [self.context(i) for i in indices]
        return TextBatch(
            pad(texts, device),
            torch.tensor([len(text) for text in texts]),
            torch.from_numpy(self.goals[indices]).to(device),
            torch.from_numpy(self._weights[indices]).to(device),
        )
