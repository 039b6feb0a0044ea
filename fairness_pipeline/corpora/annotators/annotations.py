"""Reads items, their annotators and their labels from tables or exports, checks them, and makes tables of them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from fairness_pipeline.corpora.annotators.annotated_corpus import (
    CROSS,
    AnnotatedCorpus,
    AnnotationsFile,
    Category,
)
from fairness_pipeline.corpora.annotators.annotation_exports import read_label_studio, read_prodigy
from fairness_pipeline.corpora.annotators.simulated_annotations import simulate
from fairness_pipeline.corpora.classifiers.authored_texts import is_ignored
from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.draws import uniform
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.foundation.progress import Progress, track
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.foundation.schemas import fields, optional, schema

ANNOTATIONS = schema(
    draw=(pa.int64(), "of a simulated corpus, from 1; 1 is the only one of others"),
    item_id=(pa.string(), "the item, as the corpus names it"),
    annotator_id=(pa.string(), "who labelled, as the corpus names them"),
    label=(pa.int64(), "1 (positive) or 0; of more than two classes the place of the class, from 0"),
)
ITEMS = schema(
    **fields(ANNOTATIONS, "draw", "item_id"),
    text=(pa.string(), "what was labelled; empty where it is not known"),
    features=(pa.list_(pa.float64()), "numbers that a classifier reads instead; empty where there are none"),
    split=(pa.string(), "train, or test (for a classifier that learns from inferred labels)"),
    gold=optional(pa.int64(), "what the item is, where that is known"),
)
ANNOTATORS = schema(
    **fields(ANNOTATIONS, "draw", "annotator_id"),
    category=(
        pa.string(),
        "what tells groups of annotators apart; empty for one annotator, or where there is none",
    ),
    group=optional(pa.string(), "the annotator's group; null where it is not known"),
    place=optional(pa.int64(), "the place of the group among those of the category, from 0"),
    sensitivity=optional(pa.float64(), "the annotator's simulated share of positive items called positive"),
    specificity=optional(pa.float64(), "the annotator's simulated share of negative items called negative"),
)
"""One row for each annotator and category; in a corpus without categories, for each annotator."""
_EXAMPLES = 8


class Annotated(NamedTuple):
    """Tables of `ANNOTATIONS`, `ITEMS` and `ANNOTATORS`, and how many labels or items were left out for each reason."""

    annotations: pa.Table
    items: pa.Table
    annotators: pa.Table
    left_out: dict[str, int]


def read_annotated(corpus: AnnotatedCorpus, folder: Path, progress: Progress | None = None) -> Annotated:
    """Reads or simulates a corpus as its file declares it; `progress` receives the number of labels read.

    Raises:
        FairnessError: a file is missing or broken; a label belongs to neither class; an annotator labelled an item
            twice, is not in the annotators' file, or is in two groups; the annotators' file names nobody who
            labelled; a category has only one group; an item has no label. Names file and line.
    """
    if corpus.simulated:
        return _simulated(corpus)
    left_out: Counter[str] = Counter()
    items = _Items(corpus, folder)
    annotators = _Annotators(corpus, folder)
    rows: dict[tuple[str, str], int] = {}
    labelled_at: dict[tuple[str, str], str] = {}
    unmapped: Counter[str] = Counter()
    unmapped_at: dict[str, str] = {}
    records = (entry for file in corpus.annotations for entry in _records(file, folder, left_out))
    for where, record, file in track(records, progress, note="labels"):
        item, annotator = (_cell(where, record, name) for name in (file.columns.item, file.columns.annotator))
        cell = _as_text(column(where, record, file.columns.label))
        label = corpus.labels.class_of(cell)
        if label is None:
            if is_ignored(cell, corpus.labels.ignored):
                left_out["of an ignored label"] += 1
            else:
                unmapped[cell] += 1
                unmapped_at.setdefault(cell, where)
            continue
        if (item, annotator) in rows:
            if corpus.repeated == "refuse":
                raise FairnessError(
                    f"{where}: '{annotator}' labelled '{item}' already ({labelled_at[item, annotator]}); keep one "
                    "label, or let the first count: repeated: first"
                )
            left_out["of an item again by the same annotator"] += 1
            continue
        annotators.add(where, annotator, record)
        items.add(where, item, record, file)
        rows[item, annotator] = label
        if corpus.repeated == "refuse":
            labelled_at[item, annotator] = where.rpartition(", ")[2]
    if unmapped:
        examples = ", ".join(f"{value!r} ({count:,})" for value, count in unmapped.most_common(_EXAMPLES))
        cell = next(iter(unmapped))
        advice = (
            f"The classes are {', '.join(corpus.labels.classes)}: put each under one of labels.classes, or under "
            "labels.ignored ('*' is every other)"
            if corpus.several
            else "There are two classes: put each under labels.positive, labels.negative or labels.ignored ('*' is "
            "every other), or say labels.at_least; for more than two, labels.classes"
        )
        raise FairnessError(
            f"{unmapped_at[cell]}: label {cell!r} is not mapped; {number_of(len(unmapped), 'unmapped value')}: "
            f"{examples}. {advice}"
        )
    if not rows:
        raise FairnessError(
            f"{', '.join(file.path for file in corpus.annotations)}: expected labels, found none{_left(left_out)}"
        )
    labels = pa.table(
        {
            "draw": pa.array([1] * len(rows)),
            "item_id": [item for item, _ in rows],
            "annotator_id": [annotator for _, annotator in rows],
            "label": pa.array(list(rows.values()), pa.int64()),
        },
        schema=ANNOTATIONS,
    )
    labelled = {item for item, _ in rows}
    item_table = items.table(labelled, left_out)
    return Annotated(
        labels,
        item_table,
        annotators.table({annotator_id for _, annotator_id in rows}),
        {k: n for k, n in left_out.items() if n},
    )


class _Items:
    """The items, read from the items' file or from the annotations."""

    def __init__(self, corpus: AnnotatedCorpus, folder: Path) -> None:
        self._corpus = corpus
        self._rows: dict[str, dict[str, Any]] = {}
        self._where: dict[str, str] = {}
        self._known = corpus.items is not None
        if corpus.items is None:
            return
        columns = corpus.items.columns
        self._path = located(corpus.items, folder)
        for where, record in read_records(self._path, corpus.items.encoding, separator=corpus.items.separator):
            item = _cell(where, record, columns.item)
            if item in self._rows:
                raise FairnessError(f"{where}: item '{item}' stands there already ({self._where[item]})")
            self._where[item] = where
            split = _cell(where, record, columns.split).lower() if columns.split else None
            self._rows[item] = {
                "text": str(column(where, record, columns.text) or "") if columns.text else "",
                "features": [_number(where, record, name) for name in columns.features],
                "gold": self._gold(where, record, columns.gold) if columns.gold else None,
                "split": self._drawn_split(item) if split is None else "test" if split == "test" else "train",
            }

    def add(self, where: str, item: str, record: dict[str, Any], file: AnnotationsFile) -> None:
        """Adds an item that somebody labelled."""
        if self._known:
            if item not in self._rows:
                raise FairnessError(
                    f"{where}: item '{item}' is not in {self._path}; add a row for it, or name no items' file"
                )
        elif item not in self._rows:
            columns = file.columns
            text = columns.text or ("text" if file.form != "table" else None)
            self._rows[item] = {
                "text": str(column(where, record, text) or "") if text else "",
                "features": [],
                "gold": self._gold(where, record, columns.gold) if columns.gold else None,
                "split": self._drawn_split(item),
            }

    def table(self, labelled: set[str], left_out: Counter[str]) -> pa.Table:
        """A table of `ITEMS`."""
        unlabelled = [item for item in self._rows if item not in labelled]
        if unlabelled and self._corpus.unlabelled == "refuse":
            raise FairnessError(
                f"{self._where[unlabelled[0]]}: item '{unlabelled[0]}' has no label; {len(unlabelled):,} such items. "
                "Leave them out of the file, or say unlabelled: leave_out"
            )
        left_out["items that nobody labelled"] += len(unlabelled)
        rows = [{"draw": 1, "item_id": item, **row} for item, row in self._rows.items() if item in labelled]
        return pa.Table.from_pylist(rows, schema=ITEMS)

    def _gold(self, where: str, record: dict[str, Any], name: str) -> int | None:
        cell = _as_text(column(where, record, name))
        label = self._corpus.labels.class_of(cell)
        if label is None and cell and not is_ignored(cell, self._corpus.labels.ignored):
            raise FairnessError(f"{where}: gold label {cell!r} is of no class; see 'labels'")
        return label

    def _drawn_split(self, item: str) -> str:
        return "test" if uniform(f"split {item}") < self._corpus.test_share else "train"


