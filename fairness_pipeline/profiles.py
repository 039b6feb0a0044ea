"""What a file of `data/profiles` may say: its corpora, dimensions and models, their sizes, seeds and margins."""

from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.yaml_files import Positive, Specification

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]

Weight = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class Splits(Specification):
    """Share of threads in each split; relative to their sum. Where nothing is trained, only `audit` needs any."""

    train: Weight
    valid: Weight
    test: Weight
    audit: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class PairSettings(Specification):
    """How context pairs are made: at most `maximum`, by default as many as the papers have."""

    maximum: Positive = 300_000
    both_sides: Literal["drop", "swap"] = "drop"
    pronouns: Literal["published", "extended"] = "published"


class MeasureSettings(Specification):
    """How responses are scored.

    `offence_classifier` is `alt-profanity-check`, or a Hugging Face id (pin it with `offence_revision`) or folder;
    `offence_label` names the label that means offensive where several could.
    """

    offence_classifier: str = "alt-profanity-check"
    offence_revision: str | None = None
    offence_label: str | None = None
    offence_threshold: Share = 0.5
    sentiment_threshold: Share = 0.8


class SignificanceSettings(Specification):
    """How differences are judged. `margins` is by measure; `default` holds for those it does not name."""

    alpha: Share = 0.05
    margins: dict[str, Margin] = {"default": Margin(relative=0.1)}
    permutations: Positive = 1000
    jackknife_blocks: Annotated[int, pydantic.Field(ge=2)] = 50

    @pydantic.field_validator("margins")
    @classmethod
    def _has_default(cls, margins: dict[str, Margin]) -> dict[str, Margin]:
        if "default" not in margins:
            raise ValueError("expected a margin under 'default'")
        return margins

    def margin(self, measure: str) -> Margin:
        """The margin of one measure."""
        return self.margins.get(measure, self.margins["default"])


class EquitySettings(Specification):
    """How sentiment systems are trained and judged.

    `tweets` are files in the format of SemEval-2018 Task 1: whole paths, or names inside the data folder. `margin` is
    the largest difference between the groups' scores (in 0..1) that does not matter.
    """

    tweets: Annotated[tuple[str, ...], pydantic.Field(min_length=1)] = ("affect/sample.tsv",)
    margin: Margin = Margin(absolute=0.01)
    alpha: Share = 0.05


class Profile(Specification):
    """One file of `data/profiles`.

    `models` maps a model's key to what this profile changes in its file (its corpus, its sizes); models whose responses
    are imported come on top. Debiased models are made in the dimensions of `debias` (all where it is left out); those
    of the others wait until they are asked for. `systems` are the sentiment systems, with what the profile changes in
    their files; a profile of systems alone needs neither corpora nor models. Where `splits` is left out every thread is
    audited; that leaves nothing to train on.
    """

    description: str
    seed: int
    corpora: tuple[str, ...] = ()
    dimensions: tuple[str, ...]
    models: dict[str, dict[str, Any]] = {}
    debias: tuple[str, ...] | None = None
    systems: dict[str, dict[str, Any]] = {}
    equity: EquitySettings = EquitySettings()
    splits: Splits = Splits(train=0, valid=0, test=0, audit=1)
    pairs: PairSettings = PairSettings()
    measures: MeasureSettings = MeasureSettings()
    significance: SignificanceSettings = SignificanceSettings()
    examples: Positive = 8

    @pydantic.model_validator(mode="after")
    def _has_something_to_audit(self) -> Self:
        if not self.corpora and "systems" not in self.model_fields_set:  # score files are systems that stand nowhere
            raise ValueError("expected 'corpora' (to audit dialogue models on) or 'systems', found neither")
        return self

    @pydantic.field_validator("corpora", "dimensions")
    @classmethod
    def _each_once(cls, names: Any, field: pydantic.ValidationInfo) -> Any:
        if not names and field.field_name == "dimensions":
            raise ValueError("expected at least one, found none")
        doubled = [name for name in names if list(names).count(name) > 1]
        if doubled:
            raise ValueError(f"'{doubled[0]}' is listed twice; keep one")
        return names
