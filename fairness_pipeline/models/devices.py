"""The device that a model runs on, and what a GPU needs: turns, batches that fit, transfers that do not wait."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.turns import take_gpu

M = TypeVar("M", bound=torch.nn.Module)
R = TypeVar("R")
_FEW = 1_000_000
"""Weights of a model that a GPU makes no faster: it waits for the processor that starts its steps."""


def placed(model: M, device: str) -> M:
    """The model on its device: `cpu`, `cuda`, or `auto`, a GPU if there is one and the model has a million weights.

    Of the workers of a run, one at a time uses the GPU (`foundation.turns`): this waits for its turn. Small models
    stay where all workers compute at once. What is asked for in 32 bits is computed in 32 bits, on a GPU too.

    Raises:
        FairnessError: a GPU is asked for, and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise FairnessError("device: 'cuda' is asked for, but torch sees no GPU; set it to auto or cpu")
    if device == "auto":
        large = sum(weight.numel() for weight in model.parameters()) >= _FEW
        device = "cuda" if large and torch.cuda.is_available() else "cpu"
    if device == "cuda":
        take_gpu()
        torch.backends.cudnn.allow_tf32 = False  # else networks with states, and convolutions, round to 10 bits
    return model.to(torch.device(device))


def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor on a device; the way to a GPU goes through pinned memory, so that nothing waits for it."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def roomy(size: int, device: torch.device) -> int:
    """The size of a batch on a device: `size` on a processor, which more does not make faster; on a GPU, so many times
    more as its memory allows (once for each 2 GiB, in powers of two, 32 times at most).

    What does not fit all the same is halved (`in_batches`). The same card gives the same sizes, whatever else is on it.
    """
    if device.type != "cuda":
        return size
    memory = torch.cuda.get_device_properties(device).total_memory
    return size << min(5, max(0, (memory >> 31).bit_length() - 1))


def in_batches(work: Callable[[int, int], R], count: int, size: int) -> Iterator[R]:
    """`work` of each part of `count` rows: their first, and the one after their last.

    Where a GPU's memory is too small for a part, it and all later ones are halved.

    Args:
        work: Gets the place of the first row and of the one after the last.
        count: The number of rows.
        size: The number of rows at a time.

    Raises:
        FairnessError: not even one row fits.
    """
    start = 0
    while start < count:
        end = min(start + size, count)
        try:
            found = work(start, end)
        except torch.OutOfMemoryError:
            size = halved(end - start)
            continue
        yield found
        start = end


def halved(size: int) -> int:
    """Half of a batch that did not fit into a GPU's memory, which is freed.

    Raises:
        FairnessError: it is one row already.
    """
    if size == 1:
        raise FairnessError("one text does not fit into the GPU's memory; set device: cpu") from None
    torch.cuda.empty_cache()
    return size // 2
