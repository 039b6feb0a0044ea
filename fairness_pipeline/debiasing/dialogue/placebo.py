"""The placebo of Debiased-Chat: the same game, whose discriminators are told groups drawn at random.

G gets as many updates against an adversary as there, tested, ended and kept by the same rule, and nothing that could
tell the groups. A gap closes, too, where a model is pushed until it forgets what it answered to whom: what
Debiased-Chat does beyond this its adversary's aim does. D2 learns little from such groups, so that the push is the
weaker one.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue import debiased_chat
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Trains the base on; settings, figures and errors are those of Debiased-Chat."""
    return debiased_chat.debias(task, shuffled=True)
