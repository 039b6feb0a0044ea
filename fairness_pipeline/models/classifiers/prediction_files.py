"""Predictions of a classifier that ran elsewhere: writes a file of texts, and reads a file of predictions."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from fairness_pipeline.corpora.classifiers.authored_texts import AUTHORED_TEXTS
from fairness_pipeline.foundation.csv_cells import restored, write_table
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.foundation.schemas import fields, schema

CLASSIFIER_PREDICTIONS = schema(
    **fields(AUTHORED_TEXTS, "text_id"),
    label=(pa.int64(), "1 (positive) or 0"),
    **fields(AUTHORED_TEXTS, "author_group", "author_id", "balanced"),
    probability=(pa.float64(), "of the positive class"),
    prediction=(pa.int64(), "1 from a probability of 0.5 on"),
    seed=(pa.int64(), "which training, from 1; 0 where it was not trained here"),
)
FORMS = (".csv", ".tsv", ".jsonl")
"""The endings of prediction files: comma-separated, tab-separated, or an object a line."""
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NAMED = 5


def predictions_of(tests: pa.Table, probabilities: Iterable[tuple[int, Any]]) -> pa.Table:
    """A table of `CLASSIFIER_PREDICTIONS`; by seed, one probability of the positive class for each test text."""
    names = ("text_id", "label", "author_group", "author_id", "balanced")
    tables = []
    for seed, predicted in probabilities:
        values = pa.array(predicted, pa.float64())
        tables.append(
            pa.table(
                {
                    **{name: tests[name] for name in names},
                    "probability": values,
                    "prediction": pa.array([int(value >= 0.5) for value in values.to_pylist()], pa.int64()),
                    "seed": pa.repeat(pa.scalar(seed, pa.int64()), len(values)),
                },
                schema=CLASSIFIER_PREDICTIONS,
            )
        )
    return pa.concat_tables(tables)


class OfClass(NamedTuple):
    """One of several classes, in a file with predictions of all of them.

    Attributes:
        name: The class.
        classes: All of them.
    """

    name: str
    classes: tuple[str, ...]


def read_predictions(path: Path, tests: pa.Table, of_class: OfClass | None = None) -> pa.Table:
    """The predictions in a file, as a table of `CLASSIFIER_PREDICTIONS`.

    Args:
        path: `.csv` or `.tsv` with a header, or `.jsonl`. The columns are `text_id`, and `probability` (0 to 1, of the
            positive class) or `prediction` (0 or 1); of several classes `probability of CLASS` for each, or
            `prediction` (the name of the class). Every text of the split `test` occurs once.
        tests: Those texts, from `AUTHORED_TEXTS`.
        of_class: The class that is the positive one; None if there are two classes.

    Raises:
        FairnessError: a text is missing, unknown or repeated, or a value is wrong; names file, line and number.
    """
    if path.suffix not in FORMS:
        raise FairnessError(f"{path}: expected a file that ends in {' or '.join(FORMS)}")
    known = set(tests["text_id"].to_pylist())
    probabilities: dict[str, float] = {}
    lines: dict[str, str] = {}
    unknown: list[str] = []
    for where, record in read_records(path):
        identity = str(column(where, record, "text_id")).strip()
        if identity not in known:
            identity = restored(identity)
        value = _value(where, record, of_class)
        if identity in lines:
            raise FairnessError(f"{where}: text_id {identity!r} was predicted before: {lines[identity]}")
        if identity not in known:
            unknown.append(f"{identity!r} ({where})")
            continue
        lines[identity], probabilities[identity] = where, value
    if unknown:
        raise FairnessError(
            f"{path}: {len(unknown):,} unknown texts, such as {unknown[0]}; export the texts again: the corpus or its "
            "split changed"
        )
    missing = [identity for identity in tests["text_id"].to_pylist() if identity not in probabilities]
    if missing:
        examples = ", ".join(missing[:_NAMED])
        raise FairnessError(f"{path}: {len(missing):,} of {len(known):,} texts have no prediction, such as {examples}")
    return predictions_of(tests, [(0, [probabilities[identity] for identity in tests["text_id"].to_pylist()])])


def _value(where: str, record: dict[str, Any], of_class: OfClass | None) -> float:
    """The probability of the positive class in a row."""
    probability_column = f"probability of {of_class.name}" if of_class else "probability"
    probability_column = "probability" if of_class and "probability" in record else probability_column
    name = "prediction" if "prediction" in record and probability_column not in record else probability_column
    text = str(column(where, record, name)).strip()
    if of_class and name == "prediction":
        if text not in of_class.classes:
            raise FairnessError(f"{where}: prediction: expected one of {', '.join(of_class.classes)}, found {text!r}")
        return float(text == of_class.name)
    value = float(text) if _NUMBER.fullmatch(text) else -1.0
    if not 0 <= value <= 1 or (name == "prediction" and value not in (0.0, 1.0)):
        expected = "0 or 1" if name == "prediction" else "a number from 0 to 1"
        raise FairnessError(f"{where}: {name}: expected {expected}, found {text[:40]!r}")
    return value


def write_texts(tests: pa.Table, path: Path, fill: str = "probability") -> int:
    """Writes the texts of the split `test` for another classifier to label, with an empty column to fill in (of several
    classes `prediction`); returns how many cells were escaped."""
    rows = ((*row, "") for row in zip(tests["text_id"].to_pylist(), tests["text"].to_pylist(), strict=True))
    return write_table(path, ["text_id", "text", fill], rows)
