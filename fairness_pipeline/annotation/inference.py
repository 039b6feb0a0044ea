"""Infers the labels of a corpus, and predicts with classifiers that learn from inferred labels."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.annotation.item_classifiers import (
    ItemClassifierSettings,
    PointClassifier,
    TextClassifier,
)
from fairness_pipeline.annotation.truth_inference.base import last_of_the_highest
from fairness_pipeline.annotation.truth_inference.registry import METHODS, method
from fairness_pipeline.corpora.annotators.annotations import ANNOTATIONS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import fields, schema

if TYPE_CHECKING:
    import pandas as pd

INFERRED = schema(
    **fields(ANNOTATIONS, "draw", "item_id"),
    probability=(pa.float64(), "that the item is positive; of more than two classes, that it is of the inferred one"),
    label=(
        pa.int64(),
        "the inferred label, as in `annotations`",
    ),
    probabilities=(pa.list_(pa.float64()), "of each class, from 0"),
)
"""One row per item. Methods without probabilities give a share or score in 0..1 instead."""
PREDICTED = schema(
    seed=(pa.int64(), "which training; of a simulated corpus the draw"),
    **fields(ANNOTATIONS, "draw", "item_id"),
    probability=(pa.float64(), "that the item is positive"),
)


def task_table(annotations: pa.Table) -> "pd.DataFrame":
    """A table of `ANNOTATIONS`, with the column names that truth inference methods expect."""
    names = {"item_id": "task", "annotator_id": "worker"}
    return annotations.select(["item_id", "annotator_id", "label"]).to_pandas().rename(columns=names)


def people(annotators: pa.Table) -> "pd.DataFrame":
    """The group, or missing: one row per annotator (of one draw), one column per category (in the corpus's order)."""
    import pandas as pd

    rows = annotators.select(["annotator_id", "category", "group", "place"]).to_pandas()
    index = pd.Index(rows["annotator_id"].unique(), name="worker")
    columns = {}
    for name in filter(None, rows["category"].unique()):
        category_rows = rows[rows["category"] == name].set_index("annotator_id")
        order = category_rows.dropna(subset="place").drop_duplicates("place").sort_values("place")["group"]
        columns[str(name)] = pd.Categorical(category_rows["group"].reindex(index), categories=order)
    return pd.DataFrame(columns, index=index)


def draws(*tables: pa.Table) -> Iterator[tuple[int, tuple[pa.Table, ...]]]:
    """Yields the number of each draw, with its rows of each table."""
    for draw in sorted(pc.unique(tables[0]["draw"]).to_pylist()):
        yield draw, tuple(table.filter(pc.equal(table["draw"], draw)) for table in tables)


def inferred(
    name: str,
    settings: Mapping[str, Any],
    annotations: pa.Table,
    annotators: pa.Table,
    progress: Progress | None,
    classes: int = 2,
) -> pa.Table:
    """A table of `INFERRED`, from the labels alone; `progress` receives the number of draws done."""
    results = []
    for draw, (annotation_rows, annotator_rows) in draws(annotations, annotators):
        report(progress, draw - 1, None, f"draw {draw}" if draw > 1 else METHODS[name].title)
        fitted = method(name, settings, people(annotator_rows)).fit(task_table(annotation_rows), classes)
        inferred_labels, p = fitted.labels_, fitted.probas_.to_numpy()
        probas = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        probability = p if p.ndim == 1 else p[np.arange(len(p)), inferred_labels]
        columns = [np.full(len(inferred_labels), draw), inferred_labels.index, probability, inferred_labels]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(probas.ravel()), classes).cast(pa.list_(pa.float64()))
        results.append(pa.table([*(pa.array(column) for column in columns), lists], schema=INFERRED))
    return pa.concat_tables(results)


