"""What `settings` of a debiased model's file may say, method by method."""

from typing import Annotated, Self

import pydantic

from fairness_pipeline.models.specification import Rate
from fairness_pipeline.yaml_files import Positive, Specification

Several = Annotated[int, pydantic.Field(ge=2)]
Coefficient = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class NoSettings(Specification):
    """A method without settings."""


class WordEmbeddingRegularization(Specification):
    """Settings of the method `wer`."""

    k: Rate = 0.5
    """Weight of the regularisation term: 0.5 in Liu et al. 2020 (section 4.2), 0.25 in Liu 2022 (3.3.3.1)."""


class Disentanglement(Specification):
    """The autoencoder of Liu 2022, section 3.3.2.1, with the thesis's values as defaults.

    `unbiased` and `semantic` are the widths of f(u) and f(s); `k1` to `k4` weigh the losses of the discriminators D1 to
    D4; `held_out` utterances are kept for the test. The thesis names no optimiser: it is Adam here, whose rate falls
    linearly to 0 for the autoencoder and stays the same for the adversaries D2 and D3, so that they keep up.
    """

    hidden: Positive = 1000
    """Units of encoder and decoder."""
    embedding: Positive = 300
    """Width of a word."""
    unbiased: Several = 200
    """Width of f(u)."""
    semantic: Several = 800
    """Width of f(s)."""
    k1: Coefficient = 10.0
    """Weight of the loss of discriminator D1."""
    k2: Coefficient = 1.0
    """Weight of that of D2."""
    k3: Coefficient = 1.0
    """Weight of that of D3."""
    k4: Coefficient = 3.0
    """Weight of that of D4."""
    epochs: Positive = 20
    """Passes over the utterances."""
    batch: Positive = 32
    """Utterances in a step."""
    learning_rate: Rate = 0.001
    """Learning rate of the autoencoder; falls linearly to 0."""
    adversary_learning_rate: Rate = 0.001
    """Learning rate of D2 and D3."""
    held_out: Several = 5000
    """Utterances kept for the test."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.unbiased + self.semantic != self.hidden:
            raise ValueError(
                f"expected 'unbiased' and 'semantic' to add up to 'hidden': f = [f(u) : f(s)] starts the decoder, "
                f"found {self.unbiased} + {self.semantic} and {self.hidden}"
            )
        return self


class Adversarial(Specification):
    """Algorithm 1 of Liu 2022 with the values of its section 3.3.3.2 as defaults.

    `k0`, `k1`, `k2` weigh L_MLE, L_D1 and L_D2 (k0', k1' and k2' there; k0' is named and not set). The temperature of
    Gumbel-softmax is divided by `cooling` every `every` iterations until it is below `coldest`; the fairness test on at
    most `pairs` held-out pairs is taken every `every` iterations too, and training ends when it is passed or after
    `patience` tests without more passes. The thesis names neither the batch, nor the clipping of gradients, nor the
    width of D1 and D2 (`discriminator`).
    """

    d_steps: Positive = 2
    """Steps of the discriminators in an iteration."""
    g_steps: Positive = 2
    """Adversarial steps of the generator."""
    g_teach_steps: Positive = 1
    """Teacher-forced steps of the generator."""
    k0: Coefficient = 1.0
    """Weight of L_MLE (k0' in the thesis, which does not set it)."""
    k1: Coefficient = 1.0
    """Weight of L_D1."""
    k2: Coefficient = 1.0
    """Weight of L_D2."""
    learning_rate: Rate = 0.001
    """Learning rate of generator and discriminators."""
    batch: Positive = 32
    """Dialogues in a step."""
    discriminator: Positive = 256
    """Width of the discriminators."""
    clipping: Rate = 1.0
    """Largest norm of the gradient."""
    temperature: Rate = 1.0
    """Temperature of Gumbel-softmax, at the start."""
    cooling: Annotated[float, pydantic.Field(gt=1)] = 1.1
    """What the temperature is divided by."""
    coldest: Rate = 0.3
    """Below it the temperature stays."""
    every: Positive = 200
    """Iterations between two coolings, and two fairness tests."""
    patience: Positive = 10
    """Fairness tests without a better one before training ends."""
    pairs: Positive = 30_000
    """Held-out pairs of a fairness test, at most."""
    alpha: Annotated[float, pydantic.Field(gt=0, lt=1)] = 0.05
    """Level of the fairness test."""


class DebiasedChat(Specification):
    """Settings of the method `debiased_chat`."""

    disentanglement: Disentanglement = Disentanglement()
    """Settings of the autoencoder."""
    adversarial: Adversarial = Adversarial()
    """Settings of the training against the discriminators."""
