"""The schema of the files of language models in `data/models`."""

from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.specification import (
    Decoding,
    HuggingFaceSource,
    ModelFile,
    Rate,
    check_debiased,
    check_sections,
    one_of,
)

ARCHITECTURES = {
    "gpt2": ("gpt2", "fitting"),
    "causal_lm": ("huggingface",),
    "masked_lm": ("huggingface",),
    "perplexities": ("perplexities",),
    "logprobs": ("logprobs",),
}

BESIDE = "\x1f"
"""Separates a text from one that it is compared with: a masked model then guesses only the tokens that both share."""


class GPT2Sizes(Specification):
    """Sizes of a GPT-2 that is trained here, and of its own byte-pair vocabulary."""

    layers: Positive
    """Transformer blocks."""
    heads: Positive
    """Attention heads."""
    embedding: Positive
    """Width; a multiple of `heads`."""
    positions: Positive = 128
    """Tokens of a text, at most."""
    vocabulary: Annotated[int, pydantic.Field(ge=300)]
    """Tokens, the 256 bytes among them."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.embedding % self.heads:
            raise ValueError("expected 'embedding' to be a multiple of 'heads'")
        return self


class Fitting(Specification):
    """How it is trained."""

    epochs: Positive
    """Passes over the comments."""
    batch: Positive
    """Comments of a step."""
    learning_rate: Rate
    """At the start; it falls to 0 in a straight line."""


class LanguageModelSpecification(ModelFile):
    """One file of `data/models`, with a profile's changes merged in, as the study of language models reads it.

    Keys for other studies (`corpus`, `decoding`, a prompt) are accepted, and not used.
    """

    architecture: Annotated[str, pydantic.AfterValidator(one_of(ARCHITECTURES))]
    """`causal_lm` or `masked_lm` (Hugging Face), `gpt2` (trained here, on the corpus's comments), `logprobs` (computed
    elsewhere, of every text) or `perplexities` (published, of the test split)."""
    studies: tuple[str, ...] | None = None
    """The studies that audit it; by default all that can."""
    published_as: str | None = None
    """Its name in the paper's tables."""
    base: str | None = None
    """The model that it is made from; keys that this file lacks are taken from there."""
    debiasing: str | None = None
    """The method: lmd, add, hd, cda, or plain (the control)."""
    settings: dict[str, Any] | None = None
    """Settings of the method."""
    dimensions: tuple[str, ...] | None = None
    """The dimensions that it is made for; all by default."""
    huggingface: HuggingFaceSource | None = None
    """Where a `causal_lm` or `masked_lm` comes from."""
    gpt2: GPT2Sizes | None = None
    """Sizes of a `gpt2`."""
    fitting: Fitting | None = None
    """How a `gpt2` is trained."""
    perplexities: str | None = None
    """The data file of published `perplexities`."""
    logprobs: str | None = None
    """The file of `logprobs`: columns text, logprob (natural logarithm, summed), tokens."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """The device that it runs on."""
    threads: Positive = 1
    """Threads of the processor; a fixed number, as sums split over more differ in the last bits."""
    corpus: str | None = None
    """For the study of dialogues."""
    decoding: Decoding = Decoding()
    """For the study of dialogues."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        sections = ("huggingface", "gpt2", "fitting", "perplexities", "logprobs")
        check_sections(self, sections, ARCHITECTURES[self.architecture])
        check_debiased(self, ("settings", "dimensions"))
        return self

    @property
    def scored(self) -> bool:
        """Whether every text has a perplexity: published ones are of the test split alone."""
        return self.architecture != "perplexities"

    @property
    def weighted(self) -> bool:
        """Whether its weights are available."""
        return self.huggingface is not None or self.gpt2 is not None

    @property
    def causal(self) -> bool:
        """Whether it predicts the next word; only such a model is debiased, and tried in tasks."""
        return self.architecture != "masked_lm"

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries whose versions influence its perplexities."""
        return ("torch", "transformers", "tokenizers") if self.weighted else ()

    def identity(self) -> dict[str, object]:
        """The declared keys that influence its perplexities."""
        declared: dict[str, object] = self.model_dump(
            include={"architecture", "base", "debiasing", "settings", "gpt2", "fitting", "perplexities"},
            exclude_none=True,
        )
        if self.huggingface:
            chat = {"chat", "system"} if self.huggingface.chat else set()
            source = {"name", "revision", "dtype", *chat}
            declared["huggingface"] = self.huggingface.model_dump(include=source, exclude_none=True)
        return {**declared, "threads": self.threads}