class _Annotators:
    """The group of each annotator in each category."""

    def __init__(self, corpus: AnnotatedCorpus, folder: Path) -> None:
        self._corpus = corpus
        self._groups: dict[str, dict[str, str | None]] = {}
        self._where: dict[str, str] = {}
        self._cells: dict[str, tuple[str, ...]] = {}
        self._unlisted: set[str] = set()
        self._path = located(corpus.annotators, folder) if corpus.annotators else None
        if corpus.annotators and self._path:
            source = corpus.annotators
            for where, record in read_records(self._path, source.encoding, separator=source.separator):
                self._add_groups(where, _cell(where, record, source.annotator), record)
            if not self._groups:
                raise FairnessError(f"{self._path}: expected annotators, found none")

    def add(self, where: str, annotator: str, record: dict[str, Any]) -> None:
        """Adds an annotator who labelled something."""
        if self._path is None:
            self._add_groups(where, annotator, record)
        elif annotator not in self._groups:
            if self._corpus.unlisted == "refuse":
                raise FairnessError(
                    f"{where}: annotator '{annotator}' is not in {self._path}; add a row for them (empty cells where "
                    "nothing is known), or treat the groups as unknown with 'unlisted: unknown'"
                )
            self._groups[annotator] = dict.fromkeys(self._corpus.categories)
            self._unlisted.add(annotator)

    def table(self, labelled: set[str]) -> pa.Table:
        """A table of `ANNOTATORS`, with only those who labelled something."""
        if self._path and not (labelled - self._unlisted) & self._groups.keys():
            raise FairnessError(f"{self._path}: names nobody who labelled anything; is 'annotator' the right column?")
        for name, category in self._corpus.categories.items():
            present = {self._groups[annotator][name] for annotator in labelled} - {None}
            if len(present) < 2:
                missing = [group for group in category.groups if group not in present]
                raise FairnessError(
                    f"{self._path or self._corpus.annotations[0].path}: category '{name}' has "
                    f"{'one group only' if present else 'no group'}: nobody who labelled is in '{' or '.join(missing)}'"
                    f"; look at its 'groups' (column '{category.column}'), or leave the category out"
                )
        places = {name: {group: n for n, group in enumerate(names)} for name, names in self._corpus.groups.items()}
        rows = [
            {"draw": 1, "annotator_id": annotator, "category": name, "group": group, "place": places[name][group]}
            if group
            else {"draw": 1, "annotator_id": annotator, "category": name}
            for annotator in sorted(labelled)
            for name, group in (self._crossed(self._groups[annotator]) or {"": None}).items()
        ]
        return pa.Table.from_pylist(rows, schema=ANNOTATORS)

    def _add_groups(self, where: str, annotator: str, record: dict[str, Any]) -> None:
        categories = self._corpus.categories
        cells = tuple(_as_text(column(where, record, category.column)) for category in categories.values())
        if self._cells.get(annotator) == cells:
            return
        groups = {
            name: _group(where, category, cell)
            for (name, category), cell in zip(categories.items(), cells, strict=True)
        }
        self._cells[annotator] = cells
        before = self._groups.get(annotator)
        if before is None:
            self._groups[annotator], self._where[annotator] = groups, where
            return
        for name, group in groups.items():
            if group != before[name]:
                if self._corpus.inconsistent == "refuse":
                    raise FairnessError(
                        f"{where}: annotator '{annotator}' is in another group of '{name}' than in "
                        f"{self._where[annotator]}; correct one, or treat the group as unknown with "
                        "'inconsistent: unknown'"
                    )
                before[name] = None

    def _crossed(self, groups: dict[str, str | None]) -> dict[str, str | None]:
        """An annotator's groups, also of crossed categories; a crossed group is unknown if either part is."""
        crossed = {CROSS.join(names): [groups[name] for name in names] for names in self._corpus.crossed}
        return groups | {
            name: None if None in parts else CROSS.join(map(str, parts)) for name, parts in crossed.items()
        }


