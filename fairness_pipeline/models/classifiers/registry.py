"""Classifiers by architecture. torch and transformers are only imported if an architecture needs them."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.models.classifiers.architectures import ARCHITECTURES
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.models.loading import scorer_of
from fairness_pipeline.workspace.distinct import Scorer

if TYPE_CHECKING:
    from fairness_pipeline.models.classifiers.network import TextNetwork, Tokens


def new_tokens(specification: ClassifierSpecification, texts: Sequence[str]) -> "Tokens":
    """The tokens of a classifier before training."""
    use_threads(specification.threads)
    tokens: Tokens = _module(specification).new_tokens(specification, texts)
    return tokens


def tokens_of(specification: ClassifierSpecification, folder: Path) -> "Tokens":
    """The tokens of a classifier that was trained in `folder`."""
    use_threads(specification.threads)
    tokens: Tokens = _module(specification).tokens_of(specification, folder)
    return tokens


def new_network(specification: ClassifierSpecification, tokens: "Tokens") -> "TextNetwork":
    """A classifier before training, on its device. Torch draws its random weights."""
    from fairness_pipeline.models.devices import to_device

    network: TextNetwork = _module(specification).network(specification, tokens)
    return to_device(network, specification.device)


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> Scorer:
    """The scorer of a classifier that is not trained here. It gives a column `probability` of the positive class, and
    keeps an endpoint's answers in `work` until they are complete.
    """
    load = partial(_scorer, specification, work, seed)
    return scorer_of(load, ARCHITECTURES[specification.architecture].libraries, specification)


def _scorer(specification: ClassifierSpecification, work: Path, seed: int) -> Scorer:
    use_threads(specification.threads)
    loaded: Scorer = _module(specification).scorer(specification, work, seed)
    return loaded


def _module(specification: ClassifierSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.classifiers.{ARCHITECTURES[specification.architecture].module}")
