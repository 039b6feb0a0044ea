"""Architectures by name; torch is imported only when one is used."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.models.responding import Responder
from fairness_pipeline.models.specification import ModelSpecification
from fairness_pipeline.progress import Progress

_ARCHITECTURES = {"seq2seq": ("fairness_pipeline.models.seq2seq", "Seq2SeqResponder")}
"""Where each architecture lives: a module with `train`, and the name of its responder."""


def train(
    specification: ModelSpecification, dialogues: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Trains the model of `specification` into `folder`, going on from what is there; returns its training figures."""
    module, _ = _ARCHITECTURES[specification.architecture]
    return import_module(module).train(specification, dialogues, folder, seed, progress)


def responder(specification: ModelSpecification, folder: Path) -> Responder:
    """The trained model in `folder`, ready to answer."""
    module, name = _ARCHITECTURES[specification.architecture]
    return getattr(import_module(module), name)(folder, specification)
