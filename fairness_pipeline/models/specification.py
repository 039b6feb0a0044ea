"""What the YAML files of models of every kind may say: training, pretrained models, endpoints."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic
from pydantic_core import PydanticCustomError

from fairness_pipeline.yaml_files import SECRET, Positive, Specification, check_address

Rate = Annotated[float, pydantic.Field(gt=0)]
DropoutRate = Annotated[float, pydantic.Field(ge=0, lt=1)]
CONTEXT = "{context}"


def one_of(known: Mapping[str, object]) -> Callable[[str], str]:
    """Refuses, for pydantic, a name that is not among the `known`."""

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return name

    return check


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
    models and endpoints only). What a reasoning model writes between `<think>` and `</think>` is taken out unless
    `keep_thoughts`. `batch` contexts are answered at once. An empty response is refused unless
    `keep_empty`: then it stands as a response without words.
    """

    batch: Positive | None = None
    max_tokens: Positive = 40
    temperature: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 0.0
    top_p: Annotated[float, pydantic.Field(gt=0, le=1)] = 1.0
    stop: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()
    keep_empty: bool = False
    keep_thoughts: bool = False
