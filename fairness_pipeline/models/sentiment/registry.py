"""Systems by architecture. torch and transformers are only imported if an architecture needs them."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.models.loading import scorer_of
from fairness_pipeline.models.sentiment.architectures import ARCHITECTURES
from fairness_pipeline.models.sentiment.specification import SystemSpecification
from fairness_pipeline.workspace.distinct import Scorer


def prepare(
    specification: SystemSpecification, tweets: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Trains a system in `folder` on tweets of `AFFECT_TWEETS`.

    Returns:
        Figures of the system.
    """
    use_threads(specification.threads)
    return _module(specification).prepare(specification, tweets, folder, seed, progress)


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The scorer of the system, from `folder` if it was trained. It gives one column of scores in 0..1 for each affect.

    `work` holds the answers of an endpoint until they are complete.
    """
    load = partial(_scorer, specification, folder, work, seed)
    return scorer_of(load, ARCHITECTURES[specification.architecture].libraries, specification)


def _scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    use_threads(specification.threads)
    loaded: Scorer = _module(specification).scorer(specification, folder, work, seed)
    return loaded


def _module(specification: SystemSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.sentiment.{ARCHITECTURES[specification.architecture].module}")
