"""Dropout: the model trained as its base was, with more units dropped (Webster et al. 2020, section 5.1).

What is dropped at random cannot be relied on: weak correlations, as of a group with what is said of it, suffer first.
"""

from typing import Any

from fairness_pipeline.debiasing.registry import Task
from fairness_pipeline.debiasing.settings import Dropout
from fairness_pipeline.models.dialogue import registry


def debias(task: Task) -> dict[str, Any]:
    """Trains the model anew on the base's dialogues, with the base's settings but for the dropout."""
    rate = Dropout.model_validate(task.model.settings or {}).rate
    return registry.prepare(task.model, task.dialogues, task.folder, task.seed, task.progress, dropout=rate)
