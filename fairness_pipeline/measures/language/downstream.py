"""The cost of debiasing a language model: perplexity, state tracking, responses (Barikeri et al. 2021, section 3.2)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
from pydantic import Field

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.pretrained import positions_of
from fairness_pipeline.models.specification import Rate
from fairness_pipeline.statistics.comparison import COMPARISON

DOWNSTREAM = schema(
    metric=(pa.string(), "what is measured"),
    value=(pa.float64(), "of the metric"),
    **fields(COMPARISON, "unit", "n"),
    signature=(pa.string(), "how the number was made"),
    published_value=optional(pa.float64(), "what the paper prints"),
)
"""`signature` says how the number was computed."""


class Tuning(Specification):
    """How a model is tuned for a task. The defaults are the paper's settings if it states them."""

    batch: Positive
    """Examples per step."""
    epochs: Positive = 1
    """Passes over the examples."""
    learning_rate: Rate = 5e-5
    """The initial learning rate. It falls linearly to 0."""
    longest: Positive = 128
    """Tokens of an example. Longer examples are cut at the front."""
    maximum: Positive = 20_000
    """The maximum number of examples of a split: right values, or contexts."""


class StateTrackingSettings(Tuning):
    """Settings of dialogue state tracking."""

    batch: Positive = 48
    """Examples per step."""


class ResponseSettings(Tuning):
    """Settings of response generation."""

    batch: Positive = 80
    """Examples per step."""
    top_k: Positive = 50
    """The number of likeliest tokens that are drawn from."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    """The share of the probability that is drawn from."""
    max_tokens: Positive = 30
    """The maximum number of tokens of an answer."""


class Given(NamedTuple):
    """A model on its device, its tokenizer, a folder for unfinished work, the seed, and the receiver of the
    progress."""

    model: Any
    tokenizer: Any
    folder: Path
    seed: int
    progress: Progress | None = None

    def longest(self, length: int) -> int:
        """The wanted length, or the longest input of the model if that is shorter."""
        return min(length, positions_of(self.model) or length)


def rows_of(results: list[tuple[str, float, str, int, str]], published: Mapping[str, float]) -> pa.Table:
    """A table of `DOWNSTREAM` from metric, value, unit, n and signature."""
    names = DOWNSTREAM.names
    rows = [{**dict(zip(names, row, strict=False)), "published_value": published.get(row[0])} for row in results]
    return pa.Table.from_pylist(rows, schema=DOWNSTREAM)
