"""A control of filtered training: leaves out as many replies, drawn at random.

Its effect is due to the number of dialogues that are left out, and not to which.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue import maximum_likelihood
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Continues the base's training; settings, tests, stopping rule, figures and errors are those of `mle`."""
    return maximum_likelihood.debias(task, taught="random")
