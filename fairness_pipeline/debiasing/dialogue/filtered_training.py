"""Filtered training: continues the base by L_MLE, with unbiased replies only where a message names a group.

Liu 2022 (3.2.2.1) calls an utterance biased that is offensive, clearly positive or clearly negative, or holds an
attribute word, and trains the autoencoder of Debiased-Chat on the others. Here this filter is the method: replies to
messages that name one group are learnt if they are unbiased. Messages that name nobody are learnt as before, and there
is no adversary. Neither group gets the content of biased replies.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue import maximum_likelihood
from fairness_pipeline.debiasing.dialogue.registry import Task


def debias(task: Task) -> dict[str, Any]:
    """Continues the base's training; settings, tests, stopping rule, figures and errors are those of `mle`."""
    return maximum_likelihood.debias(task, taught="unbiased")
