"""The training loop: token-budget batches, early stopping, and checkpoints from which a killed run goes on exactly."""

import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.models.checkpoints import Due, load_training, save_training, weights_of
from fairness_pipeline.models.devices import halved
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.models.watching import Watch

_EVALUATION_TOKENS = 8192


class Examples(Protocol):
    """What is trained on, in batches."""

    def __len__(self) -> int:
        """How many."""

    def batches(self, batch_tokens: int, seed: int | None) -> list[np.ndarray]:
        """Which examples each batch holds; in random order for a seed, sorted by length for None."""

    def batch(self, indices: np.ndarray, device: torch.device) -> Any:
        """What the model's `forward` takes."""


class Judge(NamedTuple):
    """What a model is judged by on validation data, to know when to stop; less is better."""

    name: str
    of: Callable[[nn.Module, Examples], float]


_TINY = 1e-6
"""As in torch's own clipping."""


class Penalty(NamedTuple):
    """A term that is added to the mean loss of every batch, but not to the perplexity.

    Attributes:
        of: Computes it.
        weight: Its weight.
        clipped_apart: Whether its gradient is clipped by itself, and weighted after that, as clipping would make any
            weight the same. Clipped together, a term whose gradient stays large takes what the loss of the batch may
            move.
    """

    of: Callable[[], torch.Tensor]
    weight: float = 1.0
    clipped_apart: bool = False


class Trainer:
    """Trains a model whose `forward(batch)` gives the batch's summed loss and what it is a sum over (words, responses).

    Everything that the next step depends on is in one file, `training.safetensors`, swapped in whole, with the best
    weights so far: a resumed run equals an uninterrupted one.

    Args:
        model: On its device, with its first weights.
        settings: Optimiser and schedule.
        folder: Where checkpoint and weights go.
        seed: Of the order of the dialogues.
        penalty: Added to the loss of every batch.
        judge: What tells when to stop; the perplexity, where it is left out.
    """

    WEIGHTS = "model.safetensors"
    HISTORY = "history.json"
    CHECKPOINT = "training.safetensors"

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingSettings,
        folder: Path,
        seed: int,
        penalty: Penalty | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.model = model
        self.judge = judge or Judge("perplexity", perplexity)
        self.penalty = penalty
        self.settings = settings
        self.folder = folder
        self.seed = seed
        self.optimiser = _optimiser(model, settings)
        self.epoch = self.step = self.terms = 0
        self.summed = 0.0
        self.history: list[float] = []
        self.best = weights_of(model)
        self._watch = Watch("training loss", folder / self.CHECKPOINT)
        self._norms = Watch("gradient of the training loss", folder / self.CHECKPOINT)
        self._parts = 1

    def fit(self, train: Examples, valid: Examples | None, progress: Progress | None = None) -> list[float]:
        """Trains until the judge finds no better model in `patience` epochs, or `epochs` are over.

        The weights of the best epoch (of the last one where nothing validates) are left in `folder`; where they lie
        already, nothing is trained again.

        Args:
            train: What is trained on.
            valid: What tells when to stop; None trains all epochs.
            progress: Told how many batches of the epochs allowed have passed.

        Returns:
            What the judge says after each epoch (the perplexity), or else the mean training loss of each.

        Raises:
            FairnessError: nothing to train on, or a loss that is not a number.
        """
        if not len(train) or (valid is not None and not len(valid)):
            raise FairnessError(
                f"nothing to train on: {len(train):,} training and {len(valid or ()):,} validation dialogues; "
                "the corpus is too small, or the profile leaves nothing of it to train or validate on"
            )
        if all((self.folder / name).exists() for name in (self.WEIGHTS, self.HISTORY)):  # somebody may delete one
            (self.folder / self.CHECKPOINT).unlink(missing_ok=True)
            return json.loads((self.folder / self.HISTORY).read_text(encoding="utf-8"))
        self._resume()
        due = Due(self.settings.checkpoint_seconds)
        while not self._finished(valid is not None):
            batches = train.batches(self.settings.batch_tokens, self.seed + self.epoch)
            while self.step < len(batches):
                self._train_on(train, batches[self.step])
                self.step += 1
                note = f"{'loss' if valid is None else self.judge.name} {self.history[-1]:.4g}" if self.history else ""
                report(progress, self.epoch * len(batches) + self.step, self.settings.epochs * len(batches), note)
                if due():
                    self._save_checkpoint()
            self._end_epoch(valid)
        self.model.load_state_dict(self.best)
        with replacing(self.folder / self.HISTORY) as path:
            path.write_text(json.dumps(self.history), encoding="utf-8")
        with replacing(self.folder / self.WEIGHTS) as path:
            save_file(self.best, path)
        (self.folder / self.CHECKPOINT).unlink(missing_ok=True)
        return self.history

    def _finished(self, stops_early: bool) -> bool:
        if len(self.history) >= self.settings.epochs:
            return True
        if not stops_early:
            return False
        since_best = len(self.history) - 1 - self.history.index(min(self.history)) if self.history else 0
        return since_best >= self.settings.patience

    def _train_on(self, examples: Examples, indices: np.ndarray) -> None:
        self.model.train()
        while True:
            self.optimiser.zero_grad(set_to_none=True)
            try:
                self._gradients(examples, np.array_split(indices, min(self._parts, len(indices))))
                break
            except torch.OutOfMemoryError:
                if not getattr(self.model, "SPLITS", True):
                    raise FairnessError(
                        "a batch does not fit into the GPU's memory, and cannot be halved, as each response is ranked "
                        "among those of its batch; lower training.batch_tokens, or set device: cpu"
                    ) from None
                halved(-(-len(indices) // self._parts))
                self._parts *= 2
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clipping)
        if self.penalty and self.penalty.clipped_apart:
            norm = norm + self._add_penalty(self.penalty)
        self._norms.add(norm, self._where)
        self.optimiser.step()

    def _add_penalty(self, penalty: Penalty) -> torch.Tensor:
        """Adds the penalty's own gradient, clipped by itself and then weighted; gives its norm."""
        moved = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        found = torch.autograd.grad(penalty.of(), moved, allow_unused=True)
        gradients = {parameter: own for parameter, own in zip(moved, found, strict=True) if own is not None}
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(own) for own in gradients.values()]))
        share = penalty.weight * (self.settings.clipping / (norm + _TINY)).clamp(max=1.0)
        for parameter, own in gradients.items():
            own = own * share
            parameter.grad = own if parameter.grad is None else parameter.grad + own
        return norm

    def _gradients(self, examples: Examples, parts: list[np.ndarray]) -> None:
        """The gradients of a batch's mean loss: of its parts one by one, where it does not fit into a GPU's memory."""
        device = next(self.model.parameters()).device
        joint = self.penalty if self.penalty and not self.penalty.clipped_apart else None
        summed: torch.Tensor = torch.zeros((), device=device)
        counted: torch.Tensor | int = 0
        for part in parts:
            batch = examples.batch(part, device)
            with _calculating(device, self.settings.precision):
                total, terms = self.model(batch)
            if len(parts) == 1:
                loss = total / terms
                (loss + joint.weight * joint.of() if joint else loss).backward()
            else:
                total.backward()
            summed, counted = summed + total.detach(), counted + terms
        if len(parts) > 1:
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= counted
            if joint:
                (joint.weight * joint.of()).backward()
        self._add(self._watch.add(summed, self._where, counted))

    @property
    def _where(self) -> str:
        return f"epoch {self.epoch + 1}, batch {self.step + 1}"

    def _look(self) -> None:
        """Refuses what is no number, before it is kept."""
        self._add(self._watch.collect(self._where))
        self._norms.collect(self._where)

    def _add(self, found: list[float]) -> None:
        self.summed, self.terms = self.summed + found[0], self.terms + int(found[1])

    def _end_epoch(self, valid: Examples | None) -> None:
        self._look()
        now = self.summed / max(self.terms, 1) if valid is None else self.judge.of(self.model, valid)
        if valid is None or not self.history or now < min(self.history):
            self.best = weights_of(self.model)
        else:
            for group in self.optimiser.param_groups:
                group["lr"] *= self.settings.decay
        self.history.append(now)
        self.epoch, self.step, self.summed, self.terms = self.epoch + 1, 0, 0.0, 0
        self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        self._look()
        names = ("epoch", "step", "history", "summed", "terms")
        position = {name: getattr(self, name) for name in names}
        save_training(
            self.folder / self.CHECKPOINT,
            {"model": self.model},
            {"model": self.optimiser},
            {"best": self.best},
            position,
        )

    def _resume(self) -> None:
        found = load_training(self.folder / self.CHECKPOINT, {"model": self.model}, {"model": self.optimiser})
        if found:
            kept, position = found
            self.best = kept["best"]
            for name, value in position.items():
                setattr(self, name, value)


