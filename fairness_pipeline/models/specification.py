"""What the YAML files of models of every kind may say: training, pretrained models, endpoints."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic

from fairness_pipeline.foundation.yaml_files import Positive, Specification, check_address, check_variable

Rate = Annotated[float, pydantic.Field(gt=0)]
DropoutRate = Annotated[float, pydantic.Field(ge=0, lt=1)]
CONTEXT = "{context}"
SYSTEM = "\x1e"
"""Ends a line of the system prompt that a context brings with it."""
HOW_REACHED = {"key_variable", "concurrency", "timeout", "attempts", "max_requests"}
"""Keys of an endpoint that say how it is asked, and nothing of what it answers."""


def one_of(known: Mapping[str, object]) -> Callable[[str], str]:
    """Refuses, for pydantic, a name that is not among the `known`."""

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return name

    return check


class Training(Specification):
    """What the training of every model shares."""

    learning_rate: Rate
    """At the start."""
    clipping: Rate
    """Largest norm of the gradient."""
    epochs: Positive
    """Passes over the training data, at most."""
    checkpoint_seconds: Annotated[float, pydantic.Field(ge=0)] = 30.0
    """Between two checkpoints."""


class TrainingSettings(Training):
    """How a model is trained."""

    optimiser: Literal["sgd", "adam", "adamax"]
    """Which one."""
    momentum: Annotated[float, pydantic.Field(ge=0, lt=1)] = 0.0
    """Momentum of `sgd`."""
    batch_tokens: Positive
    """A batch's padded tokens, contexts and responses together, at most."""
    patience: Positive
    """Epochs without a better validation perplexity (of classifiers: accuracy) before training stops."""
    decay: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.5
    """What the learning rate is multiplied by after each such epoch."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the products inside the network; bfloat16 is faster where the processor has it, else slower."""


class Prompted(Specification):
    """What stands around a context."""

    prompt: str = CONTEXT
    """`{context}` is replaced in it."""
    system: str | None = None
    """A system prompt before it."""

    @pydantic.field_validator("prompt")
    @classmethod
    def _has_a_place(cls, prompt: str) -> str:
        if CONTEXT not in prompt:
            raise ValueError(f"expected {CONTEXT} where the context goes")
        return prompt

    def filled(self, context: str) -> str:
        """The prompt for one context; a line for the system prompt stays before it."""
        line, mark, text = context.rpartition(SYSTEM)
        return line + mark + self.prompt.replace(CONTEXT, text)

    def messages(self, prompt: str) -> list[dict[str, str]]:
        """A chat's messages for a filled prompt.

        Examples:
            >>> Prompted(system="Be brief.").messages(f"User's name: Ann.{SYSTEM}Hi")[0]
            {'role': 'system', 'content': "Be brief.\\nUser's name: Ann."}
        """
        line, _, text = prompt.rpartition(SYSTEM)
        system = "\n".join(part for part in (self.system, line or None) if part is not None)
        said = [{"role": "system", "content": system}] if self.system is not None or line else []
        return [*said, {"role": "user", "content": text}]


class Pretrained(Specification):
    """A model of the `transformers` library."""

    name: str
    """An id, or a folder (a relative one starts at the YAML)."""
    revision: str | None = None
    """The commit of an id, so that it is pinned."""

    @property
    def may_change(self) -> bool:
        """Whether another model may stand behind the name tomorrow: an id without a revision."""
        return self.revision is None and not Path(self.name).is_absolute()

    def located(self, folder: Path) -> Self:
        """The same with the path of its folder whole; a relative one starts at the YAML's `folder`."""
        place = folder / Path(self.name).expanduser()
        return self.model_copy(update={"name": str(place.resolve())}) if place.is_dir() else self


class PretrainedClassifier(Pretrained):
    """A sequence classifier or regressor of that library, which is only asked."""

    batch: Positive = 64
    """Texts at once; where it is left out, more on a GPU, as its memory allows."""

    @property
    def at_once(self) -> int | None:
        """`batch`, where the file says it."""
        return self.batch if "batch" in self.model_fields_set else None