def _records(
    file: AnnotationsFile, folder: Path, left_out: Counter[str]
) -> Iterator[tuple[str, dict[str, Any], AnnotationsFile]]:
    path, text_field = located(file, folder), file.columns.text or "text"
    if file.form == "label_studio":
        rows = read_label_studio(path, file.question, text_field, left_out)
    elif file.form == "prodigy":
        rows = read_prodigy(path, text_field, left_out)
    else:
        rows = read_records(path, file.encoding, separator=file.separator)
    yield from ((where, record, file) for where, record in rows)


def _left(left_out: Counter[str]) -> str:
    """The counts of entries that were left out, for an error message."""
    return "".join(f"; left out, {reason}: {count:,}" for reason, count in left_out.items())


def _group(where: str, category: Category, cell: str) -> str | None:
    group = category.group_of(cell)
    if group is None and cell and not is_ignored(cell, category.ignored):
        raise FairnessError(
            f"{where}: '{category.column}' is {cell!r}, which is in no group; put it under one of 'groups' (or widen "
            "its 'between'), or under ignored ('*' is everything else)"
        )
    return group


def _as_text(value: Any) -> str:
    """A cell as text; a whole number is written without a decimal point, as in YAML."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value).strip()
    return text.removesuffix(".0") if text.removesuffix(".0").lstrip("-").isdigit() else text


def _cell(where: str, record: dict[str, Any], name: str) -> str:
    text = _as_text(column(where, record, name))
    if not text:
        raise FairnessError(f"{where}: column '{name}' is empty")
    return text


def _number(where: str, record: dict[str, Any], name: str) -> float:
    value = column(where, record, name)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise FairnessError(f"{where}: column '{name}': expected a number, found {value!r}") from None


def _simulated(corpus: AnnotatedCorpus) -> Annotated:
    settings = corpus.simulated
    assert settings is not None
    labels, items, annotators = [], [], []
    for draw in range(1, settings.draws + 1):
        simulation = simulate(settings, draw)
        labelled = len(simulation.label)
        items += [
            {
                "draw": draw, "item_id": f"i{i}", "text": "", "features": simulation.points[i].tolist(),
                "split": "train" if i < labelled else "test", "gold": int(simulation.truth[i]),
            }
            for i in range(len(simulation.truth))
        ]  # fmt: skip
        labels += [
            {"draw": draw, "item_id": f"i{i}", "annotator_id": f"r{annotator}", "label": int(label)}
            for i in range(labelled)
            for annotator, label in zip(simulation.annotator[i], simulation.label[i], strict=True)
        ]
        annotators += [
            {
                "draw": draw, "annotator_id": f"r{annotator}", "category": name,
                "group": corpus.groups[name][simulation.groups[annotator, index]],
                "place": int(simulation.groups[annotator, index]),
                "sensitivity": simulation.sensitivity[annotator], "specificity": simulation.specificity[annotator],
            }
            for annotator in range(settings.annotators)
            for index, name in enumerate(settings.categories)
        ]  # fmt: skip
    return Annotated(
        pa.Table.from_pylist(labels, schema=ANNOTATIONS),
        pa.Table.from_pylist(items, schema=ITEMS),
        pa.Table.from_pylist(annotators, schema=ANNOTATORS),
        {},
    )
