"""A control of Debiased-Chat: continues its base by the same steps on the same dialogues, without the adversary.

Tests, stopping and the choice of the kept model follow the same rule, so that the kept models may have had more or
fewer updates. The control shows the effect of more training. A larger effect of Debiased-Chat need not be due to the
adversary's aim: under any adversary a model varies more from test to test, and the best of its tests is better.
"""

from typing import Any

import numpy as np

from fairness_pipeline.debiasing.dialogue.continued_training import Course, Dialogues, Step, Taught, train_on
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import Continued


class MaximumLikelihood(Course):
    """The generator's steps of algorithm 1 on L_MLE alone, with the same weight in each (`k0`)."""

    def steps(self, data: Dialogues, random: np.random.Generator, iteration: int) -> list[Step]:
        """The generator's steps of an iteration."""
        s = self.settings
        gendered = Step("G", lambda: self.teaching_step(data.taught(random, s.batch), s.k0))
        neutral = Step("G (teaching)", lambda: self.teaching_step(data.neutral(random, s.batch)))
        return [gendered] * s.g_steps + [neutral] * s.g_teach_steps


def debias(task: Task, taught: Taught = "all") -> dict[str, Any]:
    """Continues the base's training; tests, stopping rule, figures and errors are those of Debiased-Chat."""
    settings = Continued.model_validate(task.model.settings or {})
    return train_on(task, settings, lambda model: MaximumLikelihood(settings, model), taught)