class HuggingFaceSource(Pretrained, Prompted):
    """A causal language model or an encoder-decoder."""

    chat: bool = False
    """Whether the tokenizer's own chat template goes around prompt and system prompt."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Number format of the weights."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.system is not None and not self.chat:
            raise ValueError("'system' needs 'chat: true'; a model without a chat template takes it in 'prompt'")
        return self


class EndpointSource(Prompted):
    """An OpenAI-compatible chat endpoint."""

    base_url: str
    """Its address, such as https://host/v1."""
    model: str
    """Which of its models."""
    key_variable: str | None = None
    """The environment variable that holds the key; it is read from nowhere else."""
    leave_out: tuple[Literal["max_tokens", "temperature", "top_p", "seed"], ...] | None = None
    """What is not sent, to a server that refuses it."""
    length_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What it calls the most tokens of an answer; `max_tokens` where it is left out."""
    concurrency: Positive | None = None
    """Requests at once, of all workers of a machine; where it is left out, 8 to 256: as many as make the server answer
    faster."""
    timeout: Rate = 60.0
    """Seconds that a request may take."""
    attempts: Positive = 8
    """How often a request that fails for a passing reason is made."""
    max_requests: Positive | None = None
    """Requests that one run may make for one partition; more are refused before the first."""

    @pydantic.model_validator(mode="after")
    def _check_sent(self) -> Self:
        if self.length_key and "max_tokens" in (self.leave_out or ()):
            raise ValueError("expected 'length_key', or 'max_tokens' in 'leave_out': what is not sent has no name")
        return self

    @property
    def may_change(self) -> bool:
        """Whether another model may stand behind it tomorrow: nothing pins it."""
        return True

    @pydantic.field_validator("base_url")
    @classmethod
    def _is_address(cls, base_url: str) -> str:
        check_address(base_url)
        return base_url.rstrip("/")

    @pydantic.field_validator("key_variable")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        return check_variable(name, "a key")


class Decoding(Specification):
    """How a model answers."""

    batch: Positive | None = None
    """Contexts answered at once."""
    max_tokens: Positive = 40
    """Tokens of an answer, at most."""
    temperature: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 0.0
    """0 is greedy."""
    top_p: Annotated[float, pydantic.Field(gt=0, le=1)] = 1.0
    """Share of the probability that is sampled from."""
    stop: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()
    """Texts that end an answer."""
    keep_empty: bool = False
    """Whether a Hugging Face model may end its answer before the first word. An answer without words is counted as one
    in any case."""
    keep_thoughts: bool = False
    """Whether what stands between `<think>` and `</think>` counts as answer."""


class ModelFile(Specification):
    """What the files of models of every kind have in common: somebody else's model may stand behind them."""

    def sources(self) -> dict[str, Pretrained | EndpointSource]:
        """Its sections that name one."""
        sections = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: own for name, own in sections.items() if isinstance(own, Pretrained | EndpointSource)}

    @property
    def may_change(self) -> bool:
        """Whether another model may stand behind it tomorrow: an endpoint, or an id without a revision."""
        return any(own.may_change for own in self.sources().values())

    def located(self, folder: Path) -> Self:
        """The same with the paths of Hugging Face folders whole; a relative one starts at the YAML's `folder`."""
        pretrained = {name: own for name, own in self.sources().items() if isinstance(own, Pretrained)}
        return self.model_copy(update={name: own.located(folder) for name, own in pretrained.items()})


def check_debiased(file: ModelFile, belonging: Iterable[str]) -> None:
    """Refuses, for pydantic, half of what makes a debiased model.

    Args:
        file: With `base` and `debiasing`.
        belonging: The keys that only such a file may have.
    """
    method = getattr(file, "debiasing", None)
    if (getattr(file, "base", None) is None) != (method is None):
        raise ValueError("'base' and 'debiasing' go together: the model that is debiased, and the method")
    for part in belonging:
        if getattr(file, part) is not None and method is None:
            raise ValueError(f"'{part}' belong to a method: name it under 'debiasing'")
