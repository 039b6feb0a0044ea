"""The control of CDA: the dialogues that it would swap are added as they stand.

The model is trained as often, on as many dialogues of the same kind. What this changes more training changes.
"""

from typing import Any

from fairness_pipeline.debiasing.counterpart_data_augmentation import train_on_more
from fairness_pipeline.debiasing.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Trains the model on the dialogues, those that hold a listed word twice; figures and errors are those of CDA."""
    return train_on_more(task, swap=False)
