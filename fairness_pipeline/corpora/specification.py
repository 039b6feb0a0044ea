"""The contents of a file of `data/corpora` about dialogues, and the parts that all corpora share."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import Positive, Specification, check_address, load

Column = Annotated[int, pydantic.Field(gt=0)] | str
"""A column's name, or its number (from 1) in a file without a line of names."""

Share = Annotated[float, pydantic.Field(ge=0, le=1)]
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_TABULAR = ("tsv", "csv")


class DataFile(Specification):
    """A file of `data` that is part of the project."""

    @classmethod
    def load(cls, name: str) -> Self:
        """Loads the data file `name`; raises FairnessError if it does not exist or is wrong."""
        return load(cls, data_file(name))


class CorpusFile(Specification):
    """One file of a corpus."""

    path: str
    """A path or an address (`https://`). `${NAME}` is replaced from the environment; a relative path starts at the YAML
    file's folder."""
    sha256: Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The SHA-256 that the file must have; required for an address."""

    @pydantic.field_validator("path")
    @classmethod
    def _holds_no_secret(cls, path: str) -> str:
        if path.startswith(("http://", "https://")):
            check_address(path, allow_query=True)
        return path

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.is_address and self.sha256 is None:
            raise ValueError("an address needs 'sha256', so that a run can tell whether the download is the same")
        return self

    @property
    def is_address(self) -> bool:
        """Whether the file must be downloaded first."""
        return self.path.startswith(("http://", "https://"))

    def resolve(self, folder: Path) -> Path:
        """The path on this machine of a file that is not at an address.

        Raises:
            FairnessError: a variable of the path is not set.
        """

        def value(match: re.Match[str]) -> str:
            name = match.group(1)
            if name not in os.environ:
                raise FairnessError(
                    f"{self.path}: the environment has no {name}; set it to the folder that holds the corpus"
                )
            return os.environ[name]

        return (folder / Path(_VARIABLE.sub(value, self.path)).expanduser()).resolve()


class Columns(Specification):
    """The columns of a row, by name, or by number (from 1) if no line names them."""

    context: Column = "context"
    """The turn that is answered."""
    response: Column = "response"
    """The answer."""
    turns: str | None = None
    """A list of turns: texts, or objects with `content`, `text` or `value`. Each turn and the next form a dialogue."""
    thread_id: Column | None = None
    """The thread; its dialogues go into one split. Without this column a row with `turns` is a thread."""
    topic: Column | None = None
    """The topic of the dialogue; every gap is broken down by it."""


class DatasetSource(Specification):
    """A data set of the `datasets` library."""

    name: str
    """The name of the data set, or its folder."""
    configuration: str | None = None
    """The configuration, if the data set has several."""
    split: str = "train"
    """The part to read."""
    revision: str | None = None
    """The commit that the data set is pinned to."""

    def resolve(self, folder: Path) -> str:
        """What to load: the data set's folder if it exists (a relative path starts at `folder`), else its name."""
        path = folder / Path(self.name).expanduser()
        return str(path.resolve()) if path.is_dir() else self.name

    def files(self, folder: Path) -> list[Path]:
        """The files of a data set in a folder; none if the data set is loaded by name."""
        path = Path(self.resolve(folder))
        return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_absolute() else []


class GrammarSource(Specification):
    """A corpus that is generated from a grammar."""

    file: str
    """The grammar, a data file."""
    dialogues: Positive
    """The number of dialogues."""
    seed: int
    """The seed of the draws."""


class ContextsSource(Specification):
    """Shipped contexts, for audits of models that are not trained here."""

    file: str
    """A data file of frames and persons."""


class CorpusSpecification(Specification):
    """One file of `data/corpora`: where single-turn dialogues come from.

    A `tsv` has no quotation marks; `contexts` have no response, so nothing can be trained on them.
    """

    platform: Literal["twitter", "reddit", "other"]
    """The table that the corpus goes to."""
    format: Literal["tsv", "csv", "lines", "jsonl", "comments", "parquet", "dataset", "grammar", "contexts"]
    """The format of the files; docs/add-a-corpus.md explains each."""
    files: tuple[CorpusFile, ...] = ()
    """The files of every format but `dataset`, `grammar` and `contexts`."""
    dataset: DatasetSource | None = None
    """The data set to read, for format `dataset`."""
    grammar: GrammarSource | None = None
    """The grammar to generate the corpus from, for format `grammar`."""
    contexts: ContextsSource | None = None
    """The frames and persons to build contexts from, for format `contexts`."""
    header: bool = True
    """Whether the first line names the columns (`tsv`, `csv`)."""
    columns: Columns = Columns()
    """The columns of a row."""
    replace: dict[str, str] = {}
    """Texts to exchange in every turn before it is cleaned: the old text and the new one."""
    maximum_words: Positive | None = None
    """The largest number of words in a turn; dialogues with longer turns are left out."""
    drop_urls: bool = False
    """Whether turns with a URL are left out with their dialogue."""
    licence: str
    """Printed in the report."""
    citation: str
    """Printed in the report."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        source = self.format if self.format in ("dataset", "grammar", "contexts") else "files"
        for name in ("files", "dataset", "grammar", "contexts"):
            if bool(getattr(self, name)) != (name == source):
                verb = "needs" if name == source else "does not take"
                raise ValueError(f"format '{self.format}' {verb} '{name}'")
        columns = [self.columns.context, self.columns.response, self.columns.thread_id]
        if not self.header and self.format not in _TABULAR:
            raise ValueError(f"'header: false' is for the formats {' and '.join(_TABULAR)}")
        if not self.header and not all(isinstance(column, int) for column in columns[:2]):
            raise ValueError("'header: false' needs the columns' numbers: columns: {context: 1, response: 2}")
        if self.header and any(isinstance(column, int) for column in columns):
            raise ValueError("a column's number needs 'header: false'; expected its name")
        if self.columns.turns and self.format in (*_TABULAR, "lines", "comments", "grammar", "contexts"):
            raise ValueError(f"'columns.turns' is not for format '{self.format}'")
        return self
