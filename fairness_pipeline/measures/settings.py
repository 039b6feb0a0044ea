"""How responses are scored: what a profile may say under `measures`."""

from pathlib import Path
from typing import Annotated, Self

import pydantic

from fairness_pipeline.yaml_files import Specification

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]


class MeasureSettings(Specification):
    """How answers are scored."""

    offence_classifier: str = "alt-profanity-check"
    """`alt-profanity-check`, or a Hugging Face id or folder."""
    offence_revision: str | None = None
    """The commit of an id, so that it is pinned."""
    offence_label: str | None = None
    """The label that means offensive, where several could."""
    offence_threshold: Share = 0.5
    """The probability from which on an answer counts as offensive."""
    sentiment_threshold: Share = 0.8
    """The VADER score from which on an answer counts as positive, and below minus which as negative."""

    def located(self, folder: Path) -> Self:
        """The same with the path of the classifier's folder whole; a relative one starts at `folder`."""
        place = folder / Path(self.offence_classifier).expanduser()
        return self.model_copy(update={"offence_classifier": str(place.resolve())}) if place.is_dir() else self
