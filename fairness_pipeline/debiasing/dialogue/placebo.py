"""The placebo of Debiased-Chat: the same game, whose discriminators get groups drawn at random.

G gets as many updates against an adversary, by the same rule of tests, stopping and keeping, but no information about
the groups. A gap also closes where a model is pushed until it forgets what it answered to whom: only the further effect
of Debiased-Chat is due to its adversary's aim. D2 learns little from such groups, so that its push is weaker.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue import debiased_chat
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Continues the base's training; settings, figures and errors are those of Debiased-Chat."""
    return debiased_chat.debias(task, shuffled=True)
