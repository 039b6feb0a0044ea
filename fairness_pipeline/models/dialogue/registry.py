"""Architectures by name; torch and transformers are imported only when one of theirs is used."""

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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
    """Makes a model ready in `folder`: trains it, going on from what is there, or finds out which one it is.

    Args:
        specification: The model's file.
        dialogues: What it is trained on, if it is.
        folder: Where it is made.
        seed: Of all draws.
        progress: Told how far it is.
        options: What only some architectures take: `penalty` (those trained here), `dropout` (`causal_lm`).

    Returns:
        Figures of the model.
    """
    use_threads(specification.threads)
    return _module(specification).prepare(specification, dialogues, folder, seed, progress, **options)


@runtime_checkable
class Examined(Protocol):
    """A responder that can look at itself: whether its answers are worth judging."""

    def examination(self) -> dict[str, Any]:
        """Figures for the card of its responses."""


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The model that `prepare` made ready in `folder`; `work` keeps what it answers until all is answered."""
    use_threads(specification.threads)
    return _module(specification).responder(specification, folder, work, seed)


def perplexity(
    specification: ModelSpecification, folder: Path, dialogues: pa.Table, known: Vocabulary, left_out: Collection[str]
) -> float:
    """Of a model that writes word by word (`seq2seq`), on the words of another; see there."""
    use_threads(specification.threads)
    value: float = _module(specification).perplexity(specification, folder, dialogues, known, left_out)
    return value


def context_vectors(specification: ModelSpecification, folder: Path, contexts: list[str]) -> Any:
    """What the model in `folder` makes of contexts before it answers (`seq2seq`, `retrieval`): a tensor, a row each."""
    use_threads(specification.threads)
    return _module(specification).context_vectors(specification, folder, contexts)


def _module(specification: ModelSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.dialogue.{ARCHITECTURES[specification.architecture].module}")
