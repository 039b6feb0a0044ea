"""The schema of the files of dialogue models in `data/models`."""

from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.dialogue.architectures import ARCHITECTURES, SECTIONS
from fairness_pipeline.models.specification import (
    HOW_REACHED,
    Decoding,
    DropoutRate,
    EndpointSource,
    HuggingFaceSource,
    ModelFile,
    TrainingSettings,
    check_debiased,
    check_sections,
    one_of,
)

Words = Annotated[int, pydantic.Field(gt=4)]


class Seq2SeqSizes(Specification):
    """Sizes of the LSTM encoder-decoder."""

    layers: Positive
    """Layers of encoder and decoder each."""
    hidden: Positive
    """Units of a layer."""
    embedding: Positive
    """Width of a word."""
    vocabulary: Words
    """Words; others are unknown."""
    dropout: DropoutRate = 0.0
    """Share of units dropped in training."""
    longest: Positive = 30
    """Words of a turn; longer ones are cut."""


class RetrievalSizes(Specification):
    """Sizes of the Transformer that ranks candidates."""

    layers: Positive
    """Layers of the encoder."""
    heads: Positive
    """Attention heads."""
    embedding: Positive
    """Width of a word; an even multiple of `heads`."""
    feed_forward: Positive
    """Width of the inner layers."""
    vocabulary: Words
    """Words; others are unknown."""
    dropout: DropoutRate = 0.0
    """Share of units dropped in training."""
    longest: Positive = 30
    """Words of a turn; longer ones are cut."""
    candidates: Positive = 500_000
    """Responses drawn from the training dialogues, at most."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.embedding % (2 * self.heads):
            raise ValueError("expected 'embedding' to be an even multiple of 'heads'")
        return self


class ModelSpecification(ModelFile):
    """One file of `data/models`, with a profile's changes merged in."""

    architecture: Annotated[str, pydantic.AfterValidator(one_of(ARCHITECTURES))]
    """`seq2seq`, `retrieval` (trained here), `causal_lm`, `encoder_decoder` (Hugging Face) or `endpoint`."""
    studies: tuple[str, ...] | None = None
    """The studies that audit it; by default all that can."""
    corpus: str
    """The corpus that it is trained on, and whose contexts it answers."""
    published_as: str | None = None
    """Its name in the papers' tables, if this is not its key."""
    base: str | None = None
    """The model that it is made from; keys that this file lacks are taken from there."""
    debiasing: str | None = None
    """The method: cda, duplication, wer, debiased_chat, placebo, filtered_training, random_filter, mle, dropout, leace,
    self_debias, prompt, filtered."""
    settings: dict[str, Any] | None = None
    """Settings of the method."""
    dimensions: tuple[str, ...] | None = None
    """The dimensions that it is made for; all by default."""
    seq2seq: Seq2SeqSizes | None = None
    """Sizes of the architecture `seq2seq`."""
    retrieval: RetrievalSizes | None = None
    """Sizes of the architecture `retrieval`."""
    seeds: Annotated[int, pydantic.Field(ge=1, le=50)] = 1
    """How often it is trained, each time with another seed; more than once gives a verdict on the recipe as well."""
    training: TrainingSettings | None = None
    """How it is trained; a `causal_lm` with it is fine-tuned."""
    huggingface: HuggingFaceSource | None = None
    """Where a `causal_lm` or `encoder_decoder` comes from."""
    endpoint: EndpointSource | None = None
    """Where an `endpoint` is, and how it is queried."""
    decoding: Decoding = Decoding()
    """How it answers."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """The device that it runs on."""
    threads: Positive = 1
    """Threads of the processor; a fixed number, as sums split over more differ in the last bits."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        architecture = ARCHITECTURES[self.architecture]
        check_sections(self, SECTIONS, architecture.needs, architecture.may_have)
        check_debiased(self, ("settings", "dimensions"))
        if architecture.greedy and self.decoding.model_dump(exclude={"batch"}) != Decoding().model_dump(
            exclude={"batch"}
        ):
            raise ValueError(f"architecture '{self.architecture}' takes no 'decoding' but 'batch': it answers greedily")
        return self

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries whose versions influence its answers."""
        return ARCHITECTURES[self.architecture].libraries

    @property
    def trained(self) -> bool:
        """Whether this pipeline trains it."""
        return self.training is not None

    def identity(self) -> dict[str, object]:
        """The declared keys that influence its answers, except decoding and how an endpoint is reached."""
        return self.model_dump(
            exclude={
                "decoding": True,
                "studies": True,
                "published_as": True,
                "dimensions": True,
                "seeds": True,
                "training": {"checkpoint_seconds"},
                "endpoint": HOW_REACHED,
            },
            exclude_none=True,
        )
