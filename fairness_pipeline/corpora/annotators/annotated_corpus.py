"""The contents of a file of `data/corpora` about items that several people labelled (Liu 2022, chapter 5)."""

import math
from itertools import combinations, product
from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.corpora.classifiers.authored_corpus import GroupValues, Labels, TableFile
from fairness_pipeline.corpora.specification import CorpusFile, Share
from fairness_pipeline.foundation.yaml_files import Positive, Specification

_Pair = tuple[float, float]


class AnnotationColumns(Specification):
    """The columns of a row of annotations."""

    item: str = "item_id"
    """The id of the labelled item."""
    annotator: str = "annotator_id"
    """The id of the annotator."""
    label: str = "label"
    """The label that the annotator gave."""
    text: str | None = None
    """The item's text, if there is no items' file with a text."""
    gold: str | None = None
    """The item's true label, if there is no items' file with gold labels."""


class ItemColumns(Specification):
    """The columns of a row of items."""

    item: str = "item_id"
    """The id of the item."""
    text: str | None = None
    """The text that a classifier gets and that a report shows."""
    features: tuple[str, ...] = ()
    """Columns of numbers that a classifier gets instead of the text."""
    gold: str | None = None
    """The item's true label, written as in the annotations; empty if it is not known."""
    split: str | None = None
    """`train` or `test`; other values (`dev`) count as train. If it is left out, a hash decides the split."""


class AnnotationsFile(TableFile):
    """A file with one row for each label."""

    form: Literal["table", "label_studio", "prodigy"] = "table"
    """A table, Label Studio's JSON export, or Prodigy's JSON lines."""
    columns: AnnotationColumns = AnnotationColumns()
    """The columns of a table. The two exports only use `text`, the field that was shown (by default `text`)."""
    question: str | None = None
    """The question to read from Label Studio's export (`from_name`), if it has several."""


class ItemsFile(TableFile):
    """A file with one row for each item."""

    columns: ItemColumns = ItemColumns()
    """The columns of the file."""


class AnnotatorsFile(TableFile):
    """A file with one row for each annotator, with the categories' columns."""

    annotator: str = "annotator_id"
    """The column with the annotator's id."""


class AnnotatorGroup(GroupValues):
    """A group of annotators: `values`, or `between`; a list stands for `values`."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _list(cls, content: Any) -> Any:
        return {"values": content} if isinstance(content, list | tuple) else content

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.values) == (self.between is not None):
            raise ValueError("expected a list of values, or 'between'")
        return self


class Category(Specification):
    """A property that divides annotators into groups. Annotators in none of them get the mean effect."""

    column: str
    """A column of the annotators' file, or of the annotations if there is no annotators' file."""
    groups: dict[str, AnnotatorGroup]
    """The groups by name, two or more, each with the column's values (a list), or `between` two numbers. If there are
    three or more, a group of fewer than five annotators counts as unknown."""
    ignored: tuple[str, ...] = ()
    """The column's values for people in no group; `*` stands for all other values. An empty cell means unknown."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _two(cls, content: Any) -> Any:
        """Two groups may also be named `a` and `b`, each with its `name`."""
        if not isinstance(content, dict) or not content.keys() & {"a", "b"}:
            return content
        sections = [content.get(side, {}) for side in "ab"]
        if "groups" in content or not all(isinstance(group, dict) and "name" in group for group in sections):
            raise ValueError("expected 'groups', or both 'a' and 'b', each with a 'name'")
        groups = {str(group["name"]): {k: v for k, v in group.items() if k != "name"} for group in sections}
        return {**{k: v for k, v in content.items() if k not in ("a", "b")}, "groups": groups}

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.groups) < 2:
            raise ValueError(f"expected two 'groups' or more, found {len(self.groups)}")
        for (name, group), (other_name, other_group) in combinations(self.groups.items(), 2):
            if group.overlaps(other_group):
                raise ValueError(f"'{name}' and '{other_name}' overlap: an annotator can be in one of them only")
        return self

    def group_of(self, cell: str) -> str | None:
        """The group that a cell names; None if it names none."""
        return next((name for name, group in self.groups.items() if group.holds(cell)), None)


FEWEST_RATERS = 5
"""In a category of three groups or more, a group of fewer annotators is too small to be compared and counts as
unknown."""
CROSS = " × "
"""The separator in the names of crossed categories and of crossed groups."""


class AnnotationLabels(Labels):
    """The classes of labels: two, `classes`, or two parts of a scale. A label that is not listed is refused."""

    at_least: float | None = None
    """For ratings, instead of the lists: numbers from this one on are positive, and numbers below it are negative."""

    @pydantic.model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.at_least is not None and self.model_fields_set & {"positive", "negative", "classes"}:
            raise ValueError("use either 'at_least' or 'positive' and 'negative' (or 'classes'), not both")
        return self

    @property
    def class_names(self) -> tuple[str, ...]:
        """The name of each class, by number from 0; of two classes, the positive one is 1."""
        return tuple(self.classes) or self.names[::-1]

    def class_of(self, label: str) -> int | None:
        """The number of a label's class; None for a label of no class."""
        if self.classes:
            return next((number for number, labels in enumerate(self.classes.values()) if label in labels), None)
        if self.at_least is not None:
            try:
                rating = float(label)
            except ValueError:
                return None
            return int(rating >= self.at_least) if math.isfinite(rating) else None
        return 1 if label in self.positive else 0 if label in self.negative else None


