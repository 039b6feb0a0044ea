"""The contents of a file of `data/corpora` about texts by authors of two groups (Liu 2022, chapter 4)."""

import re
from string import ascii_lowercase
from typing import Annotated, Any, Self

import pydantic

from fairness_pipeline.corpora.language.phrase_corpus import Encoding
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Positive, Specification

LETTERS = ascii_lowercase
"""The letters that tables use for the groups of a corpus."""
OTHERS = "*"
"""In a list of ignored values: every value that is not named."""


class AuthoredColumns(Specification):
    """The columns of a row."""

    text: str = "text"
    """The column with the text."""
    label: str | None = "label"
    """The label that a classifier predicts; null if the label is whether the text mentions a user."""
    group: str | None = "group"
    """The group of the text's author; null if the text's dialect decides the group."""
    author: str | None = None
    """The text's author. All texts of an author are in the same split and count as one observation."""


class TableFile(CorpusFile):
    """A table: `.csv`, `.tsv`, `.jsonl`, `.json` or `.parquet`; text files plain, `.gz` or `.zst`."""

    encoding: Encoding = "utf-8"
    """The encoding of the file."""
    separator: Annotated[str, pydantic.StringConstraints(min_length=1, max_length=1)] | None = None
    """The character between the cells of a file without quotation marks. By default the file's ending decides."""


class AuthoredFile(TableFile):
    """A table: `.csv`, `.tsv`, `.jsonl`, `.json` or `.parquet`; text files plain, `.gz`, `.zst`, or the only table in a
    `.zip`."""

    columns: AuthoredColumns = AuthoredColumns()
    """The columns of the file."""
    padding: str | None = None
    """A word that pads texts at the front (`0`, in a file where words are numbers)."""
    skip_malformed: bool = False
    """Whether to leave out (and count) a row with too many or too few cells; otherwise such a row is refused."""


class AuthoredGrammar(Specification):
    """A corpus that is generated from a grammar."""

    file: str
    """The grammar, a data file."""
    texts: Positive
    """The number of texts."""
    seed: int
    """The seed of the draws."""


class Labels(Specification):
    """The two classes of labels, or `classes`. A label that is not listed is refused."""

    positive: tuple[str, ...] = ("1",)
    """Labels of the positive class."""
    negative: tuple[str, ...] = ("0",)
    """Labels of the negative class."""
    ignored: tuple[str, ...] = ()
    """Labels whose texts are left out; `*` stands for all labels that are not listed."""
    names: tuple[str, str] = ("positive", "negative")
    """The names of the positive and the negative class in a sentence: `[offensive, inoffensive]`."""
    classes: dict[str, tuple[str, ...]] = {}
    """For more than two classes, instead of the lists: the labels of each class, by its name. Each is judged against
    the rest."""

    @pydantic.model_validator(mode="after")
    def _check_classes(self) -> Self:
        if not self.classes:
            return self
        values = [value for labels in self.classes.values() for value in labels]
        if self.model_fields_set & {"positive", "negative", "names"}:
            raise ValueError("'classes' stand instead of 'positive', 'negative' and 'names': keep one of the two ways")
        if len(self.classes) < 3:
            raise ValueError("'classes' are three or more; two are 'positive' and 'negative'")
        if len(values) > len(set(values)):
            raise ValueError("a label is in two of the 'classes'")
        return self

    def of_class(self, name: str) -> Self:
        """The same labels with two classes: this one, and all others."""
        others = tuple(value for class_name, labels in self.classes.items() if class_name != name for value in labels)
        update = {"positive": self.classes[name], "negative": others, "names": (name, f"not {name}"), "classes": {}}
        return self.model_copy(update=update)


