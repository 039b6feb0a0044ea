"""The inputs of a debiasing method of language models, and its settings in a profile."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pydantic

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.lexicons.stereotypes import Lexicon
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.models.specification import Rate

_Several = Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)]
_Weights = Annotated[tuple[Rate, ...], pydantic.Field(min_length=1)]


class FineTuning(Specification):
    """Plain language modelling on more phrases (`cda`) or the same (`plain`); the paper's values, where given."""

    batch: Positive = 8
    """Phrases of a step."""
    epochs: Positive = 2
    """Passes over the phrases."""
    learning_rate: Rate = 5e-5
    """At the start; it falls to 0 in a straight line."""


class LossGrid(Specification):
    """A debiasing loss. Every combination is tried; the one with the highest p on the split `dev` is kept."""

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
    """References of which the perplexity is reported beside each p."""


class HardDebiasingGrid(LossGrid):
    """The same grid, and how many directions of bias are removed."""

    explained: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.5
    """Share of the pairs' squared differences that the directions of bias explain, at least."""


@dataclass(frozen=True)
class Task:
    """The inputs of a method.

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
