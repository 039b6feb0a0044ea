"""Small GPT-2s with a vocabulary of their own, trained without downloads."""

import atexit
import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from fairness_pipeline.models.language import registry
from fairness_pipeline.models.language.specification import LanguageModelSpecification

TEXTS = [
    "jews are greedy and loud", "christians are tall", "all jews are greedy", "christians are busy these days",
    "the phone is new", "my bike broke again", "muslims are early", "a christian is tired",
] * 12  # fmt: skip


def specification(**changes: Any) -> LanguageModelSpecification:
    return LanguageModelSpecification.model_validate(
        {
            "architecture": "gpt2",
            "gpt2": {"layers": 1, "heads": 2, "embedding": 16, "positions": 32, "vocabulary": 400},
            "fitting": {"epochs": 1, "batch": 16, "learning_rate": 0.01},
            **changes,
        }
    )


def trained(folder: Path, **changes: Any) -> LanguageModelSpecification:
    """Copies a trained model to `folder`, and returns its specification. Each process trains a model once."""
    shutil.copytree(_trained(json.dumps(changes)), folder, dirs_exist_ok=True)
    return specification(**changes)


@functools.cache
def _trained(changes: str) -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    registry.prepare(specification(**json.loads(changes)), TEXTS, folder, 1)
    return folder


def causal(folder: Path) -> LanguageModelSpecification:
    return LanguageModelSpecification.model_validate(
        {"architecture": "causal_lm", "huggingface": {"name": str(folder)}}
    )
