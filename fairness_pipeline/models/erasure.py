"""A frozen layer that removes one direction from a network's state."""

import torch
from torch import nn

NAME = "erasure"
"""The name of the layer in a model that has one, and in its weights file."""


class Erasure(nn.Module):
    """x - d v'(x - mean): moves the component that `v` reads to its mean along `d`, and keeps the rest."""

    direction: torch.Tensor
    reading: torch.Tensor
    mean: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        for name in ("direction", "reading", "mean"):
            self.register_buffer(name, torch.zeros(width))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """The vectors (rows, width) without the erased direction."""
        offsets = (vectors - self.mean) @ self.reading
        return vectors - offsets.unsqueeze(1) * self.direction


def restore(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Loads a model's weights, including the erasure layer if they have one."""
    mean = weights.get(f"{NAME}.mean")
    if mean is not None:
        model.erasure = Erasure(len(mean))
    model.load_state_dict(weights)