class GroupValues(Specification):
    """The cells of a column that name one group of people."""

    values: tuple[str, ...] = ()
    """The column's values for people of this group."""
    between: tuple[float, float] | None = None
    """Instead of `values`: the lowest and the highest number in the column for people of this group."""

    def holds(self, cell: str) -> bool:
        """Whether a cell names this group."""
        if cell in self.values:
            return True
        if self.between is None or not re.fullmatch(r"-?\d+(\.\d+)?", cell):
            return False
        return self.between[0] <= float(cell) <= self.between[1]

    def overlaps(self, other: "GroupValues") -> bool:
        """Whether a person could be in both groups."""
        if set(self.values) & set(other.values):
            return True
        if not (self.between and other.between):
            return False
        return max(self.between[0], other.between[0]) <= min(self.between[1], other.between[1])


class Group(GroupValues):
    """One of the two groups of authors."""

    name: str
    """The group's name in reports."""


class Dialect(Specification):
    """Groups by the dialect of a text, which a model infers from the words; they do not say who wrote the text."""

    counts: CorpusFile
    """The counts of each word in each dialect: TwitterAAE's `model_count_table.txt`."""
    vocabulary: CorpusFile
    """The words of the counts, in the same order: `model_vocab.txt`."""
    confidence: Annotated[float, pydantic.Field(gt=0.25, lt=1)] = 0.8
    """A text belongs to a group if its share in the group's dialect is above this number; other texts are left out."""


class Groups(Specification):
    """The two groups of authors: a is group I in the papers, b is group II. Or `each` of more than two."""

    a: Group
    """Group I."""
    b: Group
    """Group II."""
    ignored: tuple[str, ...] = ()
    """The column's values for authors in neither group; `*` stands for all other values."""
    dialect: Dialect | None = None
    """If no column names the group: a model that tells White-aligned (a) from African American-aligned English (b)."""
    each: dict[str, tuple[str, ...]] = {}
    """For more than two groups, instead of `a` and `b`: the column's values for each group, by its name. A classifier
    that is trained here is trained on the first (a) and all others (b)."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _fill(cls, content: Any) -> Any:
        """With `each`, a is the first group and b all others, for training."""
        if not isinstance(content, dict) or not content.get("each"):
            return content
        if content.keys() & {"a", "b", "dialect"}:
            raise ValueError("use either 'each' or 'a', 'b' and 'dialect', not both")
        each = content["each"]
        if (
            not isinstance(each, dict)
            or not 3 <= len(each) <= len(LETTERS)
            or not all(isinstance(values, list | tuple) for values in each.values())
        ):
            raise ValueError("'each' names three groups or more, each with a list of values; two are 'a' and 'b'")
        first, *rest = each.items()
        others = [value for _, values in rest for value in values]
        a, b = {"name": str(first[0]), "values": first[1]}, {"name": "others", "values": others}
        return {**content, "a": a, "b": b}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all groups; the group `a` is the first, `b` the second, and so on."""
        return tuple(self.each) or (self.a.name, self.b.name)

    def group_of(self, cell: str) -> str | None:
        """The letter of the group that a cell names; None if it names none."""
        groups = [GroupValues(values=values) for values in self.each.values()] or [self.a, self.b]
        return next((letter for letter, group in zip(LETTERS, groups, strict=False) if group.holds(cell)), None)


class Cells(Specification):
    """A folder with the files `pos_pos`, `pos_neg`, `neg_pos` and `neg_neg` (label, then group), with one text of word
    numbers on each line, and `vocab` (DIAL and PAN16 as Elazar and Goldberg 2018 process them)."""

    folder: str
    """The folder. `${NAME}` is replaced from the environment; a relative path starts at the YAML file's folder."""
    positive_group: Annotated[str, pydantic.StringConstraints(pattern="^[ab]$")] = "b"
    """The group that the file names call `pos`: in DIAL the African American authors."""

    def files(self) -> dict[str, CorpusFile]:
        """The folder's files, by name."""
        return {name: CorpusFile(path=f"{self.folder}/{name}") for name in ("vocab", *CELLS)}


CELLS = ("pos_pos", "pos_neg", "neg_pos", "neg_neg")


