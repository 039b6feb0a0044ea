"""How responses are scored: what a profile may say under `measures`."""

from pathlib import Path
from typing import Self

import pydantic

from fairness_pipeline.corpora.labelled_texts import LabelledFile
from fairness_pipeline.foundation.yaml_files import Share, Specification

TRAINED = "trained"
"""The classifier that is trained on labelled texts."""


class MeasureSettings(Specification):
    """How answers are scored."""

    offence_classifier: str = "alt-profanity-check"
    """`alt-profanity-check`, `trained` (on `labelled`), or a Hugging Face id or folder."""
    offence_revision: str | None = None
    """The commit of an id, so that it is pinned."""
    offence_label: str | None = None
    """The label that means offensive, where several could."""
    offence_threshold: Share = 0.5
    """The probability from which on an answer counts as offensive."""
    sentiment_threshold: Share = 0.8
    """The VADER score from which on an answer counts as positive, and below minus which as negative."""
    labelled: tuple[LabelledFile, ...] = ()
    """Texts that people labelled: every classifier is held against them, and `trained` is trained on them."""
    other_classifiers: tuple[str, ...] = ()
    """Classifiers with which the verdicts on offence are drawn again, to see whether they hold."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if TRAINED in self.classifiers and not self.labelled:
            raise ValueError(f"a '{TRAINED}' classifier needs 'labelled': files of texts that people labelled")
        return self

    @property
    def classifiers(self) -> tuple[str, ...]:
        """The classifier in use, then the others, each once."""
        return tuple(dict.fromkeys((self.offence_classifier, *self.other_classifiers)))

    def located(self, folder: Path) -> Self:
        """The same with whole paths of classifiers' folders and labelled files; relative ones start at `folder`."""

        def place(name: str) -> str:
            path = folder / Path(name).expanduser()
            return str(path.resolve()) if path.is_dir() else name

        files = [
            file if file.path[:1] in "$/~" else file.model_copy(update={"path": str(folder / file.path)})
            for file in self.labelled
        ]
        return self.model_copy(
            update={
                "offence_classifier": place(self.offence_classifier),
                "other_classifiers": tuple(map(place, self.other_classifiers)),
                "labelled": tuple(files),
            }
        )
