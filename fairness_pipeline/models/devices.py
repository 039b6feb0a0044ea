"""The device that a model runs on, and what a GPU needs: turns, batches that fit, transfers that do not wait."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.machine import memory
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
    return size << min(5, max(0, (_memory_of(device) >> 31).bit_length() - 1))


def _memory_of(device: torch.device) -> int:
    """The bytes of a device; those of this process on a processor."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else memory()


_fitting: WeakKeyDictionary[torch.nn.Module, int] = WeakKeyDictionary()
"""How many rows of a model fitted where more did not."""


def in_batches(work: Callable[[int, int], R], count: int, size: int, model: torch.nn.Module) -> Iterator[R]:
    """`work` of each part of `count` rows: their first, and the one after their last.

    Where a GPU's memory is too small for a part, it and all later ones of the model are halved, in later calls too.

    Args:
        work: Gets the place of the first row and of the one after the last.
        count: The number of rows.
        size: The number of rows at a time.
        model: What takes the rows.

    Raises:
        FairnessError: not even one row fits.
    """
    start = 0
    while start < count:
        end = min(start + min(size, _fitting.get(model, size)), count)
        try:
            found = work(start, end)
        except torch.OutOfMemoryError:
            _fitting[model] = halved(end - start)
            continue
        yield found
        start = end


def rows_beside(model: Any, tokens: int, room: int | None = None) -> int | None:
    """How many rows of so many tokens a GPU holds beside a model's weights, by the keys and values that generation
    keeps of each: 2 x layers x heads x width. None on a processor, or if the model's configuration does not say.

    Args:
        model: A model of the `transformers` library, on its device.
        tokens: Tokens of the longest prompt and answer together.
        room: Bytes of the GPU, if not those of the model's own.
    """
    sizes = model.config.get_text_config(decoder=True)
    layers, heads = (getattr(sizes, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if (room is None and model.device.type != "cuda") or not layers or not heads:
        return None
    kept = getattr(sizes, "num_key_value_heads", None) or heads
    width = getattr(sizes, "head_dim", None) or sizes.hidden_size // heads
    each = 2 * layers * kept * width * model.dtype.itemsize * max(1, tokens)
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    free = _SHARE_OF_STATES * (_memory_of(model.device) if room is None else room) - weights
    return max(1, int(free / each))


_SHARE_OF_STATES = 0.8
"""Of a GPU's memory, for weights, keys and values; the rest is for what is computed on the way. Not measured: what does
not fit all the same is halved."""
_WHILE_TRAINING = 4
"""A weight, its gradient, and two moments of Adam."""


def check_room_to_train(model: torch.nn.Module, room: int | None = None) -> None:
    """Raises FairnessError, before anything is trained, if weights, gradients and Adam's moments alone do not fit.

    Args:
        model: The model on its device.
        room: Bytes of the device, if not its own.
    """
    weights = list(model.parameters())
    device = weights[0].device
    needed = _WHILE_TRAINING * sum(weight.numel() * weight.element_size() for weight in weights)
    there = _memory_of(device) if room is None else room
    if needed > there:
        count = sum(weight.numel() for weight in weights)
        raise FairnessError(
            f"training {count / 1e9:.1f} billion weights takes {needed / 1e9:.0f} GB or more, and "
            f"{'the GPU' if device.type == 'cuda' else 'this process'} has {there / 1e9:.0f} GB; nothing was trained. "
            "Take a smaller model, or train it elsewhere and audit the result: fairness-pipeline audit FOLDER"
        )


def halved(size: int) -> int:
    """Half of a batch that did not fit into a GPU's memory, which is freed.

    Raises:
        FairnessError: it is one row already.
    """
    if size == 1:
        raise FairnessError("one text does not fit into the GPU's memory; set device: cpu") from None
    torch.cuda.empty_cache()
    return size // 2
