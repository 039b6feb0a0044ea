"""What a file of `data/models` may say."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic_core import PydanticCustomError

from fairness_pipeline.yaml_files import SECRET, Positive, Specification, check_address

Rate = Annotated[float, pydantic.Field(gt=0)]
DropoutRate = Annotated[float, pydantic.Field(ge=0, lt=1)]
Words = Annotated[int, pydantic.Field(gt=4)]
CONTEXT = "{context}"


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


class TrainingSettings(Specification):
    """How a model is trained.

    `batch_tokens` bounds a batch's padded tokens, contexts and responses together; `patience` is the number of epochs
    without a better validation perplexity before training stops; `decay` multiplies the learning rate after each such
    epoch; a checkpoint is written every `checkpoint_seconds`. `precision` is that of the products inside the network:
    `bfloat16` trains faster where the processor has it (and slower where not); weights and perplexities keep 32 bits.
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
    precision: Literal["float32", "bfloat16"] = "float32"


class Prompted(Specification):
    """What stands around a context: `prompt`, in which `{context}` is replaced, and a `system` prompt before it."""

    prompt: str = CONTEXT
    system: str | None = None

    @pydantic.field_validator("prompt")
    @classmethod
    def _has_a_place(cls, prompt: str) -> str:
        if CONTEXT not in prompt:
            raise ValueError(f"expected {CONTEXT} where the context goes")
        return prompt

    def filled(self, context: str) -> str:
        """The prompt for one context."""
        return self.prompt.replace(CONTEXT, context)


class Pretrained(Specification):
    """A model of the `transformers` library: an id (pin it with `revision`) or a folder."""

    name: str
    revision: str | None = None

    @property
    def may_change(self) -> bool:
        """Whether another model may stand behind the name tomorrow: an id without a revision."""
        return self.revision is None and not Path(self.name).is_absolute()

    def located(self, folder: Path) -> Self:
        """The same with the path of its folder whole; a relative one starts at the YAML's `folder`."""
        place = folder / Path(self.name).expanduser()
        return self.model_copy(update={"name": str(place.resolve())}) if place.is_dir() else self


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


class EndpointSource(Prompted):
    """An OpenAI-compatible chat endpoint.

    The key is read from the environment variable that `key_variable` names, and from nowhere else. A request that fails
    for a passing reason is made up to `attempts` times; `max_requests` bounds what one run asks for one partition (a
    dimension of a dialogue model, a sentiment system).
    """

    base_url: str
    model: str
    key_variable: str | None = None
    concurrency: Positive = 8
    timeout: Rate = 60.0
    attempts: Positive = 8
    max_requests: Positive | None = None

    @pydantic.field_validator("base_url")
    @classmethod
    def _is_address(cls, base_url: str) -> str:
        check_address(base_url)
        return base_url.rstrip("/")

    @pydantic.field_validator("key_variable")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
            raise PydanticCustomError(SECRET, "expected the name of an environment variable in capitals, not a key")
        return name


class Decoding(Specification):
    """How a model answers.

    `temperature` 0 is greedy. `stop` texts end a response (with `temperature`, `top_p` and `max_tokens`: Hugging Face
    models and endpoints only). `batch` contexts are answered at once. An empty response is refused unless
    `keep_empty`: then it stands as a response without words.
    """

    batch: Positive | None = None
    max_tokens: Positive = 40
    temperature: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 0.0
    top_p: Annotated[float, pydantic.Field(gt=0, le=1)] = 1.0
    stop: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()
    keep_empty: bool = False


_OPTIONAL = {"causal_lm": "training"}
"""A section that an architecture may have: a causal LM is fine-tuned where it says how."""

_SECTIONS: dict[str, set[str]] = {
    "seq2seq": {"seq2seq", "training"},
    "retrieval": {"retrieval", "training"},
    "causal_lm": {"huggingface", "training"},
    "encoder_decoder": {"huggingface"},
    "endpoint": {"endpoint"},
    "imported": set(),
}


class ModelSpecification(Specification):
    """One file of `data/models`, with a profile's changes merged in.

    `corpus` is what it is trained on, and whose contexts it answers. `published_as` names it in the papers' tables
    where its key does not. `imported` is a model whose responses came from a file. A model made from another has a
    `base`, from which it takes what its file does not say, and the method `debiasing` with its `settings`; `dimensions`
    are those it is made for (all where it names none).
    """

    architecture: Literal["seq2seq", "retrieval", "causal_lm", "encoder_decoder", "endpoint", "imported"]
    studies: tuple[Literal["dialogue_fairness", "sentiment_equity"], ...]
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

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        for section in ("seq2seq", "retrieval", "training", "huggingface", "endpoint"):
            wanted = section in _SECTIONS[self.architecture]
            present = getattr(self, section) is not None
            if present != wanted and section != _OPTIONAL.get(self.architecture):
                verb = "needs" if wanted else "does not take"
                raise ValueError(f"architecture '{self.architecture}' {verb} '{section}'")
        for part in ("settings", "dimensions"):
            if getattr(self, part) is not None and self.debiasing is None:
                raise ValueError(f"'{part}' belong to a method: name it under 'debiasing'")
        if (self.base is None) != (self.debiasing is None):
            raise ValueError("'base' and 'debiasing' go together: the model that is debiased, and the method")
        greedy = self.seq2seq or self.retrieval
        if greedy and self.decoding.model_dump(exclude={"batch"}) != Decoding().model_dump(exclude={"batch"}):
            raise ValueError(f"architecture '{self.architecture}' takes no 'decoding' but 'batch': it answers greedily")
        return self

    def located(self, folder: Path) -> Self:
        """The same with the path of its Hugging Face folder whole; a relative one starts at the YAML's `folder`."""
        return self.model_copy(update={"huggingface": self.huggingface and self.huggingface.located(folder)})

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