@contextmanager
def _calculating(device: torch.device, precision: str) -> Iterator[None]:
    """Calculates in bfloat16 where it is asked for; the weights keep their 32 bits.

    oneDNN has such an LSTM only for processors with instructions for bfloat16, and fails on others. There PyTorch's own
    takes its place: the same result, some seven times slower than float32.
    """
    with ExitStack() as stack:
        if precision == "bfloat16":
            stack.enter_context(torch.autocast(device.type, torch.bfloat16))
            if device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
                stack.enter_context(warnings.catch_warnings(action="ignore"))  # of what this sets besides
                stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        yield


def perplexity(model: nn.Module, dialogues: Examples) -> float:
    """exp of the mean loss: for a model that writes, over a response's words, its end included."""
    total: torch.Tensor | float = 0.0
    count: torch.Tensor | int = 0
    device = next(model.parameters()).device
    model.eval()
    with torch.inference_mode():
        for indices in dialogues.batches(_EVALUATION_TOKENS, seed=None):
            loss, terms = model(dialogues.batch(indices, device))
            total, count = total + loss.double(), count + terms
    model.train()
    return exp_mean(float(total), int(count))


def exp_mean(total: float, count: int) -> float:
    """The perplexity of a summed loss in nats, finite for whatever is one."""
    return math.exp(min(total / count, 700.0))


def _optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    parameters = model.parameters()
    if settings.optimiser == "sgd":
        return torch.optim.SGD(parameters, settings.learning_rate, momentum=settings.momentum)
    kind = {"adam": torch.optim.Adam, "adamax": torch.optim.Adamax}[settings.optimiser]
    return kind(parameters, settings.learning_rate)
