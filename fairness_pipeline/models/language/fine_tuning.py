"""Trains causal language models with the library's `Trainer`: checkpoints, resuming, and any loss."""

import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from torch.nn.functional import cross_entropy

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.models.checkpoints import Due
from fairness_pipeline.models.devices import check_room_to_train, halved
from fairness_pipeline.models.watching import Watch

IGNORED = -100
Loss = Callable[[Any, dict[str, torch.Tensor]], torch.Tensor]
"""Computes the loss of a model on a batch."""

_STATE = "trainer_state.json"
_FOLDER = "trainer"
_CHECKPOINT_SECONDS = 30.0


class Recipe(NamedTuple):
    """Epochs, batch size, steps between two updates, and learning rate (which falls to 0)."""

    epochs: int
    batch: int
    accumulation: int
    learning_rate: float


def language_modelling(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean cross-entropy of a batch's tokens, in nats."""
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
    targets = batch["labels"][:, 1:]
    predicted = targets != IGNORED
    return cross_entropy(logits[predicted].float(), targets[predicted])


def padded(examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Pads examples on the right to one batch; they have `input_ids` and, if they differ, `labels`."""
    longest = max(len(example["input_ids"]) for example in examples)

    def filled(name: str, value: int) -> torch.Tensor:
        rows = [example.get(name, example["input_ids"]) for example in examples]
        return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])

    present = [[1] * len(example["input_ids"]) + [0] * (longest - len(example["input_ids"])) for example in examples]
    return {
        "input_ids": filled("input_ids", 0),
        "labels": filled("labels", IGNORED),
        "attention_mask": torch.tensor(present),
    }


def train(
    model: Any,
    examples: Sequence[dict[str, Any]],
    recipe: Recipe,
    folder: Path,
    seed: int,
    *,
    loss: Loss = language_modelling,
    collate: Callable[[Sequence[dict[str, Any]]], dict[str, Any]] = padded,
    progress: Progress | None = None,
    note: str = "",
) -> None:
    """Trains the model in place with Adam (beta 0.9 and 0.999, epsilon 1e-8). A killed run is resumed.

    If a GPU runs out of memory, the batch is halved and the accumulation doubled. The updates stay the same but take
    more steps; only the draws of dropout differ.

    Args:
        model: A model of the `transformers` library, on its device.
        examples: The examples, which `collate` makes batches from.
        recipe: The settings of the training.
        folder: Holds the checkpoints during the training.
        seed: The seed of the order of the examples and of the dropout.
        loss: The loss to minimise.
        collate: Makes a batch from examples.
        progress: Called with the number of steps done, out of all steps.
        note: Passed on to `progress`.

    Raises:
        FairnessError: there is nothing to train on, the model is too large, or a loss is not a finite number.
    """
    if not examples:
        raise FairnessError("nothing to train on: the split 'train' is empty")
    check_room_to_train(model)
    logging.getLogger("transformers.trainer").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()  # the caller shows its own
    checkpoints = folder / _FOLDER
    first = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
    while True:
        losses = Watch("training loss", None)
        trainer = _Trainer(
            loss=loss,
            model=model,
            args=_arguments(recipe, checkpoints, seed, on_cpu=model.device.type == "cpu"),
            train_dataset=list(examples),
            data_collator=collate,
            callbacks=[_Callback(progress, note, losses)],
            losses=losses,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        try:
            trainer.train(resume_from_checkpoint=_last(checkpoints))
            losses.collect("the last steps")
            break
        except torch.OutOfMemoryError:
            recipe = recipe._replace(batch=halved(recipe.batch), accumulation=2 * recipe.accumulation)
            model.load_state_dict(first)  # repeats all steps, or those since the last checkpoint
    shutil.rmtree(checkpoints, ignore_errors=True)


def _arguments(recipe: Recipe, folder: Path, seed: int, *, on_cpu: bool) -> transformers.TrainingArguments:
    return transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch,
        gradient_accumulation_steps=recipe.accumulation,
        learning_rate=recipe.learning_rate,
        weight_decay=0.0,
        max_grad_norm=1.0,
        lr_scheduler_type="linear",
        optim="adamw_torch",
        seed=seed % 2**31,
        use_cpu=on_cpu,
        save_strategy="no",
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=not on_cpu,
        logging_nan_inf_filter=False,  # it would read every step's loss; `Watch` checks them instead
    )


class _Trainer(transformers.Trainer):
    def __init__(self, *, loss: Loss, losses: Watch, **options: Any) -> None:
        super().__init__(**options)
        self._loss = loss
        self._losses = losses
        self.model_accepts_loss_kwargs = False  # a step's loss is a mean: divide it by the accumulated steps

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> torch.Tensor:
        value = self._loss(model, inputs)
        self._losses.add(value, f"step {self.state.global_step + 1}")
        return value


class _Callback(transformers.TrainerCallback):
    """Reports the progress of the training, and decides when to write a checkpoint."""

    def __init__(self, progress: Progress | None, note: str, losses: Watch) -> None:
        self._progress = progress
        self._losses = losses
        self._note = note
        self._due = Due(_CHECKPOINT_SECONDS)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        report(self._progress, state.global_step, state.max_steps, self._note)
        if self._due() and state.global_step < state.max_steps:
            self._losses.collect(f"step {state.global_step}")  # weights that are not finite must not be saved
            control.should_save = True
        return control


def _last(folder: Path) -> str | None:
    """The last complete checkpoint. Incomplete ones that a killed run left are deleted."""
    complete = []
    for path in folder.glob("checkpoint-*"):
        if (path / _STATE).is_file():  # written last
            complete.append(path)
        else:
            with suppress(OSError):
                shutil.rmtree(path)
    return str(max(complete, key=lambda path: int(path.name.rpartition("-")[2]))) if complete else None