def predicted(
    name: str,
    settings: Mapping[str, Any],
    annotations: pa.Table,
    annotators: pa.Table,
    items: pa.Table,
    learning: ItemClassifierSettings,
    seeds: int,
    seed: int,
    folder: Path,
    progress: Progress | None,
) -> pa.Table:
    """A table of `PREDICTED`: predictions learned from the labels of training items. A killed run resumes where it
    stopped.

    If the method learns a classifier itself, that classifier predicts. Otherwise a classifier is trained on the
    inferred labels.

    Args:
        name: The name of the method.
        settings: Arguments that differ from the method's defaults.
        annotations: As `ANNOTATIONS`.
        annotators: As `ANNOTATORS`.
        items: As `ITEMS`.
        learning: How classifiers learn.
        seeds: The number of trainings. A corpus with several draws is learned once from each draw instead.
        seed: The seed from which the seeds of the classifiers are derived.
        folder: The folder that keeps finished results.
        progress: Receives the number of seeds done.

    Raises:
        FairnessError: there is nothing to learn from, or to test on.
    """
    all_draws = list(draws(annotations, annotators, items))
    several = len(all_draws) > 1
    runs = (
        [(draw, draw, rows) for draw, rows in all_draws]
        if several
        else [(n, *all_draws[0]) for n in range(1, seeds + 1)]
    )
    results = []
    for done, (number, draw, (annotation_rows, annotator_rows, item_rows)) in enumerate(runs):
        report(progress, done, len(runs), f"seed {number}")
        tests = item_rows.filter(pc.equal(item_rows["split"], "test"))
        path = folder / f"seed-{number}.npy"
        if not path.exists():
            predictions = _learned(
                name, settings, annotation_rows, people(annotator_rows), item_rows, tests, learning, seed + number
            )
            with replacing(path) as temporary, temporary.open("wb") as stream:
                np.save(stream, predictions)
        columns = [np.full(len(tests), number), np.full(len(tests), draw), tests["item_id"], np.load(path)]
        results.append(pa.table([pa.array(c) if isinstance(c, np.ndarray) else c for c in columns], schema=PREDICTED))
    return pa.concat_tables(results)


def gold_of(items: pa.Table, annotations: pa.Table, agreement: float) -> "pd.Series":
    """The true label of each item, by draw and item: its gold label or, in a corpus without gold labels, the majority's
    if that is clear: if more than the share `agreement` of its labels agree (Liu 2022, 5.4.2).
    """
    import pandas as pd

    gold = items.select(["draw", "item_id", "gold"]).to_pandas().set_index(["draw", "item_id"])["gold"].dropna()
    if len(gold):
        return gold.astype(np.int64)
    shares = vote_shares(annotations)
    clear = shares[shares.max(axis=1) > agreement]
    return pd.Series(last_of_the_highest(clear.to_numpy()), index=clear.index)


def vote_shares(annotations: pa.Table) -> "pd.DataFrame":
    """The share of each class among an item's labels: a row per draw and item, a column per class that occurs."""
    counts = annotations.to_pandas().groupby(["draw", "item_id", "label"]).size().unstack(fill_value=0)
    return counts.reindex(columns=range(max(2, int(counts.columns.max()) + 1)), fill_value=0).pipe(
        lambda table: table.div(table.sum(axis=1), axis=0)
    )


def beside_gold(table: pa.Table, gold: "pd.Series", by: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The labels and the gold labels of each draw or seed (`by`), for the items with a known truth."""
    rows = table.to_pandas().join(gold.rename("gold"), on=["draw", "item_id"], how="inner")
    parts = [part for _, part in rows.groupby(by)]
    return (
        [(part["probability"].to_numpy() >= 0.5).astype(np.int64) for part in parts]
        if by == "seed"
        else [part["label"].to_numpy() for part in parts],
        [part["gold"].to_numpy().astype(np.int64) for part in parts],
    )


def _learned(
    name: str,
    settings: Mapping[str, Any],
    annotations: pa.Table,
    groups: "pd.DataFrame",
    items: pa.Table,
    tests: pa.Table,
    learning: ItemClassifierSettings,
    seed: int,
) -> np.ndarray:
    """P(y = 1) of the test items, by a classifier that learns from the labels of the training items."""
    rows = {row["item_id"]: row for row in items.to_pylist()}
    data = task_table(annotations)
    data = data[[rows[item]["split"] == "train" for item in data["task"]]]
    if data.empty or not len(tests):
        raise FairnessError(
            f"a classifier needs labelled items to learn from and others to test on: {len(data):,} labels, "
            f"{len(tests):,} test items; see test_share, or the items' column of the split"
        )
    train, held_out = [rows[item] for item in data["task"].unique()], tests.to_pylist()
    classifier: PointClassifier | TextClassifier
    if train[0]["features"]:
        points, test_points = (np.array([row["features"] for row in split]) for split in (train, held_out))
        classifier = PointClassifier(points, test_points, learning, seed)
    else:
        texts, test_texts = ([row["text"] for row in split] for split in (train, held_out))
        classifier = TextClassifier(texts, test_texts, learning, seed)
    if METHODS[name].learns:
        rounds = {"n_iter": learning.epochs, "tol": -np.inf}
        method(name, {**settings, **rounds}, groups, classifier).fit(data)
    else:
        fitted = method(name, settings, groups).fit(data)
        classifier.learn(fitted.labels_.to_numpy().astype(float))
    return classifier.predict()
