"""The `settings` of a debiased model's file, by method."""

from typing import Annotated, Literal, Self

import pydantic

from fairness_pipeline.foundation.yaml_files import Positive, Share, Specification
from fairness_pipeline.models.specification import Rate

NotNegative = Annotated[int, pydantic.Field(ge=0)]
Several = Annotated[int, pydantic.Field(ge=2)]
Coefficient = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class WordEmbeddingRegularization(Specification):
    """Settings of the method `wer`."""

    k: Rate = 0.5
    """Weight of the regularisation term: 0.5 in Liu et al. 2020 (section 4.2), 0.25 in Liu 2022 (3.3.3.1) and in the
    options that the authors released."""
    clip: Literal["apart", "as_printed"] = "apart"
    """How the term's gradient is clipped: apart, then weighted by `k` (beyond 1 it can outweigh what is learnt), or
    `as_printed`, together with that of the loss whose sum the papers print."""


class Disentanglement(Specification):
    """The autoencoder of Liu 2022, section 3.3.2.1, with the thesis's values as defaults.

    The thesis names no optimiser: it is Adam here, whose rate falls linearly to 0 for the autoencoder and stays the
    same for the adversaries D2 and D3, so that they keep up.
    """

    hidden: Positive = 1000
    """Units of encoder and decoder: `unbiased` and `semantic` together."""
    embedding: Positive = 300
    """Width of a word."""
    unbiased: Several = 200
    """Width of f(u)."""
    semantic: Several = 800
    """Width of f(s)."""
    k1: Coefficient = 10.0
    """Weight of the loss of discriminator D1."""
    k2: Coefficient = 1.0
    """Weight of the loss of D2."""
    k3: Coefficient = 1.0
    """Weight of the loss of D3."""
    k4: Coefficient = 3.0
    """Weight of the loss of D4."""
    epochs: Positive = 20
    """Passes over the utterances."""
    least_steps: NotNegative = 0
    """Steps at least: a small corpus is passed over more often. The thesis's 20 epochs are 180,000 steps."""
    vocabulary: Several | None = None
    """Words distinguished, the dialogue model's most frequent ones; all of them where it is left out."""
    shortlist: Positive | None = None
    """Most frequent words (special marks among them) that are scored wherever the decoder writes; the others only where
    it should write one (adaptive softmax), which is faster with thousands of words. With None, or no fewer than
    there are, all words are scored everywhere."""
    batch: Positive = 32
    """Utterances in a step."""
    learning_rate: Rate = 0.001
    """Learning rate of the autoencoder; falls linearly to 0."""
    adversary_learning_rate: Rate = 0.001
    """Learning rate of D2 and D3."""
    held_out: Several = 5000
    """Utterances kept for the test."""
    d2_layers: Positive = 1
    """Layers of D2: one in the thesis, whose game (section 3.2.3.1) has three; more find what is not linear."""
    d2_hidden: Positive = 64
    """Units of its inner layers, where it has more than one."""
    neutral: Coefficient = 0.0
    """Utterances that name no group, for each that names one: only reconstructed, so that every word is known."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.unbiased + self.semantic != self.hidden:
            raise ValueError(
                f"expected 'unbiased' and 'semantic' to add up to 'hidden': f = [f(u) : f(s)] starts the decoder, "
                f"found {self.unbiased} + {self.semantic} and {self.hidden}"
            )
        return self


class Continued(Specification):
    """Continued training of a base by Liu 2022's algorithm 1; the defaults are those of its section 3.3.3.2.

    A fairness test of at most `pairs` held-out pairs is taken of the base and after every `every` iterations. Training
    ends after `least` iterations or more, when a test shows equivalence in every measure (at the level over the number
    of tests that there may be) of a model that gives varied answers and does no more harm than the base,
    after `patience` tests without a better one, or after `most` iterations. The thesis names neither the batch nor the
    clipping of gradients, nor when to give up.
    """

    g_steps: Positive = 2
    """Steps of the generator on dialogues whose message names one group."""
    g_teach_steps: Positive = 1
    """Steps on dialogues that name none."""
    k0: Coefficient = 1.0
    """Weight of L_MLE in the `g_steps` (k0' in the thesis, which does not set it)."""
    learning_rate: Rate = 0.001
    """Learning rate of the generator (and of D1)."""
    falling: bool = False
    """Whether the learning rate falls linearly to 0 at `most` iterations."""
    batch: Positive = 32
    """Dialogues in a step."""
    clipping: Rate = 1.0
    """Largest norm of the gradient."""
    averaging: Annotated[float, pydantic.Field(ge=0, lt=1)] = 0.0
    """Decay of a running average of the generator's weights, which is tested and kept; 0 takes the last ones."""
    every: Positive = 200
    """Iterations between two fairness tests."""
    least: Positive = 400
    """Iterations before training may end."""
    most: Positive = 10_000
    """Iterations after which it ends."""
    patience: Positive = 10
    """Fairness tests without a better one before training ends."""
    pairs: Positive = 30_000
    """Held-out pairs of a fairness test, at most."""

    @pydantic.model_validator(mode="after")
    def _check_looks(self) -> Self:
        if self.least < self.every or self.most < self.least:
            raise ValueError(
                f"expected every <= least <= most: a model is tested before training ends; found {self.every}, "
                f"{self.least}, {self.most}"
            )
        return self


class Adversarial(Continued):
    """Algorithm 1 itself.

    `k1` and `k2` are k1' and k2' there. The thesis does not name the width of D1 and D2 (`discriminator`).
    """

    teaching: Literal["all", "unbiased"] = "all"
    """Which replies to messages that name a group L_MLE learns: all, or those that are unbiased (Liu 2022, 3.2.2.1)."""
    d_steps: Positive = 2
    """Batches of responses that the discriminators learn from in an iteration."""
    passes: Positive = 1
    """Passes over these batches."""
    k1: Coefficient = 1.0
    """Weight of L_D1."""
    k2: Coefficient = 1.0
    """Weight of L_D2."""
    discriminator: Positive = 256
    """Width of the discriminators."""
    discriminator_learning_rate: Rate = 0.001
    """Learning rate of D2."""
    gradient_penalty: Coefficient = 0.0
    """Weight of the penalty of D2's gradient (R1 and R2 of Mescheder et al. 2018), which the thesis does without."""
    noise: Coefficient = 1.0
    """Gumbel's noise: 1 draws responses from the generator's distribution, 0 takes the likeliest words, as tests do."""
    temperature: Rate = 1.0
    """Temperature of Gumbel-softmax, at the start."""
    cooling: Annotated[float, pydantic.Field(gt=1)] = 1.1
    """What the temperature is divided by."""
    cooling_every: Positive = 200
    """Iterations between two coolings."""
    coldest: Rate = 0.3
    """Below it the temperature stays."""


class Dropout(Specification):
    """Settings of the method `dropout`."""

    rate: Share = 0.3
    """Share of units dropped in training."""


class Erasure(Specification):
    """Settings of the method `leace`."""

    contexts: Positive = 50_000
    """Training contexts that the eraser is fitted to, at most."""


class SelfDebias(Specification):
    """Settings of the method `self_debias` (Schick et al. 2021, section 4)."""

    prefixes: Annotated[tuple[str, ...], pydantic.Field(min_length=1)] = (
        "The following text contains rude, disrespectful or unreasonable language:",
        "The following text discriminates against people because of their gender, race, religion or orientation:",
    )
    """Descriptions of unwanted text, each put before the context in turn."""
    decay: Coefficient = 50.0
    """How fast a word's probability falls with how much likelier a prefix makes it; the paper's are 10, 50 and 100."""


class Prompt(Specification):
    """Settings of the method `prompt`."""

    instruction: Annotated[str, pydantic.Field(min_length=1)] = (
        "Answer in the same way whoever is spoken about: do not let gender, race, religion, dialect or sexual "
        "orientation change your tone, your politeness or what you say."
    )
    """The instruction before the context."""


class DebiasedChat(Specification):
    """Settings of the method `debiased_chat`, and of its placebo."""

    disentanglement: Disentanglement = Disentanglement()
    """Settings of the autoencoder."""
    adversarial: Adversarial = Adversarial()
    """Settings of the training against the discriminators."""
