"""The sections that the YAML files of all models share: training, pretrained models, endpoints."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import pydantic

from fairness_pipeline.foundation.yaml_files import Positive, Specification, check_address, check_variable

T = TypeVar("T")
Rate = Annotated[float, pydantic.Field(gt=0)]
DropoutRate = Annotated[float, pydantic.Field(ge=0, lt=1)]
CONTEXT = "{context}"
SYSTEM = "\x1e"
"""Ends the line that a context adds to the system prompt."""
HOW_REACHED = {"key_variable", "concurrency", "timeout", "attempts", "max_requests"}
"""Keys of an endpoint that say how it is queried, and do not influence its answers."""


def one_of(known: Mapping[str, object]) -> Callable[[str], str]:
    """Returns a pydantic validator that refuses a name that is not among the `known`."""

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return name

    return check


class Training(Specification):
    """The settings of training that all models share."""

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
    """The optimiser."""
    momentum: Annotated[float, pydantic.Field(ge=0, lt=1)] = 0.0
    """Momentum of `sgd`."""
    batch_tokens: Positive
    """A batch's padded tokens, contexts and responses together, at most."""
    patience: Positive
    """Epochs without a better validation perplexity (of classifiers: accuracy) before training stops."""
    decay: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.5
    """Factor on the learning rate after each such epoch."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the products inside the network; bfloat16 is faster where the processor has it, else slower."""


class Prompted(Specification):
    """The prompt around a context."""

    prompt: str = CONTEXT
    """The prompt; `{context}` is replaced in it."""
    system: str | None = None
    """A system prompt before it."""

    @pydantic.field_validator("prompt")
    @classmethod
    def _has_a_context_slot(cls, prompt: str) -> str:
        if CONTEXT not in prompt:
            raise ValueError(f"expected {CONTEXT} where the context goes")
        return prompt

    def filled(self, context: str) -> str:
        """The prompt for one context; the context's line for the system prompt stays before it."""
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
        system_turn = [{"role": "system", "content": system}] if self.system is not None or line else []
        return [*system_turn, {"role": "user", "content": text}]


class Pretrained(Specification):
    """A model of the `transformers` library."""

    name: str
    """An id, or a folder (a relative one starts at the YAML)."""
    revision: str | None = None
    """The commit of an id, so that it is pinned."""

    @property
    def may_change(self) -> bool:
        """Whether the model behind the name may change: an id without a revision."""
        return self.revision is None and not Path(self.name).is_absolute()

    def located(self, folder: Path) -> Self:
        """A copy with the absolute path of its folder; a relative one starts at the YAML's `folder`."""
        path = folder / Path(self.name).expanduser()
        return self.model_copy(update={"name": str(path.resolve())}) if path.is_dir() else self


class PretrainedClassifier(Pretrained):
    """A sequence classifier or regressor of that library, which is not trained here."""

    batch: Positive = 64
    """Texts at once; if left out, more on a GPU, as its memory allows."""

    @property
    def at_once(self) -> int | None:
        """`batch` if the file sets it, otherwise None."""
        return self.batch if "batch" in self.model_fields_set else None


class HuggingFaceSource(Pretrained, Prompted):
    """A causal language model or an encoder-decoder."""

    chat: bool = False
    """Whether the tokenizer's chat template is applied to the prompt and the system prompt."""
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
    """The model to query there."""
    key_variable: str | None = None
    """The environment variable that holds the key; it is read from nowhere else."""
    leave_out: tuple[Literal["max_tokens", "temperature", "top_p", "seed"], ...] | None = None
    """Options that are not sent, as the server refuses them."""
    length_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The server's name for the most tokens of an answer; `max_tokens` if left out."""
    concurrency: Positive | None = None
    """Requests at once from all workers of a machine; if left out, 8 to 256: more as long as the server answers
    faster."""
    timeout: Rate = 60.0
    """Seconds that a request may take."""
    attempts: Positive = 8
    """Attempts for a request that fails for a temporary reason."""
    max_requests: Positive | None = None
    """Requests that one run may make for one partition; a run that needs more is refused before the first."""

    @pydantic.model_validator(mode="after")
    def _check_sent(self) -> Self:
        if self.length_key and "max_tokens" in (self.leave_out or ()):
            raise ValueError("give either 'length_key', or 'max_tokens' in 'leave_out', not both")
        return self

    @property
    def may_change(self) -> bool:
        """Whether the model behind it may change: always, as nothing pins it."""
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
    """Whether the text between `<think>` and `</think>` counts as answer."""


class ModelFile(Specification):
    """The base of the files of all models, which may name a published model or an endpoint."""

    def sources(self) -> dict[str, Pretrained | EndpointSource]:
        """The sections that name a published model or an endpoint."""
        sections = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: section for name, section in sections.items() if isinstance(section, Pretrained | EndpointSource)}

    @property
    def may_change(self) -> bool:
        """Whether the model behind it may change: an endpoint, or an id without a revision."""
        return any(source.may_change for source in self.sources().values())

    def located(self, folder: Path) -> Self:
        """A copy with the absolute paths of Hugging Face folders; a relative one starts at the YAML's `folder`."""
        pretrained = {name: source for name, source in self.sources().items() if isinstance(source, Pretrained)}
        return self.model_copy(update={name: source.located(folder) for name, source in pretrained.items()})


def given(section: T | None) -> T:
    """A section that a file has, as its architecture needs it."""
    assert section is not None
    return section


def check_sections(
    file: ModelFile, sections: Iterable[str], needs: Collection[str], may_have: Collection[str] = ()
) -> None:
    """Raises ValueError, for pydantic, if a file lacks a section that its architecture needs, or has one that the
    architecture does not take, among all `sections` of files of its kind."""
    for section in sections:
        required, present = section in needs, getattr(file, section) is not None
        if present != required and section not in may_have:
            verb = "needs" if required else "does not take"
            raise ValueError(f"architecture '{getattr(file, 'architecture', None)}' {verb} '{section}'")


def check_debiased(file: ModelFile, belonging: Iterable[str]) -> None:
    """Raises ValueError, for pydantic, if a file has only some of the keys of a debiased model."""
    method = getattr(file, "debiasing", None)
    if (getattr(file, "base", None) is None) != (method is None):
        raise ValueError("'base' and 'debiasing' go together: the model that is debiased, and the method")
    for key in belonging:
        if getattr(file, key) is not None and method is None:
            raise ValueError(f"'{key}' needs a method: set 'debiasing'")
