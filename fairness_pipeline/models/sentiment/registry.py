"""Systems by architecture; torch and transformers are imported only when one of theirs is used."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.models.sentiment.architectures import ARCHITECTURES
from fairness_pipeline.models.sentiment.specification import SystemSpecification
from fairness_pipeline.workspace.distinct import Scorer


def prepare(
    specification: SystemSpecification, tweets: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Trains a system in `folder`.

    Args:
        specification: The system's file, which says that it is trained.
        tweets: What it is trained on, as `corpora.sentiment.affect_tweets.AFFECT_TWEETS`.
        folder: Where it is made.
        seed: Of all draws.
        progress: Told how far it is.

    Returns:
        Figures of the system.
    """
    use_threads(specification.threads)
    return _module(specification).prepare(specification, tweets, folder, seed, progress)


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The system, trained in `folder` if it is trained; gives a column an affect, of scores in 0..1.

    `work` keeps what an endpoint has answered until all is.
    """
    use_threads(specification.threads)
    return _module(specification).scorer(specification, folder, work, seed)


def _module(specification: SystemSpecification) -> Any:
    return import_module(f"fairness_pipeline.models.sentiment.{ARCHITECTURES[specification.architecture].module}")
