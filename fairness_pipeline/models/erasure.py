"""A frozen layer that takes one direction out of a network's state."""

import torch
from torch import nn


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
