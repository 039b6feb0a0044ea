"""What a file of `data/corpora` may say of items that several people labelled (Liu 2022, chapter 5)."""

from typing import Annotated, Literal, Self

import pydantic

from fairness_pipeline.corpora.classifiers.authored_corpus import Group, Labels
from fairness_pipeline.corpora.language.phrase_corpus import Encoding
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.yaml_files import Positive, Specification

Share = Annotated[float, pydantic.Field(ge=0, le=1)]
_Pair = tuple[float, float]


class AnnotationColumns(Specification):
    """Where a row of annotations holds what."""

    item: str = "item_id"
    """Which item is labelled."""
    annotator: str = "annotator_id"
    """By whom."""
    label: str = "label"
    """As what."""
    text: str | None = None
    """The item's text, where no items' file has it."""
    gold: str | None = None
    """What the item truly is, where no items' file has it."""


class ItemColumns(Specification):
    """Where a row of items holds what."""

    item: str = "item_id"
    """Which item."""
    text: str | None = None
    """What a classifier reads and a reader sees."""
    features: tuple[str, ...] = ()
    """Numbers that a classifier reads instead."""
    gold: str | None = None
    """What the item truly is: a label as in the annotations; empty where it is not known."""
    split: str | None = None
    """`train` or `test`; others (`dev`) count as train. Drawn by hash where it is left out."""


class _Table(CorpusFile):
    """A table: `.csv`, `.tsv`, `.jsonl`, `.json` or `.parquet`; text files plain, `.gz` or `.zst`."""

    encoding: Encoding = "utf-8"
    """Of the file."""
    separator: Annotated[str, pydantic.StringConstraints(min_length=1, max_length=1)] | None = None
    """Between the cells of a file without quotation marks; as its ending says where it is left out."""


class AnnotationsFile(_Table):
    """A row a label."""

    form: Literal["table", "label_studio", "prodigy"] = "table"
    """A table, Label Studio's JSON export, or Prodigy's JSON lines."""
    columns: AnnotationColumns = AnnotationColumns()
    """Of a table; `text` also of the other two, where it is the field that is shown (`text`)."""
    question: str | None = None
    """Which of Label Studio's questions (`from_name`), where it asks several."""


class ItemsFile(_Table):
    """A row an item."""

    columns: ItemColumns = ItemColumns()
    """Of the file."""


class AnnotatorsFile(_Table):
    """A row an annotator, with the categories' columns."""

    annotator: str = "annotator_id"
    """Who."""


