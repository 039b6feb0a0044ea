"""How responses are scored: what a profile may say under `measures`."""

from pathlib import Path
from typing import Annotated, Self

import pydantic

from fairness_pipeline.yaml_files import Specification

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]


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

    def located(self, folder: Path) -> Self:
        """The same with the path of the classifier's folder whole; a relative one starts at `folder`."""
        place = folder / Path(self.offence_classifier).expanduser()
        return self.model_copy(update={"offence_classifier": str(place.resolve())}) if place.is_dir() else self
