"""Debiasing methods of language models by name; torch is imported only when one is used."""

from importlib import import_module
from typing import Any, NamedTuple

from fairness_pipeline.debiasing.language.task import FineTuning, HardDebiasingGrid, LossGrid, Task
from fairness_pipeline.foundation.yaml_files import Specification


class Method(NamedTuple):
    """A method's module, its name there (a class of a loss or a function of phrases), and its settings."""

    module: str
    name: str
    settings: type[Specification]


METHODS = {
    "lmd": Method("language_model_debiasing", "LanguageModelDebiasing", LossGrid),
    "add": Method("attribute_distance", "AttributeDistance", LossGrid),
    "hd": Method("hard_debiasing", "HardDebiasing", HardDebiasingGrid),
    "cda": Method("counterfactual_augmentation", "augmented", FineTuning),
    "plain": Method("counterfactual_augmentation", "as_they_are", FineTuning),
}


def debias(task: Task) -> dict[str, Any]:
    """Makes the debiased model in the task's folder, resuming earlier work; returns its figures."""
    from fairness_pipeline.debiasing.language import training  # imports torch

    method = METHODS[str(task.model.debiasing)]
    implementation = getattr(import_module(f"fairness_pipeline.debiasing.language.{method.module}"), method.name)
    settings = method.settings.model_validate(task.model.settings or {})
    if isinstance(settings, LossGrid):
        loss = implementation(settings.explained) if isinstance(settings, HardDebiasingGrid) else implementation()
        return training.search(task, loss, settings)
    assert isinstance(settings, FineTuning)
    return training.fine_tuned(task, implementation(task.phrases, task.lexicon), settings)
