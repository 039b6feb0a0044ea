"""Debiasing methods of language models by name; torch is imported only when one is used."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pydantic

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.lexicons.stereotypes import Lexicon
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.models.specification import Rate

_Several = Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)]
_Weights = Annotated[tuple[Rate, ...], pydantic.Field(min_length=1)]


class FineTuning(Specification):
    """Plain language modelling on more phrases (`cda`), or on the same (`plain`); the paper's, where it says."""

    batch: Positive = 8
    """Phrases of a step."""
    epochs: Positive = 2
    """Passes over the phrases."""
    learning_rate: Rate = 5e-5
    """At the start; it falls to 0 in a straight line."""


class LossGrid(Specification):
    """A debiasing loss; of lists every combination is tried, and the highest p on the split `dev` is kept."""

    batch: _Several = (4, 8, 16)
    """Phrases of a step."""
    accumulation: _Several = (1, 5, 8)
    """Steps between two updates."""
    lambda_lm: _Weights = (0.001, 0.01)
    """Weight of language modelling in phrases with a listed term."""
    lambda_d: _Weights = (10, 50, 100)
    """Weight of the debiasing loss there."""
    epochs: Positive = 2
    """Passes over the phrases."""
    learning_rate: Rate = 5e-5
    """At the start; it falls to 0 in a straight line."""
    dev_references: Positive = 200
    """References whose perplexity stands beside each p."""


class HardDebiasingGrid(LossGrid):
    """The same, and how much of what tells the groups apart is taken for their direction."""

    explained: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.5
    """Share of the pairs' squared differences that the directions of bias explain, at least."""


class Method(NamedTuple):
    """Where a method lives (a module, its class of a loss or its function of phrases), and its settings."""

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


@dataclass(frozen=True)
class Task:
    """What a method is given.

    `phrases` is as `lexicons.counterfactuals.COUNTERFACTUAL_PHRASES`; `references` are human ones. `outliers` says
    whether pairs with one are left out of the split `dev`. `base` is the folder of the model that is debiased, `folder`
    where the debiased one goes.
    """

    model: LanguageModelSpecification
    lexicon: Lexicon
    phrases: pa.Table
    references: list[str]
    base: Path
    folder: Path
    seed: int
    outliers: bool = True
    progress: Progress | None = None


def check_method(name: Any, path: Path) -> Method:
    """The method `name`; raises FairnessError, naming the file, if there is none."""
    if not isinstance(name, str) or name not in METHODS:
        raise FairnessError(f"{path}: debiasing: expected one of {', '.join(METHODS)}, found {name!r}")
    return METHODS[name]


def debias(task: Task) -> dict[str, Any]:
    """Makes the debiased model in the task's folder, going on from what is there; gives its figures."""
    from fairness_pipeline.debiasing.language import training

    method = METHODS[str(task.model.debiasing)]
    own = getattr(import_module(f"fairness_pipeline.debiasing.language.{method.module}"), method.name)
    settings = method.settings.model_validate(task.model.settings or {})
    if isinstance(settings, LossGrid):
        loss = own(settings.explained) if isinstance(settings, HardDebiasingGrid) else own()
        return training.search(task, loss, settings)
    assert isinstance(settings, FineTuning)
    return training.fine_tuned(task, own(task.phrases, task.lexicon), settings)
