"""Systems by architecture; torch and transformers are imported only when one of theirs is used."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.models.systems.specification import SystemSpecification
from fairness_pipeline.progress import Progress

Scorer = Callable[[pa.Table], dict[str, np.ndarray]]
"""A table with a column `sentence` in; for each affect a score in 0..1 of each row out."""

_MODULES = {
    "vader": "vader",
    "linear_svm": "linear_svm",
    "cnn": "encoders",
    "gru": "encoders",
    "huggingface": "classifier",
    "endpoint": "asked",
}
"""Where each architecture lives: a module with `prepare` and `scorer`. Scores from a file need neither."""


def prepare(
    specification: SystemSpecification, tweets: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Makes a system ready in `folder`: trains it, or notes that there is nothing to train.

    Args:
        specification: The system's file.
        tweets: What it is trained on, as `corpora.affect_tweets.AFFECT_TWEETS`.
        folder: Where it is made.
        seed: Of all draws.
        progress: Told how far it is.

    Returns:
        Figures of the system.
    """
    return _module(specification).prepare(specification, tweets, folder, seed, progress)


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The system that `prepare` made ready in `folder`; `work` keeps what it has scored until all is."""
    return _module(specification).scorer(specification, folder, work, seed)


def _module(specification: SystemSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.systems.{_MODULES[specification.architecture]}")