class Category(Specification):
    """One thing that tells two groups of annotators apart; whoever is in neither group has the mean effect."""

    column: str
    """Of the annotators' file; of the annotations' where there is none."""
    a: Group
    """The first group."""
    b: Group
    """The second group."""
    ignored: tuple[str, ...] = ()
    """What the column says of people in neither; `*` is everything else. An empty cell is not known."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if not all(bool(group.values) != (group.between is not None) for group in (self.a, self.b)):
            raise ValueError("each of 'a' and 'b' needs 'values', or 'between'")
        if self.a.overlaps(self.b):
            raise ValueError("'a' and 'b' overlap: an annotator can be in one of them only")
        return self


class AnnotationLabels(Labels):
    """The two classes of labels. A label that stands nowhere here is refused."""

    at_least: float | None = None
    """Of ratings: a number from here on is positive and one below is negative; instead of the lists."""

    @pydantic.model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.at_least is not None and self.model_fields_set & {"positive", "negative"}:
            raise ValueError("'at_least' stands instead of 'positive' and 'negative': keep one of the two ways")
        return self


class SimulatedCategory(Specification):
    """Group parameters of one category, of its groups 0 and 1 (Liu 2022, table 5.4)."""

    sensitivity: _Pair
    """alpha_{p,0}, alpha_{p,1}."""
    specificity: _Pair
    """beta_{p,0}, beta_{p,1}."""


class Simulated(Specification):
    """Two-dimensional points of two classes, labelled by simulated annotators (Liu 2022, section 5.4.2)."""

    shape: Literal["circle", "moon"]
    """A ring around a disc, or two half-moons."""
    noise: Annotated[float, pydantic.Field(ge=0)] = 0.1
    """Standard deviation of the points around the shape."""
    instances: Positive = 400
    """Points of each class that are labelled; half as many of each class are kept to test on."""
    annotators: Positive = 40
    """How many; each in a random group of every category."""
    labels: Positive = 4
    """Of each item, by different annotators."""
    level: float = -0.3
    """u: an annotator's sensitivity is u + the parameters of their groups + an individual effect."""
    individual_sd: Annotated[float, pydantic.Field(ge=0)] = 0.1
    """Of individual effects."""
    edge: Annotated[float, pydantic.Field(ge=0, lt=0.5)] = 0.02
    """Sensitivities and specificities are kept this far from 0 and 1."""
    categories: Annotated[dict[str, SimulatedCategory], pydantic.Field(min_length=1)]
    """By name."""
    draws: Positive = 5
    """How often all of it is drawn."""
    seed: int = 1
    """Of the draws."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.labels > self.annotators:
            raise ValueError(f"'labels' of an item ({self.labels}) are by different 'annotators' ({self.annotators})")
        return self


class AnnotatedCorpus(Specification):
    """Items that several people labelled as one of two classes, and what is known of these people."""

    task: str
    """What is labelled, for a reader."""
    simulated: Simulated | None = None
    """How it is simulated."""
    annotations: tuple[AnnotationsFile, ...] = ()
    """Files that it is read from."""
    annotators: AnnotatorsFile | None = None
    """Who labelled."""
    items: ItemsFile | None = None
    """What was labelled."""
    labels: AnnotationLabels = AnnotationLabels()
    """Of the annotations, and of gold labels."""
    categories: dict[str, Category] = {}
    """What tells annotators apart, by name."""
    repeated: Literal["refuse", "first"] = "refuse"
    """What is done where an annotator labelled an item again: it is an error, or the first label counts."""
    inconsistent: Literal["refuse", "unknown"] = "refuse"
    """What is done where an annotator is in one group here and in another there: an error, or it is not known."""
    unlisted: Literal["refuse", "unknown"] = "refuse"
    """What is done where an annotator is not in the annotators' file: an error, or their groups are not known."""
    unlabelled: Literal["refuse", "leave_out"] = "refuse"
    """What is done with an item that nobody labelled."""
    test_share: Share = 0.2
    """Share of items to test a learned classifier on, where the items do not say."""
    published_as: str | None = None
    """The data set whose published results stand beside ours."""
    licence: str
    """Printed in the report."""
    citation: str
    """Printed in the report."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.simulated) == bool(self.annotations):
            raise ValueError("expected one of 'simulated' and 'annotations'")
        if self.simulated and (self.annotators or self.items or self.categories):
            raise ValueError("a simulated corpus has no 'annotators', 'items' or 'categories' of its own")
        if self.labels.at_least is None and set(self.labels.positive) & set(self.labels.negative):
            raise ValueError("a label is in 'labels.positive' and in 'labels.negative'")
        return self

    @property
    def groups(self) -> dict[str, tuple[str, str]]:
        """The names of both groups of each category."""
        if self.simulated:
            return dict.fromkeys(self.simulated.categories, ("group 0", "group 1"))
        return {name: (own.a.name, own.b.name) for name, own in self.categories.items()}

    @property
    def learnable(self) -> bool:
        """Whether a classifier can read the items."""
        if self.simulated:
            return True
        if self.items and (self.items.columns.text or self.items.columns.features):
            return True
        return any(file.form != "table" or file.columns.text for file in self.annotations)

    def all_files(self) -> list[CorpusFile]:
        """Every file that it names."""
        return [file for file in (*self.annotations, self.annotators, self.items) if file]
