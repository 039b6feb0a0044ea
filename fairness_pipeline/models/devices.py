"""Places models on their device, waits for a turn on the GPU, and fits batches into its memory."""

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
"""A model with fewer weights is no faster on a GPU, which waits for the CPU to start each step."""


def to_device(model: M, device: str) -> M:
    """The model on its device: `cpu`, `cuda` or `auto` (a GPU if there is one and the model has a million weights).

    One worker of a run uses the GPU at a time (`foundation.turns`), and this function waits for its turn. Small models
    stay on the CPU, where all workers compute at once. Computations in 32 bits stay in 32 bits on a GPU.

    Raises:
        FairnessError: the device is `cuda`, and there is no GPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise FairnessError("device: 'cuda' is asked for, but torch sees no GPU; set it to auto or cpu")
    if device == "auto":
        large = sum(weight.numel() for weight in model.parameters()) >= _FEW
        device = "cuda" if large and torch.cuda.is_available() else "cpu"
    if device == "cuda":
        take_gpu()
        torch.backends.cudnn.allow_tf32 = False  # TF32 rounds recurrent networks and convolutions to 10 bits
    return model.to(torch.device(device))


def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor on a device. It is copied to a GPU through pinned memory, so the CPU does not wait for the copy."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def roomy(size: int, device: torch.device) -> int:
    """The batch size for a device: `size` on a CPU, where larger batches are no faster; a multiple of it on a GPU.

    The factor is the GPU's memory in units of 2 GiB, rounded down to a power of two, and 32 at most. A batch that still
    does not fit is halved (`in_batches`). The same card gives the same sizes, whatever else runs on it.
    """
    if device.type != "cuda":
        return size
    return size << min(5, max(0, (_memory_of(device) >> 31).bit_length() - 1))


def _memory_of(device: torch.device) -> int:
    """The bytes of a GPU's memory; on a CPU, those that this process may use."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else memory()


_fitting: WeakKeyDictionary[torch.nn.Module, int] = WeakKeyDictionary()
"""The batch size that each model was last halved to."""


def in_batches(work: Callable[[int, int], R], count: int, size: int, model: torch.nn.Module) -> Iterator[R]:
    """Yields the results of `work` for consecutive batches of `count` rows.

    `work` takes the index of a batch's first row and the one after its last. A batch has `size` rows at most. If it
    does not fit into a GPU's memory, it and all later batches of the model are halved, also in later calls.

    Raises:
        FairnessError: not even one row fits.
    """
    start = 0
    while start < count:
        end = min(start + min(size, _fitting.get(model, size)), count)
        try:
            result = work(start, end)
        except torch.OutOfMemoryError:
            _fitting[model] = halved(end - start)
            continue
        yield result
        start = end


def rows_beside(model: Any, tokens: int, room: int | None = None) -> int | None:
    """The number of rows that fit into a GPU's memory beside a model's weights.

    Generation keeps keys and values of each token: 2 x layers x heads x width. None on a CPU, or if the model's
    configuration lacks these sizes.

    Args:
        model: A model of the `transformers` library, on its device.
        tokens: The tokens of the longest prompt and answer together.
        room: The bytes of memory, if not those of the model's own GPU.
    """
    sizes = model.config.get_text_config(decoder=True)
    layers, heads = (getattr(sizes, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if (room is None and model.device.type != "cuda") or not layers or not heads:
        return None
    key_value_heads = getattr(sizes, "num_key_value_heads", None) or heads
    width = getattr(sizes, "head_dim", None) or sizes.hidden_size // heads
    row_bytes = 2 * layers * key_value_heads * width * model.dtype.itemsize * max(1, tokens)
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    free = _SHARE_OF_STATES * (_memory_of(model.device) if room is None else room) - weights
    return max(1, int(free / row_bytes))


_SHARE_OF_STATES = 0.8
"""The share of a GPU's memory for weights, keys and values; intermediate results take the rest. It is an estimate: a
batch that still does not fit is halved."""
_WHILE_TRAINING = 4
"""Numbers kept for each weight in training: the weight, its gradient, and two moments of Adam."""


def check_room_to_train(model: torch.nn.Module) -> None:
    """Raises FairnessError, before anything is trained, if weights, gradients and Adam's moments alone do not fit."""
    weights = list(model.parameters())
    device = weights[0].device
    needed = _WHILE_TRAINING * sum(weight.numel() * weight.element_size() for weight in weights)
    total = _memory_of(device)
    if needed > total:
        count = sum(weight.numel() for weight in weights)
        raise FairnessError(
            f"training {count / 1e9:.1f} billion weights takes {needed / 1e9:.0f} GB or more, and "
            f"{'the GPU' if device.type == 'cuda' else 'this process'} has {total / 1e9:.0f} GB; nothing was trained. "
            "Take a smaller model, or train it elsewhere and audit the result: fairness-pipeline audit FOLDER"
        )


def halved(size: int) -> int:
    """Half the size of a batch that did not fit into a GPU's memory; frees the cached memory.

    Raises:
        FairnessError: the batch has only one row.
    """
    if size == 1:
        raise FairnessError("one text does not fit into the GPU's memory; set device: cpu") from None
    torch.cuda.empty_cache()
    return size // 2