class SimulatedCategory(Specification):
    """The parameters of groups 0 and 1 of one category (Liu 2022, table 5.4)."""

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
    """The number of labelled points of each class. Half as many of each class are kept as a test set."""
    annotators: Positive = 40
    """The number of annotators. Each is in a random group of every category."""
    labels: Positive = 4
    """The number of labels for each item, by different annotators."""
    level: float | _Pair = -0.3
    """u: an annotator's sensitivity is u + the parameters of their groups + an individual effect. Of a pair, the second
    number is for specificities."""
    individual_sd: Annotated[float, pydantic.Field(ge=0)] = 0.1
    """The standard deviation of the individual effects."""
    edge: Annotated[float, pydantic.Field(ge=0, lt=0.5)] = 0.02
    """Sensitivities and specificities are kept this far from 0 and 1."""
    categories: Annotated[dict[str, SimulatedCategory], pydantic.Field(min_length=1)]
    """The categories, by name."""
    draws: Positive = 5
    """How often the whole corpus is drawn."""
    seed: int = 1
    """The seed of the draws."""

    def level_of(self, response: str) -> float:
        """u of `sensitivity`, or of `specificity`."""
        return self.level[response == "specificity"] if isinstance(self.level, tuple) else self.level

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.labels > self.annotators:
            raise ValueError(f"'labels' of an item ({self.labels}) are by different 'annotators' ({self.annotators})")
        return self


def of_class(category: str, name: str) -> str:
    """The name of the comparison of a category's groups on one of several classes."""
    return f"{category}: {name}"


class AnnotatedCorpus(Specification):
    """Items that several people labelled as one of two or more classes, and what is known about these people."""

    task: str
    """What is labelled, in words for a report."""
    simulated: Simulated | None = None
    """The simulation to draw the corpus from."""
    annotations: tuple[AnnotationsFile, ...] = ()
    """The files with the annotations."""
    annotators: AnnotatorsFile | None = None
    """The file with the annotators."""
    items: ItemsFile | None = None
    """The file with the items."""
    labels: AnnotationLabels = AnnotationLabels()
    """The classes of the annotations and the gold labels."""
    categories: dict[str, Category] = {}
    """The categories that divide annotators into groups, by name."""
    crossed: tuple[tuple[str, str], ...] = ()
    """Pairs of categories whose groups are also compared together: `[[gender, race]]`."""
    modelled: tuple[str, ...] = ()
    """The categories that models of groups use; by default all but crossed ones. The others are compared, too."""
    repeated: Literal["refuse", "first"] = "refuse"
    """What to do if an annotator labelled an item twice: refuse the corpus, or count the first label."""
    inconsistent: Literal["refuse", "unknown"] = "refuse"
    """What to do if an annotator's rows name different groups: refuse the corpus, or treat the group as unknown."""
    unlisted: Literal["refuse", "unknown"] = "refuse"
    """What to do if an annotator is not in the annotators' file: refuse the corpus, or treat the groups as unknown."""
    unlabelled: Literal["refuse", "leave_out"] = "refuse"
    """What to do with an item that nobody labelled."""
    test_share: Share = 0.2
    """The share of items to test a trained classifier on, if the items do not name their split."""
    published_as: str | None = None
    """The data set whose published results are shown beside ours."""
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
        if unknown := {name for pair in self.crossed for name in pair} - set(self.categories):
            raise ValueError(f"'crossed' names no category: {', '.join(sorted(unknown))}")
        if unknown := set(self.modelled) - set(self.groups):
            raise ValueError(f"'modelled' names no category: {', '.join(sorted(unknown))}")
        if len(self.compared) < len(self.groups) * max(1, len(self.labels.classes)):
            raise ValueError("two pairs of a category and a class have the same name ('a: b'); rename one")
        if self.simulated and self.labels.classes:
            raise ValueError("a simulated corpus has two classes")
        if (
            self.labels.at_least is None
            and not self.labels.classes
            and set(self.labels.positive) & set(self.labels.negative)
        ):
            raise ValueError("a label is in 'labels.positive' and in 'labels.negative'")
        return self

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The names of the groups of each category, and of crossed ones."""
        if self.simulated:
            return dict.fromkeys(self.simulated.categories, ("group 0", "group 1"))
        by_category = {name: tuple(category.groups) for name, category in self.categories.items()}
        crossed = {CROSS.join(names): product(*(by_category[name] for name in names)) for names in self.crossed}
        return by_category | {name: tuple(map(CROSS.join, groups)) for name, groups in crossed.items()}

    @property
    def modelled_categories(self) -> tuple[str, ...]:
        """The categories that models of groups use."""
        return self.modelled or tuple(name for name in self.groups if CROSS not in name)

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return bool(self.labels.classes)

    @property
    def compared(self) -> dict[str, tuple[str, ...]]:
        """The groups of each comparison: of a category or, with several classes, of a category and a class."""
        if not self.several:
            return self.groups
        return {
            of_class(name, class_name): groups
            for name, groups in self.groups.items()
            for class_name in self.labels.classes
        }

    @property
    def learnable(self) -> bool:
        """Whether a classifier can read the items; it learns two classes."""
        if self.simulated:
            return True
        if self.several:
            return False
        if self.items and (self.items.columns.text or self.items.columns.features):
            return True
        return any(file.form != "table" or file.columns.text for file in self.annotations)

    def all_files(self) -> list[CorpusFile]:
        """Every file that the corpus names."""
        return [file for file in (*self.annotations, self.annotators, self.items) if file]
