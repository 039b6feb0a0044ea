"""What a file of `data/systems` may say."""

from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import pydantic

from fairness_pipeline.models.sentiment.architectures import ARCHITECTURES
from fairness_pipeline.models.specification import (
    DropoutRate,
    EndpointSource,
    Pretrained,
    Rate,
    TrainingSettings,
    one_of,
)
from fairness_pipeline.yaml_files import Positive, Specification

Affect = Literal["anger", "fear", "joy", "sadness", "valence"]
AFFECTS: tuple[Affect, ...] = get_args(Affect)
AFFECT = "{affect}"
SCORE_FORMS = (".csv", ".tsv")
"""How score files end: with commas, or with tabs."""

_PROMPT = (
    "How strong is the {affect} that this sentence expresses? Answer with one number between 0 (none) and 1 (as strong "
    "as can be), and nothing else.\n\n{context}"
)


class SvmSettings(Specification):
    """The linear support vector regressor: word n-grams up to `longest_ngram`, and its penalty `c`."""

    longest_ngram: Positive = 2
    c: Rate = 1.0


class EncoderSettings(Specification):
    """The CNN or GRU regressor. `filters` of each width in `widths` are the CNN's, `hidden` is the GRU's.

    It is trained by Adam for `epochs`, on batches of at most `batch_tokens` padded words.
    """

    embedding: Positive = 64
    hidden: Positive = 64
    filters: Positive = 64
    widths: Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)] = (2, 3, 4)
    vocabulary: Positive = 20_000
    longest: Positive = 50
    dropout: DropoutRate = 0.3
    epochs: Positive = 15
    batch_tokens: Positive = 512
    learning_rate: Rate = 0.002
    clipping: Rate = 1.0
    checkpoint_seconds: Annotated[float, pydantic.Field(ge=0)] = 30.0

    @property
    def training(self) -> TrainingSettings:
        """The same for the loop that all models share."""
        names = ("batch_tokens", "learning_rate", "clipping", "epochs", "checkpoint_seconds")
        own = {name: getattr(self, name) for name in names}
        return TrainingSettings(optimiser="adam", patience=self.epochs, decay=1.0, **own)


class ClassifierSource(Pretrained):
    """A sequence classifier or regressor.

    `labels` says which label's probability is the score of which affect. A regressor's outputs are brought from
    `output_range` (0 to 1 where it is left out) into 0..1; one with a single output needs no `labels`.
    """

    labels: dict[Affect, str] = {}
    output_range: tuple[float, float] | None = None
    batch: Positive = 64

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.output_range and not self.output_range[0] < self.output_range[1]:
            raise ValueError("expected 'output_range' as [lowest, highest]")
        return self


class AskedSource(EndpointSource):
    """An OpenAI-compatible endpoint that is asked for a score; in `prompt` `{affect}` and `{context}` are replaced."""

    prompt: str = _PROMPT

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


class SystemSpecification(Specification):
    """One file of `data/systems`, with a profile's changes merged in.

    `affects` are those that it scores. `scores` is a system whose scores came from a file. `threads` are those of the
    processor that it computes on.
    """

    architecture: Annotated[str, pydantic.AfterValidator(one_of(ARCHITECTURES))]
    affects: Annotated[tuple[Affect, ...], pydantic.Field(min_length=1)]
    svm: SvmSettings | None = None
    encoder: EncoderSettings | None = None
    huggingface: ClassifierSource | None = None
    endpoint: AskedSource | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Positive = 1

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        own = ARCHITECTURES[self.architecture]
        for section in ("svm", "encoder", "huggingface", "endpoint"):
            if getattr(self, section) is not None and section != own.section:
                raise ValueError(f"architecture '{self.architecture}' does not take '{section}'")
        if own.needed and getattr(self, own.section or "") is None:
            raise ValueError(f"architecture '{self.architecture}' needs '{own.section}'")
        if doubled := [affect for affect in self.affects if self.affects.count(affect) > 1]:
            raise ValueError(f"'{doubled[0]}' stands twice in 'affects'; keep one")
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
        """Whose versions decide its scores."""
        return ARCHITECTURES[self.architecture].libraries

    @property
    def may_change(self) -> bool:
        """Whether what scores may be another model tomorrow: an endpoint, or an id without a revision."""
        return bool(self.endpoint or (self.huggingface and self.huggingface.may_change))

    def requests(self, sentences: int) -> int:
        """How many requests it takes of an endpoint to score that many distinct sentences."""
        return sentences * len(self.affects) if self.endpoint else 0

    def located(self, folder: Path) -> Self:
        """The same with a relative path to a Hugging Face folder taken from `folder`."""
        return self.model_copy(update={"huggingface": self.huggingface and self.huggingface.located(folder)})

    def identity(self) -> dict[str, object]:
        """What decides its scores, as JSON can hold it; how an endpoint is reached does not."""
        aside = {
            "endpoint": {"key_variable", "concurrency", "timeout", "attempts", "max_requests"},
            "encoder": {"checkpoint_seconds"},
        }
        return self.model_dump(mode="json", exclude={"device": True, **aside})
