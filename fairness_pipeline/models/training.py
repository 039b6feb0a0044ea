"""The training loop: token-budget batches, early stopping, and checkpoints from which a killed run goes on exactly."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.devices import device_of
from fairness_pipeline.models.specification import ModelSpecification, RetrievalSizes, Seq2SeqSizes, TrainingSettings
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline.progress import Progress, report

VOCABULARY = "vocabulary.txt"
"""The file of a trained model's words, in its folder."""

_EVALUATION_TOKENS = 8192


class Trainer:
    """Trains a model whose `forward(batch)` gives the batch's summed loss and what it is a sum over (words, responses).

    Everything that the next step depends on is in one file, `training.safetensors`, swapped in whole: weights, the best
    weights so far, the optimiser's state, the random state, the learning rate and the position in the data. A resumed
    run therefore equals an uninterrupted one.

    Args:
        model: On its device, with its first weights.
        settings: Optimiser and schedule.
        folder: Where checkpoint and weights go.
        seed: Of the order of the dialogues.
    """

    WEIGHTS = "model.safetensors"
    HISTORY = "history.json"
    CHECKPOINT = "training.safetensors"

    def __init__(self, model: nn.Module, settings: TrainingSettings, folder: Path, seed: int) -> None:
        self.model = model
        self.settings = settings
        self.folder = folder
        self.seed = seed
        self.optimiser = _optimiser(model, settings)
        self.epoch = self.step = 0
        self.history: list[float] = []
        self.best = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def fit(self, train: EncodedDialogues, valid: EncodedDialogues, progress: Progress | None = None) -> list[float]:
        """Trains until the validation perplexity has not improved for `patience` epochs, or `epochs` are over.

        The weights of the best epoch are left in `folder`; where they lie already, nothing is trained again.

        Returns:
            The validation perplexity after each epoch.

        Raises:
            FairnessError: no dialogues, or a loss that is not a number.
        """
        if not len(train) or not len(valid):
            raise FairnessError(
                f"nothing to train on: {len(train):,} training and {len(valid):,} validation dialogues; "
                "the corpus is too small for the profile's splits"
            )
        if (self.folder / self.WEIGHTS).exists():
            return json.loads((self.folder / self.HISTORY).read_text(encoding="utf-8"))
        self._resume()
        saved = time.monotonic()
        while not self._finished():
            batches = train.batches(self.settings.batch_tokens, self.seed + self.epoch)
            while self.step < len(batches):
                self._train_on(train, batches[self.step])
                self.step += 1
                note = f"perplexity {self.history[-1]:.2f}" if self.history else ""
                report(progress, self.epoch * len(batches) + self.step, self.settings.epochs * len(batches), note)
                if time.monotonic() - saved > self.settings.checkpoint_seconds:
                    self._save_checkpoint()
                    saved = time.monotonic()
            self._end_epoch(valid)
        self.model.load_state_dict(self.best)
        with replacing(self.folder / self.HISTORY) as path:
            path.write_text(json.dumps(self.history), encoding="utf-8")
        with replacing(self.folder / self.WEIGHTS) as path:
            save_file(self.best, path)
        (self.folder / self.CHECKPOINT).unlink(missing_ok=True)
        return self.history

    def perplexity(self, dialogues: EncodedDialogues) -> float:
        """exp of the mean loss: for a model that writes, over a response's words, its end included."""
        total, count = 0.0, 0
        device = next(self.model.parameters()).device
        self.model.eval()
        with torch.inference_mode():
            for indices in dialogues.batches(_EVALUATION_TOKENS, seed=None):
                loss, terms = self.model(dialogues.batch(indices, device))
                total += loss.item()
                count += int(terms)
        self.model.train()
        return math.exp(min(total / count, 700.0))

    def _finished(self) -> bool:
        if len(self.history) >= self.settings.epochs:
            return True
        since_best = len(self.history) - 1 - self.history.index(min(self.history)) if self.history else 0
        return since_best >= self.settings.patience

    def _train_on(self, dialogues: EncodedDialogues, indices: Any) -> None:
        self.model.train()
        batch = dialogues.batch(indices, next(self.model.parameters()).device)
        total, terms = self.model(batch)
        loss = total / terms
        if not torch.isfinite(loss):
            checkpoint = self.folder / self.CHECKPOINT if (self.folder / self.CHECKPOINT).exists() else "none yet"
            raise FairnessError(
                f"the training loss is {loss.item()} in epoch {self.epoch + 1}, batch {self.step + 1}; last good "
                f"checkpoint: {checkpoint}; lower the learning rate or the clipping"
            )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clipping)
        self.optimiser.step()

    def _end_epoch(self, valid: EncodedDialogues) -> None:
        perplexity = self.perplexity(valid)
        if not self.history or perplexity < min(self.history):
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        else:
            for group in self.optimiser.param_groups:
                group["lr"] *= self.settings.decay
        self.history.append(perplexity)
        self.epoch, self.step = self.epoch + 1, 0
        self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best/{name}": tensor for name, tensor in self.best.items()}
        state = self.optimiser.state_dict()["state"]
        for index, values in state.items():
            tensors |= {f"optimiser/{index}/{name}": t for name, t in values.items() if torch.is_tensor(t)}
        tensors["random"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random_cuda"] = torch.cuda.get_rng_state()
        position = {
            "epoch": self.epoch,
            "step": self.step,
            "history": self.history,
            "learning_rate": self.optimiser.param_groups[0]["lr"],
        }
        with replacing(self.folder / self.CHECKPOINT) as path:
            save_file(
                {name: t.contiguous().clone() for name, t in tensors.items()}, path, {"position": json.dumps(position)}
            )

    def _resume(self) -> None:
        path = self.folder / self.CHECKPOINT
        if not path.exists():
            return
        with safe_open(path, framework="pt") as checkpoint:
            position = json.loads(checkpoint.metadata()["position"])
            tensors = {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}  # noqa: SIM118 (not a mapping)
        self.model.load_state_dict({n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")})
        self.best = {n.removeprefix("best/"): t for n, t in tensors.items() if n.startswith("best/")}
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser/"):
                _, index, field = name.split("/")
                state.setdefault(int(index), {})[field] = tensor
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        for group in self.optimiser.param_groups:
            group["lr"] = position["learning_rate"]
        torch.set_rng_state(tensors["random"])
        if torch.cuda.is_available() and "random_cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random_cuda"])
        self.epoch, self.step, self.history = position["epoch"], position["step"], position["history"]


def train_on_dialogues(
    build: Callable[[int], nn.Module],
    specification: ModelSpecification,
    sizes: Seq2SeqSizes | RetrievalSizes,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Vocabulary, dict[str, Any]]:
    """Trains a model on the `train` split, stops on the `valid` split; goes on from where a killed run stopped.

    Args:
        build: Makes the model for a vocabulary of so many words.
        specification: The model's file.
        sizes: Its section with `vocabulary` and `longest`.
        dialogues: Columns `context`, `response`, `split`.
        folder: Where checkpoints, weights and vocabulary go.
        seed: Of the weights, the order of the dialogues and the dropout.
        progress: Told how many batches of the epochs allowed have passed.

    Returns:
        The vocabulary, and figures: dialogues, words known, parameters, epochs, validation perplexities.

    Raises:
        FairnessError: no dialogues, or a loss that is not a number.
    """
    assert specification.training is not None
    splits = {name: dialogues.filter(pc.equal(dialogues["split"], name)) for name in ("train", "valid")}
    turns = {name: (part["context"].to_pylist(), part["response"].to_pylist()) for name, part in splits.items()}
    vocabulary = Vocabulary.build((text for side in turns["train"] for text in side), sizes.vocabulary)
    vocabulary.save(folder / VOCABULARY)
    encoded = {name: EncodedDialogues(*sides, vocabulary, sizes.longest) for name, sides in turns.items()}
    torch.manual_seed(seed)
    model = build(len(vocabulary)).to(device_of(specification))
    history = Trainer(model, specification.training, folder, seed).fit(encoded["train"], encoded["valid"], progress)
    return vocabulary, {
        "training_dialogues": len(encoded["train"]),
        "validation_dialogues": len(encoded["valid"]),
        "vocabulary": len(vocabulary),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": len(history),
        "validation_perplexity": min(history),
        "validation_perplexities": history,
    }


def _optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    parameters = model.parameters()
    if settings.optimiser == "sgd":
        return torch.optim.SGD(parameters, settings.learning_rate, momentum=settings.momentum)
    kind = {"adam": torch.optim.Adam, "adamax": torch.optim.Adamax}[settings.optimiser]
    return kind(parameters, settings.learning_rate)
