"""Dropout: the model trained as its base was, with more units dropped (Webster et al. 2020, section 5.1).

A model cannot rely on units that are dropped at random; weak correlations, as of a group with what is said of it,
suffer first.
"""

from typing import Any

from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import Dropout
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue import registry


def debias(task: Task) -> dict[str, Any]:
    """Trains the model anew on the base's dialogues, with the base's settings except the dropout.

    Raises:
        FairnessError: the base drops as many, so this would only be another seed of it.
    """
    rate = Dropout.model_validate(task.model.settings or {}).rate
    sections = {"seq2seq": task.model.seq2seq, "retrieval": task.model.retrieval}
    before = max((section.dropout for section in sections.values() if section), default=0.0)
    if before >= rate:
        raise FairnessError(
            f"settings.rate: '{task.model.base}' drops {before:g} of its units, so that 'dropout' with {rate:g} "
            "drops no more; give it a larger rate"
        )
    sizes = {name: section.model_copy(update={"dropout": rate}) for name, section in sections.items() if section}
    model = task.model.model_copy(update=sizes)
    options = {} if sizes else {"dropout": rate}  # a pretrained model brings its own rates
    return registry.prepare(model, task.dialogues, task.folder, task.seed, task.progress, **options)
