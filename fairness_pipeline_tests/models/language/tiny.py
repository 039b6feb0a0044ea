"""Small GPT-2s with a vocabulary of their own, trained without downloads."""

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
    """Trains a model in `folder`, and returns its specification."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = specification(**changes)
    registry.prepare(spec, TEXTS, folder, 1)
    return spec


def causal(folder: Path) -> LanguageModelSpecification:
    return LanguageModelSpecification.model_validate(
        {"architecture": "causal_lm", "huggingface": {"name": str(folder)}}
    )
