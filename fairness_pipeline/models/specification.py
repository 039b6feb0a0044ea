"""What a file of `data/models` may say."""

from typing import Annotated, Literal

import pydantic

from fairness_pipeline.yaml_files import Specification

Positive = Annotated[int, pydantic.Field(gt=0)]
Rate = Annotated[float, pydantic.Field(gt=0)]


class Seq2SeqSizes(Specification):
    """Sizes of the LSTM encoder-decoder: layers, units, embedding width, words, dropout rate, longest turn (tokens)."""

    layers: Positive
    hidden: Positive
    embedding: Positive
    vocabulary: Annotated[int, pydantic.Field(gt=4)]
    dropout: Annotated[float, pydantic.Field(ge=0, lt=1)] = 0.0
    longest: Positive = 30


class TrainingSettings(Specification):
    """How a model is trained.

    `batch_tokens` bounds a batch's padded tokens, contexts and responses together; `patience` is the number of epochs
    without a better validation perplexity before training stops; `decay` multiplies the learning rate after each such
    epoch; a checkpoint is written every `checkpoint_seconds`.
    """

    optimiser: Literal["sgd", "adam", "adamax"]
    learning_rate: Rate
    momentum: Annotated[float, pydantic.Field(ge=0, lt=1)] = 0.0
    clipping: Rate
    batch_tokens: Positive
    epochs: Positive
    patience: Positive
    decay: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.5
    checkpoint_seconds: Annotated[float, pydantic.Field(ge=0)] = 30.0


class Decoding(Specification):
    """How a model answers: greedily, so many contexts at once."""

    batch: Positive = 512


class ModelSpecification(Specification):
    """One file of `data/models`, with a profile's changes merged in."""

    architecture: Literal["seq2seq"]
    studies: tuple[Literal["dialogue_fairness"], ...]
    corpus: str
    seq2seq: Seq2SeqSizes
    training: TrainingSettings
    decoding: Decoding = Decoding()
    device: Literal["auto", "cpu", "cuda"] = "auto"
