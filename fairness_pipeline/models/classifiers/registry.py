"""Classifiers by architecture; torch and transformers are imported only when one of theirs is used."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.models.classifiers.architectures import ARCHITECTURES
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.workspace.distinct import Scorer

if TYPE_CHECKING:
    from fairness_pipeline.models.classifiers.network import TextNetwork, Tokens


def new_tokens(specification: ClassifierSpecification, texts: Sequence[str]) -> "Tokens":
    """The words that a classifier will know.

    Args:
        specification: The classifier's file.
        texts: What it is trained on.
    """
    use_threads(specification.threads)
    found: Tokens = _module(specification).new_tokens(specification, texts)
    return found


def tokens_of(specification: ClassifierSpecification, folder: Path) -> "Tokens":
    """The words that a classifier knows which was trained in `folder`."""
    use_threads(specification.threads)
    found: Tokens = _module(specification).tokens_of(specification, folder)
    return found


def new_network(specification: ClassifierSpecification, tokens: "Tokens") -> "TextNetwork":
    """A classifier before training, on its device; its random weights are torch's next draws."""
    from fairness_pipeline.models.devices import device_of

    made: TextNetwork = _module(specification).network(specification, tokens)
    return made.to(device_of(specification))


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> Scorer:
    """A classifier that is not trained here; gives a column `probability` of the positive class.

    Args:
        specification: The classifier's file.
        work: Keeps what an endpoint has answered until all is.
        seed: Sent along with each request.
    """
    use_threads(specification.threads)
    found: Scorer = _module(specification).scorer(specification, work, seed)
    return found


def _module(specification: ClassifierSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.classifiers.{ARCHITECTURES[specification.architecture].module}")
