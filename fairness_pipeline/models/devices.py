"""The device that a model runs on."""

from typing import Protocol

import torch

from fairness_pipeline.foundation.errors import FairnessError


class Placed(Protocol):
    """An object that says where it runs: `auto`, `cpu` or `cuda`."""

    @property
    def device(self) -> str:
        """The device's name."""


def device_of(specification: Placed) -> torch.device:
    """The device that a model runs on: a GPU if there is one, unless the model's file says otherwise.

    Raises:
        FairnessError: the file asks for a GPU, and there is none.
    """
    if specification.device == "cuda" and not torch.cuda.is_available():
        raise FairnessError("device: 'cuda' is asked for, but torch sees no GPU; set it to auto or cpu")
    if specification.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(specification.device)
