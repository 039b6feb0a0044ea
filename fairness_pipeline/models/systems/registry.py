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
"""Where each architecture lives: a module with `scorer`, and `prepare` if it is trained. Files need none."""


def prepare(
    specification: SystemSpecification, tweets: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Trains a system in `folder`.

    Args:
        specification: The system's file, which says that it is trained.
        tweets: What it is trained on, as `corpora.affect_tweets.AFFECT_TWEETS`.
        folder: Where it is made.
        seed: Of all draws.
        progress: Told how far it is.

    Returns:
        Figures of the system.
    """
    return _module(specification).prepare(specification, tweets, folder, seed, progress)


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The system, trained in `folder` if it is trained; `work` keeps what it has scored until all is."""
    return _module(specification).scorer(specification, folder, work, seed)


def _module(specification: SystemSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.systems.{_MODULES[specification.architecture]}")
