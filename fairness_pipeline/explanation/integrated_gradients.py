"""Integrated gradients (Sundararajan, Taly and Yan 2017) of a classifier, with the library `captum`.

A word's share is |sum over its vector's entries of (x - 0) times the mean gradient of the logits' difference between 0
and x|, divided by the sum over the text. This explanation needs no training and can be compared with a trained one.
"""

import numpy as np
import torch

from fairness_pipeline.models.classifiers.network import TextNetwork
from fairness_pipeline.models.classifiers.texts import LabelledTexts

_AT_ONCE = 64


def integrated_gradients(network: TextNetwork, texts: list[np.ndarray], steps: int) -> list[np.ndarray]:
    """One share per word for each text. The shares of a text sum to 1, and are equal if no word has a gradient.

    Args:
        network: The classifier.
        texts: The word numbers of each text.
        steps: The number of points at which gradients are taken.
    """
    from captum.attr import IntegratedGradients

    network.eval().requires_grad_(False)

    def difference(embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        logits = network.logits(embedded, lengths)
        return logits[:, 1] - logits[:, 0]

    method = IntegratedGradients(difference)
    dataset = LabelledTexts(texts, np.zeros(len(texts)))
    device = next(network.parameters()).device
    shares: list[np.ndarray] = [np.empty(0)] * len(texts)
    for indices in dataset.batches(_AT_ONCE, seed=None):
        batch = dataset.batch(indices, device)
        embedded = network.embed(batch.texts).detach()
        with torch.backends.cudnn.flags(enabled=False):  # cuDNN has no gradients in eval mode
            attributions = method.attribute(embedded, additional_forward_args=(batch.lengths,), n_steps=steps)
        amounts = attributions.sum(dim=2).abs().double().cpu().numpy()
        for row, index in zip(amounts, indices, strict=True):
            kept = row[: len(texts[index])]
            total = kept.sum()
            shares[index] = kept / total if total > 0 else np.full(len(kept), 1 / len(kept))
    return shares
