"""A control of filtered training: as many replies are left out, drawn at random.

What this changes fewer dialogues change, and not which.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue import maximum_likelihood
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Trains the base on; settings, tests, end, figures and errors are those of `mle`."""
    return maximum_likelihood.debias(task, taught="random")
