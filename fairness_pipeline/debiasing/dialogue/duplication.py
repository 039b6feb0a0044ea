"""The control of CDA: the dialogues that it would swap are added as they stand.

The model is trained by the same rule on as many dialogues, so that an epoch has as many updates; of either the best
epoch is kept. What this changes more training changes, and the double weight of dialogues that name a group, which may
widen a gap. What CDA does beyond it the swap does (and, to a ranker, the candidates that the swap adds).
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue.counterpart_data_augmentation import train_on_more
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Trains the model on the dialogues, those that hold a listed word twice; figures and errors are those of CDA."""
    return train_on_more(task, swap=False)
