"""Dialogue models by architecture. torch and transformers are only imported if an architecture needs them."""

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.models.dialogue.architectures import ARCHITECTURES
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline.workspace.distinct import Scorer


def prepare(
    specification: ModelSpecification,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Prepares a model in `folder`: trains it (a killed training is resumed), or records which model it is.

    `options` are `penalty` (of models trained here) and `dropout` (of `causal_lm`).

    Returns:
        Figures of the model.
    """
    use_threads(specification.threads)
    return _module(specification).prepare(specification, dialogues, folder, seed, progress, **options)


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The responder of the model that `prepare` made in `folder`. `work` holds its answers until they are complete."""
    use_threads(specification.threads)
    return _module(specification).responder(specification, folder, work, seed)


def perplexity(
    specification: ModelSpecification, folder: Path, dialogues: pa.Table, known: Vocabulary, left_out: Collection[str]
) -> float:
    """The perplexity of a model that writes word by word (`seq2seq`), on the words of another model; see `seq2seq`."""
    use_threads(specification.threads)
    value: float = _module(specification).perplexity(specification, folder, dialogues, known, left_out)
    return value


def context_vectors(specification: ModelSpecification, folder: Path, contexts: list[str]) -> Any:
    """The vectors that a model (`seq2seq`, `retrieval`) encodes contexts into before answering: one row each."""
    use_threads(specification.threads)
    return _module(specification).context_vectors(specification, folder, contexts)


def _module(specification: ModelSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.dialogue.{ARCHITECTURES[specification.architecture].module}")
