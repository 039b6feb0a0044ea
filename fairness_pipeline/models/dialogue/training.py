"""Training a dialogue model by the loop that all share: vocabulary, turns, batches, figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import nn

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.devices import device_of
from fairness_pipeline.models.dialogue.specification import ModelSpecification, RetrievalSizes, Seq2SeqSizes
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary

Penalty = Callable[[nn.Embedding, Callable[[str], list[int]]], Callable[[], torch.Tensor]]
"""Given a model's word embedding, and what turns a text into its rows (none if it has no row), a term of the loss."""


def train_on_dialogues(
    build: Callable[[int], nn.Module],
    specification: ModelSpecification,
    sizes: Seq2SeqSizes | RetrievalSizes,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    penalty: Penalty | None = None,
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
        penalty: A term of the loss on the model's `embedding`.

    Returns:
        The vocabulary, and figures: dialogues, words known, parameters, epochs, validation perplexities.

    Raises:
        FairnessError: no dialogues, or a loss that is not a number.
    """
    turns = {name: turns_of(dialogues, name) for name in ("train", "valid")}
    vocabulary = Vocabulary.build((text for side in turns["train"] for text in side), sizes.vocabulary)
    vocabulary.save(folder / VOCABULARY)
    train, valid = (EncodedDialogues.of_texts(*turns[n], vocabulary, sizes.longest) for n in ("train", "valid"))
    torch.manual_seed(seed)
    model = build(len(vocabulary)).to(device_of(specification))
    embedding = model.embedding
    assert isinstance(embedding, nn.Embedding)
    bound = penalty(embedding, vocabulary.rows) if penalty else None
    figures = fit(model, specification, train, valid, folder, seed, progress, bound)
    return vocabulary, {"vocabulary": len(vocabulary), **figures}


def turns_of(dialogues: pa.Table, split: str) -> tuple[list[str], list[str]]:
    """The contexts and the responses of one split."""
    part = dialogues.filter(pc.equal(dialogues["split"], split))
    return part["context"].to_pylist(), part["response"].to_pylist()


def fit(
    model: nn.Module,
    specification: ModelSpecification,
    train: EncodedDialogues,
    valid: EncodedDialogues,
    folder: Path,
    seed: int,
    progress: Progress | None,
    penalty: Callable[[], torch.Tensor] | None,
) -> dict[str, Any]:
    """Trains as the model's file says, and gives the figures; arguments and errors are those of `Trainer`."""
    assert specification.training is not None
    history = Trainer(model, specification.training, folder, seed, penalty).fit(train, valid, progress)
    return {
        "training_dialogues": len(train),
        "validation_dialogues": len(valid),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": len(history),
        "validation_perplexity": min(history),
        "validation_perplexities": history,
    }
