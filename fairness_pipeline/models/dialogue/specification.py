"""What a file of `data/models` may say."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.models.dialogue.architectures import ARCHITECTURES, SECTIONS
from fairness_pipeline.models.specification import (
    Decoding,
    DropoutRate,
    EndpointSource,
    Pretrained,
    Prompted,
    TrainingSettings,
    one_of,
)
from fairness_pipeline.yaml_files import Positive, Specification

Words = Annotated[int, pydantic.Field(gt=4)]


class Seq2SeqSizes(Specification):
    """Sizes of the LSTM encoder-decoder: layers, units, embedding width, words, dropout rate, longest turn (tokens)."""

    layers: Positive
    hidden: Positive
    embedding: Positive
    vocabulary: Words
    dropout: DropoutRate = 0.0
    longest: Positive = 30


class RetrievalSizes(Specification):
    """Sizes of the Transformer that ranks candidates: layers, heads, widths, words, and how many candidates it has."""

    layers: Positive
    heads: Positive
    embedding: Positive
    feed_forward: Positive
    vocabulary: Words
    dropout: DropoutRate = 0.0
    longest: Positive = 30
    candidates: Positive = 500_000

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.embedding % (2 * self.heads):
            raise ValueError("expected 'embedding' to be an even multiple of 'heads'")
        return self


class HuggingFaceSource(Pretrained, Prompted):
    """A causal language model or an encoder-decoder.

    With `chat` the tokenizer's own chat template goes around prompt and system prompt.
    """

    chat: bool = False
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.system is not None and not self.chat:
            raise ValueError("'system' needs 'chat: true'; a model without a chat template takes it in 'prompt'")
        return self


class ModelSpecification(Specification):
    """One file of `data/models`, with a profile's changes merged in.

    `studies` are those that audit it, all that can where it names none. `corpus` is what it is trained on, and whose
    contexts it answers. `published_as` names it in the papers' tables
    where its key does not. `imported` is a model whose responses came from a file. A model made from another has a
    `base`, from which it takes what its file does not say, and the method `debiasing` with its `settings`; `dimensions`
    are those it is made for (all where it names none). `threads` are those of the processor that it computes on: a
    fixed number, as sums that are split over more add up otherwise in the last bits.
    """

    architecture: Annotated[str, pydantic.AfterValidator(one_of(ARCHITECTURES))]
    studies: tuple[str, ...] | None = None
    corpus: str
    published_as: str | None = None
    base: str | None = None
    debiasing: str | None = None
    settings: dict[str, Any] | None = None
    dimensions: tuple[str, ...] | None = None
    seq2seq: Seq2SeqSizes | None = None
    retrieval: RetrievalSizes | None = None
    training: TrainingSettings | None = None
    huggingface: HuggingFaceSource | None = None
    endpoint: EndpointSource | None = None
    decoding: Decoding = Decoding()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Positive = 1

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        own = ARCHITECTURES[self.architecture]
        for section in SECTIONS:
            wanted, present = section in own.needs, getattr(self, section) is not None
            if present != wanted and section not in own.may_have:
                verb = "needs" if wanted else "does not take"
                raise ValueError(f"architecture '{self.architecture}' {verb} '{section}'")
        for part in ("settings", "dimensions"):
            if getattr(self, part) is not None and self.debiasing is None:
                raise ValueError(f"'{part}' belong to a method: name it under 'debiasing'")
        if (self.base is None) != (self.debiasing is None):
            raise ValueError("'base' and 'debiasing' go together: the model that is debiased, and the method")
        if own.greedy and self.decoding.model_dump(exclude={"batch"}) != Decoding().model_dump(exclude={"batch"}):
            raise ValueError(f"architecture '{self.architecture}' takes no 'decoding' but 'batch': it answers greedily")
        return self

    def located(self, folder: Path) -> Self:
        """The same with the path of its Hugging Face folder whole; a relative one starts at the YAML's `folder`."""
        return self.model_copy(update={"huggingface": self.huggingface and self.huggingface.located(folder)})

    @property
    def libraries(self) -> tuple[str, ...]:
        """Whose versions decide what it answers."""
        return ARCHITECTURES[self.architecture].libraries

    @property
    def trained(self) -> bool:
        """Whether this pipeline trains it."""
        return self.training is not None

    @property
    def may_change(self) -> bool:
        """Whether what answers may be another model tomorrow: an endpoint, or an id without a revision."""
        return bool(self.endpoint or (self.huggingface and self.huggingface.may_change))

    def identity(self) -> dict[str, object]:
        """Everything declared that decides what it answers, decoding apart; how fast it is asked does not."""
        return self.model_dump(
            exclude={
                "decoding": True,
                "studies": True,
                "published_as": True,
                "dimensions": True,
                "training": {"checkpoint_seconds"},
                "endpoint": {"key_variable", "concurrency", "timeout", "attempts", "max_requests"},
            },
            exclude_none=True,
        )