class PublishedAs(Specification):
    """The published results that are shown beside ours."""

    dataset: str
    """DIAL, PAN16 or MTC."""
    task: str
    """sentiment, mention or hate_speech."""
    attribute: str
    """race, gender or age."""


def _as_key(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")


class AuthoredCorpus(Specification):
    """A corpus for classifiers: texts with one of two labels, by authors of two groups or more.

    With more labels, each class is compared with the rest (`views`).
    """

    task: str
    """What is predicted, in words for a report."""
    attribute: str
    """The attribute that the groups differ in, in words for a report."""
    grammar: AuthoredGrammar | None = None
    """The grammar to generate the corpus from."""
    files: tuple[AuthoredFile, ...] = ()
    """The tables to read the corpus from."""
    cells: Cells | None = None
    """The folder to read the corpus from."""
    chat_rooms: CorpusFile | None = None
    """The NPS Chat Corpus (`.zip`): the label is the class of a post, and the group is the age of its chat room."""
    labels: Labels = Labels()
    """The two classes of `files` and `chat_rooms`."""
    mention: bool = False
    """Whether the label is that a text mentions a user (`@name`). The mention is then removed from the text."""
    groups: Groups
    """The groups' names and, for `files` and `chat_rooms`, the values that decide the group."""
    maximum: Positive = 50_000
    """The largest number of texts of each label and group."""
    published_as: PublishedAs | None = None
    """The published results that are shown beside ours."""
    licence: str
    """Printed in the report."""
    citation: str
    """Printed in the report."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.labels.classes or self.groups.each) and (self.grammar or self.cells or self.mention):
            raise ValueError("'labels.classes' and 'groups.each' are for labels and groups of 'files' or 'chat_rooms'")
        sources = [name for name in ("grammar", "files", "cells", "chat_rooms") if getattr(self, name)]
        if len(sources) != 1:
            raise ValueError("expected one of 'grammar', 'files', 'cells', 'chat_rooms'")
        if self.grammar or self.cells:
            return self
        groups = (self.groups.a, self.groups.b)
        definitions = [bool(group.values) + (group.between is not None) for group in groups]
        if self.groups.dialect is None and definitions != [1, 1]:
            raise ValueError("each of 'groups' needs 'values', or 'between'")
        if self.groups.dialect is not None and any(definitions):
            raise ValueError("'groups.dialect' tells the groups apart: leave out their 'values' and 'between'")
        if self.groups.dialect is None and any(file.columns.group is None for file in self.files):
            raise ValueError("'columns.group' is missing: which column tells the groups apart?")
        if not self.mention and any(file.columns.label is None for file in self.files):
            raise ValueError("'columns.label' is missing: which column is predicted?")
        a, b = groups
        if a.overlaps(b):
            raise ValueError("the two 'groups' overlap: an author can be in one of them only")
        if set(self.labels.positive) & set(self.labels.negative):
            raise ValueError("a label is in 'labels.positive' and in 'labels.negative'")
        return self

    def views(self, key: str) -> dict[str, Self]:
        """The corpora to audit, by key: this one or, with several classes, one for each class against the rest.

        Raises:
            FairnessError: two names would get one key.
        """
        if not self.labels.classes:
            return {key: self}
        views: dict[str, Self] = {}
        for name in self.labels.classes:
            class_key = f"{key}.{_as_key(name)}"
            if class_key.endswith("."):
                raise FairnessError(f"'{class_key}': a class needs a Latin letter or a digit in its name, for its key")
            if class_key in views:
                raise FairnessError(f"'{class_key}': two classes would get this key; rename one")
            update = {"labels": self.labels.of_class(name), "task": f"{self.task}: {name}", "published_as": None}
            views[class_key] = self.model_copy(update=update)
        return views

    def all_files(self) -> list[CorpusFile]:
        """Every file that the corpus names."""
        dialect = self.groups.dialect
        files = [*self.files, *(self.cells.files().values() if self.cells else ()), self.chat_rooms]
        return [file for file in [*files, *((dialect.counts, dialect.vocabulary) if dialect else ())] if file]
