"""Trains a dialogue model with the shared loop: vocabulary, turns, batches, figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import nn

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.devices import to_device
from fairness_pipeline.models.dialogue.specification import ModelSpecification, RetrievalSizes, Seq2SeqSizes
from fairness_pipeline.models.training import Penalty, Trainer
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary

PenaltyOf = Callable[[nn.Embedding, Callable[[str], list[int]]], Penalty]
"""Makes a term of the loss from a model's word embedding and a function that gives a text's rows (or none)."""


def train_on_dialogues(
    build: Callable[[int], nn.Module],
    specification: ModelSpecification,
    sizes: Seq2SeqSizes | RetrievalSizes,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    penalty: PenaltyOf | None = None,
) -> tuple[Vocabulary, dict[str, Any]]:
    """Trains a model on the `train` split and stops early on the `valid` split. A killed run is resumed.

    Args:
        build: Makes the model for a vocabulary of the given size.
        specification: The model's file.
        sizes: The section of the file with `vocabulary` and `longest`.
        dialogues: Columns `context`, `response`, `split`.
        folder: Where checkpoints, weights and vocabulary are written.
        seed: The seed of the weights, the order of the dialogues and the dropout.
        progress: Called with the number of batches done, out of all allowed epochs.
        penalty: A term of the loss on the model's `embedding`.

    Returns:
        The vocabulary, and figures: dialogues, known words, parameters, epochs, validation perplexities.

    Raises:
        FairnessError: there are no dialogues, or a loss is not a finite number.
    """
    turns = {name: turns_of(dialogues, name) for name in ("train", "valid")}
    vocabulary = Vocabulary.build((text for side in turns["train"] for text in side), sizes.vocabulary)
    vocabulary.save(folder / VOCABULARY)
    train, valid = (EncodedDialogues.of_texts(*turns[n], vocabulary, sizes.longest) for n in ("train", "valid"))
    torch.manual_seed(seed)
    model = to_device(build(len(vocabulary)), specification.device)
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
    penalty: Penalty | None,
) -> dict[str, Any]:
    """Trains as the model's file says, and returns the figures. Arguments and errors are those of `Trainer`."""
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
