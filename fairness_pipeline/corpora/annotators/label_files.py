"""Reads files of labels as tools and data sets write them, as rows of text.

The forms are a table; Label Studio's and Prodigy's exports; LeWiDi's JSON (an object of items, each with `annotations`
by annotator: MultiPICo); JSON lines whose items hold a list of ratings (Kumar et al. 2021).
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.corpora.annotators.annotation_exports import read_label_studio, read_prodigy
from fairness_pipeline.corpora.annotators.label_columns import ITEM, LABEL, RATER, TEXT, Raters, names_a_rater
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import read_records
from fairness_pipeline.foundation.text_files import read_lines

if TYPE_CHECKING:
    import pandas as pd


def is_label_file(path: Path) -> bool:
    """Whether a file is an export of labels that is no table, or a table that is separated by semicolons and names
    raters."""
    return _form(path) != "table" or (_mark(path) == ";" and names_a_rater(list(next(_records(path), {}))))


def read_label_rows(path: Path, left_out: Counter[str] | None = None) -> "pd.DataFrame":
    """Reads one row for each label, all cells text; a missing cell is empty. `left_out` counts entries without one.

    Raises:
        FairnessError: the file is broken, or holds no labels.
    """
    import pandas as pd

    form, left_out = _form(path), Counter[str]() if left_out is None else left_out
    records: Iterator[dict[str, Any]]
    if form == "label_studio":
        records = (row for _, row in read_label_studio(path, None, TEXT, left_out))
    elif form == "prodigy":
        records = (row for _, row in read_prodigy(path, TEXT, left_out))
    elif form == "lewidi":
        records = _lewidi(path)
    elif form == "nested":
        records = (row for record in _records(path) for row in _nested(record))
    else:
        records = _records(path)
    rows = [{name: _cell(value) for name, value in _flat(row)} for row in records]
    if not rows:
        raise FairnessError(f"{path}: expected labels, found none")
    return pd.DataFrame(rows).fillna("").astype(str)


def read_raters(path: Path) -> Raters:
    """Reads a file of raters, also LeWiDi's object of raters, with ids as in its `annotations`.

    Raises:
        FairnessError: the file is broken, or holds no raters.
    """
    import pandas as pd

    content = _object(path)
    if content is None:
        return Raters(read_label_rows(path), path)
    rows = [{RATER: f"Ann{key}" if key.isdigit() else key, **dict(_flat(traits))} for key, traits in content.items()]
    table = pd.DataFrame([{name: _cell(value) for name, value in row.items()} for row in rows]).fillna("")
    return Raters(table, path)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    return (record for _, record in read_records(path, mark=_mark(path)))


def _mark(path: Path) -> str:
    """The separator of cells: a semicolon if the first line has one and no comma, as spreadsheets write where numbers
    have decimal commas."""
    if ".csv" not in path.suffixes:
        return ","
    first = next((line for _, line in read_lines(path)), "")
    return ";" if ";" in first and "," not in first else ","


def _form(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if not name.endswith((".json", ".jsonl")):
        return "table"
    if (content := _object(path)) is not None:
        first = next(iter(content.values()), None)
        return "lewidi" if isinstance(first, dict) and isinstance(first.get("annotations"), dict) else "table"
    first = next(_records(path), {})
    if isinstance(first.get("annotations"), list) and isinstance(first.get("data"), dict):
        return "label_studio"
    if "_input_hash" in first and "answer" in first:
        return "prodigy"
    return "nested" if _list_of(first) else "table"


def _object(path: Path) -> dict[str, Any] | None:
    """A JSON file's object of objects; None if it is anything else."""
    if not path.name.removesuffix(".gz").removesuffix(".zst").endswith(".json"):
        return None
    text = "\n".join(line for _, line in read_lines(path))
    if not text.lstrip().startswith("{"):
        return None
    try:
        content = json.loads(text)
    except ValueError as error:
        raise FairnessError(f"{path}: not valid JSON: {error}") from None
    return content if isinstance(content, dict) and all(isinstance(value, dict) for value in content.values()) else None


def _lewidi(path: Path) -> Iterator[dict[str, Any]]:
    for item_id, item in (_object(path) or {}).items():
        content = item.get("text", "")
        text = " / ".join(map(str, content.values())) if isinstance(content, dict) else str(content)
        for rater, label in item.get("annotations", {}).items():
            yield {ITEM: item_id, RATER: rater, LABEL: label, TEXT: text}


def _list_of(record: dict[str, Any]) -> str | None:
    """The field with a list of ratings."""
    return next(
        (name for name, value in record.items() if isinstance(value, list) and value and isinstance(value[0], dict)),
        None,
    )


def _nested(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    name = _list_of(record)
    outer = {key: value for key, value in record.items() if key != name}
    for rating in record[name] if name else []:
        yield outer | rating


def _flat(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Fields of nested objects as `outer.inner`."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value).strip()
