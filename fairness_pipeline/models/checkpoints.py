"""Saves everything that the next training step depends on in one file, which is replaced atomically."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing

Tensors = Mapping[str, torch.Tensor]


class Due:
    """Decides when the next checkpoint is due: every `every` seconds."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._last = time.monotonic()

    def __call__(self) -> bool:
        """Whether a checkpoint is due now. If it is, the interval starts again."""
        if time.monotonic() - self._last <= self._every:
            return False
        self._last = time.monotonic()
        return True


def weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of the module's weights, which further training does not change."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file.

    Raises:
        FairnessError: the file is missing or damaged.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> FairnessError:
    """The error about a weights file that cannot be read, with advice."""
    return FairnessError(f"{path}: damaged or missing ({error}); delete it and run again to recreate it")


def save_training(
    path: Path,
    modules: Mapping[str, nn.Module],
    optimisers: Mapping[str, torch.optim.Optimizer],
    kept: Mapping[str, Tensors],
    position: dict[str, Any],
) -> None:
    """Writes a checkpoint: weights, optimiser states, learning rates, the random state, and the position in the data.

    Args:
        path: The safetensors file.
        modules: The modules in training, by name.
        optimisers: Their optimisers, by name.
        kept: Other tensors, by group and name (such as the best weights so far).
        position: The position in the data; anything that JSON can hold.

    Raises:
        FairnessError: the disk is full.
    """
    tensors = {f"module/{key}/{name}": t for key, module in modules.items() for name, t in module.state_dict().items()}
    tensors |= {f"kept/{key}/{name}": t for key, group in kept.items() for name, t in group.items()}
    rates = {}
    for key, optimiser in optimisers.items():
        state = optimiser.state_dict()
        rates[key] = [group["lr"] for group in state["param_groups"]]
        for index, values in state["state"].items():
            tensors |= {f"optimiser/{key}/{index}/{name}": t for name, t in values.items() if torch.is_tensor(t)}
    tensors["random"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random_cuda"] = torch.cuda.get_rng_state()
    metadata = {"position": json.dumps(position), "learning_rates": json.dumps(rates)}
    with replacing(path) as temporary:
        save_file({name: t.contiguous().clone() for name, t in tensors.items()}, temporary, metadata)


def load_training(
    path: Path, modules: Mapping[str, nn.Module], optimisers: Mapping[str, torch.optim.Optimizer]
) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, Any]] | None:
    """Restores modules, optimisers and the random state as `save_training` wrote them; None if there is no file.

    Returns:
        The tensors that were `kept`, and the `position`.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as checkpoint:
            metadata = checkpoint.metadata()
            tensors = {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise damaged(path, error) from None
    rates = json.loads(metadata["learning_rates"])
    grouped: dict[str, dict[str, dict[str, torch.Tensor]]] = {"module": {}, "kept": {}, "optimiser": {}}
    for full, tensor in tensors.items():
        kind, _, rest = full.partition("/")
        if kind in grouped:
            key, _, name = rest.partition("/")
            grouped[kind].setdefault(key, {})[name] = tensor
    for key, module in modules.items():
        module.load_state_dict(grouped["module"][key])
    for key, optimiser in optimisers.items():
        state: dict[int, dict[str, torch.Tensor]] = {}
        for full, tensor in grouped["optimiser"].get(key, {}).items():
            index, _, name = full.partition("/")
            state.setdefault(int(index), {})[name] = tensor
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        for group, rate in zip(optimiser.param_groups, rates[key], strict=True):
            group["lr"] = rate
    torch.set_rng_state(tensors["random"])
    if torch.cuda.is_available() and "random_cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random_cuda"])
    return grouped["kept"], json.loads(metadata["position"])


def check_finite(loss: torch.Tensor, loss_name: str, where: str, checkpoint: Path | None) -> None:
    """Raises an error if a loss is not a finite number; its message names the `checkpoint` with the last good state.

    Raises:
        FairnessError: the loss is NaN or infinite.
    """
    if not torch.isfinite(loss):
        hint = f"; last good checkpoint: {checkpoint if checkpoint.exists() else 'none yet'}" if checkpoint else ""
        raise FairnessError(
            f"the {loss_name} is {loss.item()} in {where}{hint}; lower the learning rate or the clipping"
        )
