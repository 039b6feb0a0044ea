"""The training loop: token-budget batches, early stopping, and checkpoints from which a killed run resumes exactly."""

import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.checkpoints import Due, load_training, save_training, weights_of
from fairness_pipeline.models.devices import halved
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.models.watching import Watch

_EVALUATION_TOKENS = 8192


class Judge(NamedTuple):
    """The validation criterion for early stopping; less is better."""

    name: str
    of: Callable[[nn.Module, EncodedDialogues], float]


_TINY = 1e-6
"""Added to a norm before the division, as in torch's own clipping."""


class Penalty(NamedTuple):
    """A term that is added to the mean loss of every batch, but not to the perplexity.

    Attributes:
        of: Computes it.
        weight: Its weight.
        clipped_apart: Whether its gradient is clipped by itself and weighted afterwards, as clipping would cancel the
            weight. Clipped together, a term whose gradient stays large would leave little of the step to the loss.
    """

    of: Callable[[], torch.Tensor]
    weight: float = 1.0
    clipped_apart: bool = False


class Trainer:
    """Trains a model whose `forward(batch)` gives the batch's summed loss and its number of terms (words, responses).

    One file, `training.safetensors`, is replaced atomically and holds everything that the next step depends on, with
    the best weights so far: a resumed run equals an uninterrupted one.

    Args:
        model: The model on its device, with its first weights.
        settings: The optimiser and its schedule.
        folder: Where checkpoint and weights are written.
        seed: The seed of the order of the examples.
        penalty: Added to the loss of every batch.
        judge: The criterion for early stopping; the perplexity by default.
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

    def fit(
        self, train: EncodedDialogues, valid: EncodedDialogues | None, progress: Progress | None = None
    ) -> list[float]:
        """Trains until the judge finds no better model in `patience` epochs, or `epochs` are over.

        The weights of the best epoch (of the last one without validation) are written to `folder`; if they exist
        already, nothing is trained. Without `valid` all epochs are trained.

        Returns:
            The judge's value after each epoch (the perplexity by default); without validation the mean training loss.

        Raises:
            FairnessError: there is nothing to train on, or a loss is not a finite number.
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

    def _train_on(self, examples: EncodedDialogues, indices: np.ndarray) -> None:
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
        """Adds the penalty's gradient, clipped by itself and then weighted; returns its norm before clipping."""
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        computed = torch.autograd.grad(penalty.of(), trainable, allow_unused=True)
        gradients = {
            parameter: gradient for parameter, gradient in zip(trainable, computed, strict=True) if gradient is not None
        }
        norm = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients.values()])
        )
        share = penalty.weight * (self.settings.clipping / (norm + _TINY)).clamp(max=1.0)
        for parameter, gradient in gradients.items():
            gradient = gradient * share
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return norm

    def _gradients(self, examples: EncodedDialogues, parts: list[np.ndarray]) -> None:
        """Computes the gradients of a batch's mean loss, part by part if it does not fit into a GPU's memory."""
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
        """Refuses a loss that is not finite, before anything is saved."""
        self._add(self._watch.collect(self._where))
        self._norms.collect(self._where)

    def _add(self, sums: list[float]) -> None:
        self.summed, self.terms = self.summed + sums[0], self.terms + int(sums[1])

    def _end_epoch(self, valid: EncodedDialogues | None) -> None:
        self._look()
        value = self.summed / max(self.terms, 1) if valid is None else self.judge.of(self.model, valid)
        if valid is None or not self.history or value < min(self.history):
            self.best = weights_of(self.model)
        else:
            for group in self.optimiser.param_groups:
                group["lr"] *= self.settings.decay
        self.history.append(value)
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
        restored = load_training(self.folder / self.CHECKPOINT, {"model": self.model}, {"model": self.optimiser})
        if restored:
            kept, position = restored
            self.best = kept["best"]
            for name, value in position.items():
                setattr(self, name, value)


@contextmanager
def _calculating(device: torch.device, precision: str) -> Iterator[None]:
    """Calculates in bfloat16 if this is the `precision`; the weights keep their 32 bits.

    oneDNN's LSTM in bfloat16 needs a processor with bfloat16 instructions, and fails on others. PyTorch's own LSTM
    replaces it there: the result is the same, some seven times slower than float32.
    """
    with ExitStack() as stack:
        if precision == "bfloat16":
            stack.enter_context(torch.autocast(device.type, torch.bfloat16))
            if device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
                # The next line also sets other flags, which warn.
                stack.enter_context(warnings.catch_warnings(action="ignore"))
                stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        yield


def perplexity(model: nn.Module, dialogues: EncodedDialogues) -> float:
    """exp of the mean loss; of a generative model over the words of the responses and their end marks."""
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
    """The perplexity of a summed loss in nats; finite for any finite loss."""
    return math.exp(min(total / count, 700.0))


def _optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    parameters = model.parameters()
    if settings.optimiser == "sgd":
        return torch.optim.SGD(parameters, settings.learning_rate, momentum=settings.momentum)
    kind = {"adam": torch.optim.Adam, "adamax": torch.optim.Adamax}[settings.optimiser]
    return kind(parameters, settings.learning_rate)
