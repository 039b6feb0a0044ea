"""A frozen layer that takes one direction out of a network's state."""

from typing import Protocol

import torch
from torch import nn

NAME = "erasure"
"""Of the layer in a model that has one, and in its file of weights."""


class Erasure(nn.Module):
    """x - d v'(x - mean): what `v` reads of a vector is moved to the mean along `d`, and the rest is left.

    Args:
        width: Of the vectors.
    """

    direction: torch.Tensor
    reading: torch.Tensor
    mean: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        for name in ("direction", "reading", "mean"):
            self.register_buffer(name, torch.zeros(width))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors (rows, width) without what is erased."""
        read = (vectors - self.mean) @ self.reading
        return vectors - read.unsqueeze(1) * self.direction


class Erasable(Protocol):
    """A model that may have such a layer."""

    erasure: Erasure | None

    def load_state_dict(self, state_dict: dict[str, torch.Tensor]) -> object:
        """Takes weights."""


def restore(model: Erasable, weights: dict[str, torch.Tensor]) -> None:
    """Takes a model's weights, with the layer if they have one."""
    mean = weights.get(f"{NAME}.mean")
    if mean is not None:
        model.erasure = Erasure(len(mean))
    model.load_state_dict(weights)
