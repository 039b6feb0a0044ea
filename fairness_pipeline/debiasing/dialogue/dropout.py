"""Dropout: the model trained as its base was, with more units dropped (Webster et al. 2020, section 5.1).

What is dropped at random cannot be relied on: weak correlations, as of a group with what is said of it, suffer first.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import Dropout
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue import registry


def debias(task: Task) -> dict[str, Any]:
    """Trains the model anew on the base's dialogues, with the base's settings but for the dropout.

    Raises:
        FairnessError: the base drops as many: this would be another seed of it.
    """
    rate = Dropout.model_validate(task.model.settings or {}).rate
    own = {"seq2seq": task.model.seq2seq, "retrieval": task.model.retrieval}
    before = max((found.dropout for found in own.values() if found), default=0.0)
    if before >= rate:
        raise FairnessError(
            f"settings.rate: '{task.model.base}' drops {before:g} of its units, so that 'dropout' with {rate:g} "
            "drops no more; give it a larger rate"
        )
    sizes = {name: found.model_copy(update={"dropout": rate}) for name, found in own.items() if found}
    model = task.model.model_copy(update=sizes)
    options = {} if sizes else {"dropout": rate}  # a pretrained model brings its own rates
    return registry.prepare(model, task.dialogues, task.folder, task.seed, task.progress, **options)
