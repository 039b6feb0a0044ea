"""The schema of the files in `data/classifiers`."""

from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.classifiers.architectures import ARCHITECTURES
from fairness_pipeline.models.specification import (
    HOW_REACHED,
    DropoutRate,
    EndpointSource,
    ModelFile,
    Pretrained,
    PretrainedClassifier,
    Rate,
    Training,
    TrainingSettings,
    check_debiased,
    check_sections,
    one_of,
)

_PROMPT = "Is the sentiment of this text positive? Answer yes or no, and nothing else.\n\n{context}"


class NetworkSettings(Specification):
    """Widths of a `cnn` or `rnn`; by default those of Liu (2022, sections 4.5.1 and 4.5.3)."""

    embedding: Positive = 300
    """Width of a word."""
    filters: Positive = 100
    """The CNN's filters of each width."""
    widths: Annotated[tuple[Positive, ...], pydantic.Field(min_length=1)] = (3, 4, 5)
    """Words that the CNN's filters see."""
    hidden: Positive = 300
    """The RNN's units."""
    dropout: DropoutRate | None = None
    """Share of units dropped before the last layer: 0.3 in the CNN and 0.2 in the RNN if left out."""
    vocabulary: Positive = 30_000
    """Words; others are unknown."""
    longest: Positive = 100
    """Words of a text; longer ones are cut."""


class EncoderSource(Pretrained):
    """A pretrained encoder, which is fine-tuned."""

    longest: Positive = 128
    """Tokens of a text; longer ones are cut."""


class Fitting(Training):
    """How a classifier is trained, by Adam; as in Liu (2022, section 4.5.3)."""

    batch: Positive = 64
    """Texts of a step."""
    learning_rate: Rate = 1e-3
    """Learning rate of Adam."""
    clipping: Rate = 0.25
    """Largest norm of the gradient. The thesis has a "clip-value of 0.25" and does not say of what: clipping each value
    would turn the step, clipping the norm shortens it."""
    epochs: Positive = 100
    """Passes over the texts, at most."""
    patience: Positive = 5
    """Epochs without a better validation accuracy before training stops."""

    @property
    def training(self) -> TrainingSettings:
        """The same settings for the shared training loop; `batch_tokens` counts texts here."""
        settings = self.model_dump(exclude={"batch"})
        return TrainingSettings(optimiser="adam", decay=1.0, batch_tokens=self.batch, **settings)


class PublishedClassifier(PretrainedClassifier):
    """A sequence classifier as it was published."""

    positive: Annotated[tuple[str, ...] | dict[str, tuple[str, ...]], pydantic.Field(min_length=1)]
    """Its labels that mean the positive class; their probabilities are added. For a corpus of more than two classes:
    its labels for each class, by the class's name."""

    @pydantic.model_validator(mode="after")
    def _check_labels(self) -> Self:
        if isinstance(self.positive, dict):
            labels = [label for class_labels in self.positive.values() for label in class_labels]
            if not all(self.positive.values()):
                raise ValueError("'positive': each class needs a label")
            if len(labels) > len(set(labels)):
                raise ValueError("'positive': a label is in two of the classes")
        return self


class AskedClassifier(EndpointSource):
    """An OpenAI-compatible endpoint that is asked for the class: yes (positive) or no."""

    prompt: str = _PROMPT
    """The question; `{context}` is replaced by the text, `{class}` by the name of the positive class."""


class ClassifierSpecification(ModelFile):
    """One file of `data/classifiers`, with a profile's changes merged in."""

    architecture: Annotated[str, pydantic.AfterValidator(one_of(ARCHITECTURES))]
    """`cnn`, `rnn`, `encoder` (trained here), `huggingface` or `endpoint`."""
    base: str | None = None
    """The classifier that it is made from; keys that this file lacks are taken from there."""
    debiasing: str | None = None
    """The method: data_aug, ins_weigh, or debiased_tc."""
    settings: dict[str, Any] | None = None
    """Settings of the method."""
    network: NetworkSettings | None = None
    """Widths of a `cnn` or `rnn`."""
    encoder: EncoderSource | None = None
    """Where an `encoder` comes from."""
    fitting: Fitting = Fitting()
    """How it is trained."""
    seeds: Positive = 5
    """How often it is trained, each time with another seed."""
    huggingface: PublishedClassifier | None = None
    """Where a `huggingface` classifier comes from."""
    endpoint: AskedClassifier | None = None
    """Where an `endpoint` is, and how it is queried."""
    published_as: Literal["CNN", "RNN"] | None = None
    """The published results that are shown beside ours."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """The device that it runs on."""
    threads: Positive = 1
    """Threads of the processor."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        architecture = ARCHITECTURES[self.architecture]
        sections = ("network", "encoder", "huggingface", "endpoint")
        check_sections(self, sections, architecture.needs, architecture.may_have)
        check_debiased(self, ("settings",))
        if self.debiasing and not architecture.trained:
            raise ValueError(f"architecture '{self.architecture}' is not trained here, so it cannot be debiased")
        return self

    def of_class(self, name: str, classes: tuple[str, ...] = ()) -> Self:
        """A copy of the classifier with a given positive class, of all `classes` if there are more than two.

        Raises:
            FairnessError: the file does not say which of its labels mean which class, or does not ask about the class.
        """
        if self.endpoint:
            if classes and "{class}" not in self.endpoint.prompt:
                raise FairnessError(
                    f"endpoint.prompt: expected a question with {{class}}, as the corpus has the classes "
                    f"{', '.join(classes)}, each asked about by its name"
                )
            prompt = self.endpoint.prompt.replace("{class}", name)
            return self.model_copy(update={"endpoint": self.endpoint.model_copy(update={"prompt": prompt})})
        if self.huggingface is None or not classes:
            return self
        labels = self.huggingface.positive
        if not isinstance(labels, dict) or set(labels) != set(classes):
            raise FairnessError(
                f"huggingface.positive: expected the labels of '{self.huggingface.name}' that mean each class of the "
                f"corpus ({', '.join(classes)}), by its name; found {', '.join(labels)}"
            )
        positive = labels[name]
        return self.model_copy(update={"huggingface": self.huggingface.model_copy(update={"positive": positive})})

    @property
    def trained(self) -> bool:
        """Whether it is trained here."""
        return ARCHITECTURES[self.architecture].trained

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries whose versions influence its predictions."""
        return ARCHITECTURES[self.architecture].libraries

    def identity(self) -> dict[str, object]:
        """The keys that influence its predictions, as JSON values, without how an endpoint is reached."""
        excluded = {"endpoint": HOW_REACHED, "fitting": {"checkpoint_seconds"}}
        return self.model_dump(mode="json", exclude={"device": True, "published_as": True, **excluded})

    def identity_for_readers(self) -> dict[str, object]:
        """`identity` for a reader: without the training settings if the classifier is not trained here."""
        left_out = () if self.trained else ("fitting", "seeds", "threads")
        return {name: value for name, value in self.identity().items() if name not in left_out}
