"""The schema of the files in `data/systems`."""

from typing import Annotated, Literal, Self, get_args

import pydantic

from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.sentiment.architectures import ARCHITECTURES
from fairness_pipeline.models.specification import (
    HOW_REACHED,
    DropoutRate,
    EndpointSource,
    ModelFile,
    PretrainedClassifier,
    Rate,
    Training,
    TrainingSettings,
    check_sections,
    one_of,
)

Affect = Literal["anger", "fear", "joy", "sadness", "valence"]
AFFECTS: tuple[Affect, ...] = get_args(Affect)
AFFECT = "{affect}"
SCORE_FORMS = (".csv", ".tsv")
"""The endings of score files: comma-separated or tab-separated."""

_PROMPT = (
    "How strong is the {affect} that this sentence expresses? Answer with one number between 0 (none) and 1 (as strong "
    "as can be), and nothing else.\n\n{context}"
)


class SvmSettings(Specification):
    """The linear support vector regressor."""

    longest_ngram: Positive = 2
    """Words of the longest n-gram."""
    c: Rate = 1.0
    """Its penalty."""


class EncoderSettings(Training):
    """The CNN or GRU regressor, trained by Adam."""

    embedding: Positive = 64
    """Width of a word."""
    hidden: Positive = 64
    """The GRU's units."""
    filters: Positive = 64
    """The CNN's filters of each width."""
    widths: Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)] = (2, 3, 4)
    """Words that the CNN's filters see."""
    vocabulary: Positive = 20_000
    """Words; others are unknown."""
    longest: Positive = 50
    """Words of a tweet; longer ones are cut."""
    dropout: DropoutRate = 0.3
    """Share of units dropped in training."""
    epochs: Positive = 15
    """Passes over the tweets."""
    batch_tokens: Positive = 512
    """Padded words of a batch, at most."""
    learning_rate: Rate = 0.002
    """Learning rate of Adam."""
    clipping: Rate = 1.0
    """Largest norm of the gradient."""

    @property
    def training(self) -> TrainingSettings:
        """The same settings for the shared training loop."""
        names = ("batch_tokens", *Training.model_fields)
        settings = {name: getattr(self, name) for name in names}
        return TrainingSettings(optimiser="adam", patience=self.epochs, decay=1.0, **settings)


class ClassifierSource(PretrainedClassifier):
    """A sequence classifier or regressor."""

    labels: dict[Affect, str] = {}
    """The label whose probability is the score, for each affect; a single output needs none."""
    output_range: tuple[float, float] | None = None
    """[lowest, highest] of a regressor's output, which is scaled to 0 to 1."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.output_range and not self.output_range[0] < self.output_range[1]:
            raise ValueError("expected 'output_range' as [lowest, highest]")
        return self


class AskedSource(EndpointSource):
    """An OpenAI-compatible endpoint that is asked for a score."""

    prompt: str = _PROMPT
    """The question; `{affect}` and `{context}` are replaced."""

    @pydantic.field_validator("prompt")
    @classmethod
    def _names_the_affect(cls, prompt: str) -> str:
        if AFFECT not in prompt:
            raise ValueError(f"expected {AFFECT} where the affect's name goes")
        return prompt

    @pydantic.field_validator("system")
    @classmethod
    def _is_the_same_for_all(cls, system: str | None) -> str | None:
        if AFFECT in (system or ""):
            raise ValueError(f"{AFFECT} is replaced in 'prompt' only; leave it out here")
        return system


class SystemSpecification(ModelFile):
    """One file of `data/systems`, with a profile's changes merged in."""

    architecture: Annotated[str, pydantic.AfterValidator(one_of(ARCHITECTURES))]
    """`vader`, `linear_svm`, `cnn`, `gru` (trained here), `huggingface` or `endpoint`."""
    affects: Annotated[tuple[Affect, ...], pydantic.Field(min_length=1)]
    """The affects that it scores."""
    svm: SvmSettings | None = None
    """Settings of `linear_svm`."""
    encoder: EncoderSettings | None = None
    """Settings of `cnn` and `gru`."""
    huggingface: ClassifierSource | None = None
    """Where a `huggingface` model comes from."""
    endpoint: AskedSource | None = None
    """Where an `endpoint` is, and how it is queried."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """The device that it runs on."""
    threads: Positive = 1
    """Threads of the processor."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        architecture = ARCHITECTURES[self.architecture]
        sections = ("svm", "encoder", "huggingface", "endpoint")
        check_sections(self, sections, architecture.needs, architecture.may_have)
        if doubled := [affect for affect in self.affects if self.affects.count(affect) > 1]:
            raise ValueError(f"'{doubled[0]}' is listed twice in 'affects'; keep one")
        if self.architecture == "vader" and self.affects != ("valence",):
            raise ValueError("VADER scores valence only: affects: [valence]")
        if self.huggingface and self.huggingface.labels and set(self.huggingface.labels) != set(self.affects):
            raise ValueError("expected 'huggingface.labels' to name a label for each of 'affects'")
        if self.huggingface and not self.huggingface.labels and len(self.affects) != 1:
            raise ValueError("without 'huggingface.labels' a model has one output: expected one of 'affects'")
        return self

    @property
    def trained(self) -> bool:
        """Whether it is trained here, on tweets with affect intensities."""
        return ARCHITECTURES[self.architecture].trained

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries whose versions influence its scores."""
        return ARCHITECTURES[self.architecture].libraries

    def requests(self, sentences: int) -> int:
        """The number of requests to an endpoint that so many distinct sentences take."""
        return sentences * len(self.affects) if self.endpoint else 0

    def identity(self) -> dict[str, object]:
        """The keys that influence its scores, as JSON values, without how an endpoint is reached."""
        excluded = {"endpoint": HOW_REACHED, "encoder": {"checkpoint_seconds"}}
        return self.model_dump(mode="json", exclude={"device": True, **excluded})
