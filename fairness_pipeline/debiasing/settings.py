"""What `settings` of a debiased model's file may say, method by method."""

from typing import Annotated, Self

import pydantic

from fairness_pipeline.models.specification import Rate
from fairness_pipeline.yaml_files import Positive, Specification

Several = Annotated[int, pydantic.Field(ge=2)]
Coefficient = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class NoSettings(Specification):
    """Of a method that has none."""


class WordEmbeddingRegularization(Specification):
    """`k` of the regularisation term: 0.5 in Liu et al. 2020 (section 4.2), 0.25 in Liu 2022 (section 3.3.3.1)."""

    k: Rate = 0.5


class Disentanglement(Specification):
    """The autoencoder of Liu 2022, section 3.3.2.1, with the thesis's values as defaults.

    `unbiased` and `semantic` are the widths of f(u) and f(s); `k1` to `k4` weigh the losses of the discriminators D1 to
    D4; `held_out` utterances are kept for the test. The thesis names no optimiser: it is Adam here, whose rate falls
    linearly to 0 for the autoencoder and stays the same for the adversaries D2 and D3, so that they keep up.
    """

    hidden: Positive = 1000
    embedding: Positive = 300
    unbiased: Several = 200
    semantic: Several = 800
    k1: Coefficient = 10.0
    k2: Coefficient = 1.0
    k3: Coefficient = 1.0
    k4: Coefficient = 3.0
    epochs: Positive = 20
    batch: Positive = 32
    learning_rate: Rate = 0.001
    adversary_learning_rate: Rate = 0.001
    held_out: Several = 5000

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
    g_steps: Positive = 2
    g_teach_steps: Positive = 1
    k0: Coefficient = 1.0
    k1: Coefficient = 1.0
    k2: Coefficient = 1.0
    learning_rate: Rate = 0.001
    batch: Positive = 32
    discriminator: Positive = 256
    clipping: Rate = 1.0
    temperature: Rate = 1.0
    cooling: Annotated[float, pydantic.Field(gt=1)] = 1.1
    coldest: Rate = 0.3
    every: Positive = 200
    patience: Positive = 10
    pairs: Positive = 30_000
    alpha: Annotated[float, pydantic.Field(gt=0, lt=1)] = 0.05


class DebiasedChat(Specification):
    """Both parts of Debiased-Chat."""

    disentanglement: Disentanglement = Disentanglement()
    adversarial: Adversarial = Adversarial()
