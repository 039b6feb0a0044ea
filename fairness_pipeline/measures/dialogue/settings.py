"""How responses are scored: the settings of a profile under `measures`."""

from pathlib import Path
from typing import Literal, Self

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
    """The commit of a Hugging Face id, to pin the model."""
    offence_label: str | None = None
    """The label that means offensive, if several could."""
    offence_threshold: Share = 0.5
    """An answer counts as offensive from this probability on."""
    sentiment_threshold: Share = 0.8
    """An answer counts as positive above this VADER score, and as negative below its negative."""
    embedding_model: str | None = None
    """A Hugging Face encoder, by id or folder, whose vectors say how far two answers are apart. None leaves that
    out."""
    embedding_revision: str | None = None
    """The commit of its id, to pin the model."""
    labelled: tuple[LabelledFile, ...] = ()
    """Texts labelled by people. Every classifier is evaluated on them, and `trained` is trained on them."""
    further: tuple[Literal["help", "decisions"], ...] = ()
    """Measures on request, of answers to requests and questions: `help` (steps, level of language, questions back,
    referrals, the police), `decisions` (an answer begins with yes, or with no)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where Hugging Face classifiers and encoders run; `auto`: on a GPU, if there is one and the model is not small."""
    other_classifiers: tuple[str, ...] = ()
    """Classifiers with which the verdicts on offence are repeated, to see whether they hold."""

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
        """The same settings with full paths of models' folders and labelled files. Relative paths start at
        `folder`."""

        def resolved(name: str) -> str:
            path = folder / Path(name).expanduser()
            return str(path.resolve()) if path.is_dir() else name

        files = [
            file if file.path[:1] in "$/~" else file.model_copy(update={"path": str(folder / file.path)})
            for file in self.labelled
        ]
        return self.model_copy(
            update={
                "offence_classifier": resolved(self.offence_classifier),
                "embedding_model": resolved(self.embedding_model) if self.embedding_model else None,
                "other_classifiers": tuple(map(resolved, self.other_classifiers)),
                "labelled": tuple(files),
            }
        )
