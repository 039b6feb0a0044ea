"""The control of CDA: adds, unchanged, the dialogues that CDA would swap.

The model is trained by the same rule on as many dialogues, so that an epoch has as many updates; the best epoch is kept
in both. The control shows the effect of more training and of the double weight of dialogues that name a group, which
may widen a gap. Any further effect of CDA is due to the swap (and, for a ranker, to the candidates that the swap adds).
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue.counterpart_data_augmentation import train_on_more
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Trains the model on the dialogues, those that hold a listed word twice; figures and errors are those of CDA."""
    return train_on_more(task, swap=False)
