"""What a file of `data/corpora` may say of texts whose authors belong to one of two groups (Liu 2022, chapter 4)."""

from typing import Annotated, Self

import pydantic

from fairness_pipeline.corpora.language.phrase_corpus import Encoding
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.yaml_files import Positive, Specification

OTHERS = "*"
"""Among what is ignored: everything that is not named."""
_Values = Annotated[tuple[str, ...], pydantic.Field(min_length=1)]


class AuthoredColumns(Specification):
    """Where a row holds what."""

    text: str = "text"
    """What was written."""
    label: str | None = "label"
    """What a classifier is to predict; none where it is whether somebody is mentioned."""
    group: str | None = "group"
    """To which group its author belongs; none where the dialect of the text says so."""
    author: str | None = None
    """Who wrote it: an author's texts fall into one split, and count as one observation."""


class AuthoredFile(CorpusFile):
    """A table: `.csv`, `.tsv`, `.jsonl`, `.json` or `.parquet`; text files plain, `.gz` or `.zst`, a table in a `.zip`
    of its own."""

    columns: AuthoredColumns = AuthoredColumns()
    """Of the file."""
    encoding: Encoding = "utf-8"
    """Of the file."""
    separator: Annotated[str, pydantic.StringConstraints(min_length=1, max_length=1)] | None = None
    """Between the cells of a file without quotation marks; as its ending says where it is left out."""
    padding: str | None = None
    """A word that fills texts up at the front (`0`, where words are numbers)."""
    skip_malformed: bool = False
    """Whether a row with too many or too few cells is left out (and counted); it is refused otherwise."""


class AuthoredGrammar(Specification):
    """A corpus that is generated."""

    file: str
    """Its grammar, a data file."""
    texts: Positive
    """How many."""
    seed: int
    """The seed of the draws."""


class Labels(Specification):
    """The two classes. A label that stands nowhere here is refused."""

    positive: tuple[str, ...] = ("1",)
    """Labels of the positive class."""
    negative: tuple[str, ...] = ("0",)
    """Labels of the negative class."""
    ignored: tuple[str, ...] = ()
    """Labels whose texts are left out; `*` is every other one."""
    names: tuple[str, str] = ("positive", "negative")
    """What the positive and the negative class are called in a sentence: `[offensive, inoffensive]`."""


class Group(Specification):
    """One of the two groups of authors."""

    name: str
    """For a reader."""
    values: tuple[str, ...] = ()
    """What the column says of its authors."""
    between: tuple[float, float] | None = None
    """The numbers that it says of them, lowest and highest, instead."""

    def overlaps(self, other: "Group") -> bool:
        """Whether somebody could be in both."""
        if set(self.values) & set(other.values):
            return True
        if not (self.between and other.between):
            return False
        return max(self.between[0], other.between[0]) <= min(self.between[1], other.between[1])


class Dialect(Specification):
    """Groups by the dialect that a text is written in, as a model infers it from its words: not who wrote it."""

    counts: CorpusFile
    """The counts of each word in each dialect: TwitterAAE's `model_count_table.txt`."""
    vocabulary: CorpusFile
    """Its words, in the same order: `model_vocab.txt`."""
    confidence: Annotated[float, pydantic.Field(gt=0.25, lt=1)] = 0.8
    """The share of a text in a dialect above which it belongs to its group; texts in between are left out."""


class Groups(Specification):
    """The two groups of authors: a is group I of the papers, b group II."""

    a: Group
    """Group I."""
    b: Group
    """Group II."""
    ignored: tuple[str, ...] = ()
    """What the column says of authors in neither; `*` is everything else."""
    dialect: Dialect | None = None
    """Tells White-aligned English (a) from African American-aligned English (b), where no column does."""


class Cells(Specification):
    """A folder with `vocab` and `pos_pos`, `pos_neg`, `neg_pos`, `neg_neg`: label, then group; words by number, a text
    a line (DIAL and PAN16 as Elazar and Goldberg 2018 process them)."""

    folder: str
    """The folder; `${NAME}` is taken from the environment, a relative path starts at the YAML."""
    positive_group: Annotated[str, pydantic.StringConstraints(pattern="^[ab]$")] = "b"
    """Which group is `pos`: in DIAL African American authors."""

    def files(self) -> dict[str, CorpusFile]:
        """Its files, by name."""
        return {name: CorpusFile(path=f"{self.folder}/{name}") for name in ("vocab", *CELLS)}


CELLS = ("pos_pos", "pos_neg", "neg_pos", "neg_neg")


class PublishedAs(Specification):
    """Whose published results stand beside ours."""

    dataset: str
    """DIAL, PAN16 or MTC."""
    task: str
    """sentiment, mention or hate_speech."""
    attribute: str
    """race, gender or age."""


class AuthoredCorpus(Specification):
    """A corpus for classifiers: texts with one of two labels, by authors of one of two groups."""

    task: str
    """What is predicted, for a reader."""
    attribute: str
    """What tells the groups apart, for a reader."""
    grammar: AuthoredGrammar | None = None
    """What it is generated from."""
    files: tuple[AuthoredFile, ...] = ()
    """Tables that it is read from."""
    cells: Cells | None = None
    """A folder that it is read from."""
    chat_rooms: CorpusFile | None = None
    """The NPS Chat Corpus (`.zip`): a post's class is its label, the age of its room its group."""
    labels: Labels = Labels()
    """Of `files` and `chat_rooms`."""
    mention: bool = False
    """Whether a text's label is that it mentions a user (`@name`), which is then taken out of it."""
    groups: Groups
    """The groups' names; of `files` and `chat_rooms` what tells them apart."""
    maximum: Positive = 50_000
    """Texts of a label and group, at most."""
    published_as: PublishedAs | None = None
    """Whose published results stand beside ours."""
    licence: str
    """Printed in the report."""
    citation: str
    """Printed in the report."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        sources = [name for name in ("grammar", "files", "cells", "chat_rooms") if getattr(self, name)]
        if len(sources) != 1:
            raise ValueError("expected one of 'grammar', 'files', 'cells', 'chat_rooms'")
        if self.grammar or self.cells:
            return self
        both = (self.groups.a, self.groups.b)
        told = [bool(group.values) + (group.between is not None) for group in both]
        if self.groups.dialect is None and told != [1, 1]:
            raise ValueError("each of 'groups' needs 'values', or 'between'")
        if self.groups.dialect is not None and any(told):
            raise ValueError("'groups.dialect' tells the groups apart: leave out their 'values' and 'between'")
        if self.groups.dialect is None and any(file.columns.group is None for file in self.files):
            raise ValueError("'columns.group' is missing: which column tells the groups apart?")
        if not self.mention and any(file.columns.label is None for file in self.files):
            raise ValueError("'columns.label' is missing: which column is predicted?")
        a, b = both
        if a.overlaps(b):
            raise ValueError("the two 'groups' overlap: an author can be in one of them only")
        if set(self.labels.positive) & set(self.labels.negative):
            raise ValueError("a label is in 'labels.positive' and in 'labels.negative'")
        return self

    def all_files(self) -> list[CorpusFile]:
        """Every file that it names."""
        dialect = self.groups.dialect
        found = [*self.files, *(self.cells.files().values() if self.cells else ()), self.chat_rooms]
        return [file for file in [*found, *((dialect.counts, dialect.vocabulary) if dialect else ())] if file]
