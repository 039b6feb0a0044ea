"""What the readers of benchmarks and logs share."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

from fairness_pipeline.corpora.outcomes.table_files import flat, join_tables, text_columns
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.foundation.text_files import read_json_lines, read_member

MODEL = "model"
"""The column that says whose answers a row holds."""
Row = Mapping[str, Any]
Answers = Path | Mapping[str, Row]
"""A model's answers: their file, or the answers by the id of what was asked."""
ASKED = schema(
    id=(pa.string(), "what names the item in a file of answers"),
    field=(pa.string(), "the answer's field there"),
    text=(pa.string(), "what a model is asked, or how likely it finds"),
    beside=(pa.string(), "the text that it is compared with; empty if there is none"),
)


@dataclass(frozen=True)
class Texts:
    """The texts of a benchmark's items, and what becomes of the answers.

    Args:
        key: The field of an answer that says of which item it is.
        item: The item's column with that value.
        columns: By field of an answer the item's column with the text, and the column for what is answered.
        numbers: Whether the answers are log-likelihoods.
    """

    key: str
    item: str
    columns: Mapping[str, tuple[str, str]]
    numbers: bool = False

    def asked(self, items: Iterable[Row]) -> pa.Table:
        """A table of `ASKED`; two texts of an item stand beside each other."""
        rows = []
        for item in items:
            texts = [item[text] for text, _ in self.columns.values()]
            others = reversed(texts) if len(texts) > 1 else [""]
            rows += [
                {"id": str(item[self.item]), "field": field, "text": text, "beside": other}
                for field, text, other in zip(self.columns, texts, others, strict=True)
            ]
        return pa.Table.from_pylist(rows, schema=ASKED)

    def answered(self, items: list[Row], answers: Mapping[str, Answers]) -> Iterator[Row]:
        """The items as each model answers them, with the column `model`; the items alone if there are no answers.

        Raises:
            FairnessError: an item has no answer, or lacks a field of it; names the file.
        """
        if not answers:
            yield from items
        for model, own in answers.items():
            by_id = answers_by_id(own, self.key)
            check_ids(
                by_id, [str(item[self.item]) for item in items], f"{place_of(own, model)}", self.key, "the benchmark"
            )
            for item in items:
                where = f"{place_of(own, model)}, {self.key} {item[self.item]}"
                found = by_id[str(item[self.item])]
                needed(found, self.columns, where)
                read = log_likelihood if self.numbers else words
                said = {new: read(found[field], f"{where}, {field}") for field, (_, new) in self.columns.items()}
                yield {**item, MODEL: model, **said}


def log_likelihood(value: Any, where: str) -> float:
    """A log-likelihood, or a score.

    Raises:
        FairnessError: it is no finite number; a sentence without one would be left out in silence.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, bool):
        raise FairnessError(f"{where}: expected a log-likelihood, found {value!r}; each sentence needs one")
    return number


def words(value: Any, where: str) -> str | None:
    """An answer in words; raises FairnessError if it is something else."""
    if value is not None and not isinstance(value, str):
        raise FairnessError(f"{where}: expected an answer in words, found {value!r}")
    return value


def check_ids(answers: Mapping[str, Row], ids: Sequence[str], where: str, key: str, benchmark: Path | str) -> None:
    """Refuses answers to other questions than the benchmark's, or to some of them alone.

    Args:
        answers: The answers by id.
        ids: The ids of all questions.
        where: The answers' file, for the message.
        key: What an id is called.
        benchmark: The benchmark's file, for the message.

    Raises:
        FairnessError: an id is unknown, or a question has no answer; names one, and how many.
    """
    known = dict.fromkeys(ids)
    if strange := [name for name in answers if name not in known]:
        raise FairnessError(
            f"{where}: {key} {strange[0]} is no question of {benchmark} ({len(strange):,} of {len(answers):,} are "
            f"not); its ids: {some(ids)}"
        )
    if missing := [name for name in known if name not in answers]:
        raise FairnessError(
            f"{where}: {key} {missing[0]}: there is no answer ({len(missing):,} of {len(known):,} are missing); where "
            "a part was asked, cut the benchmark's file to it"
        )


def place_of(answers: Answers, model: str) -> Path | str:
    """The file of answers, or else the model, for messages."""
    return answers if isinstance(answers, Path) else model


def as_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as columns of text; nested objects give names such as `doc.id`, and what is missing is null."""
    plain = [flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in plain for name in row))
    return text_columns(pa.table({name: pa.array([row.get(name) for row in plain], pa.string()) for name in names}))


def with_models(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tables of several models below each other, with the column `model`."""
    named = []
    for model, table in tables.items():
        if MODEL in table.column_names:
            table = table.drop_columns([MODEL])
        column = pa.array([model] * table.num_rows, pa.string()).dictionary_encode()
        named.append(table.append_column(MODEL, pa.chunked_array([column])))
    return join_tables(named)


def read_zipped(path: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Files in a `.zip`, also if they are packed with zstd.

    Args:
        path: The file.
        wanted: Whether a file in it is read, by its name.

    Raises:
        FairnessError: it cannot be read, or a file in it is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if wanted(name)]
            return {name: read_member(path, archive, name) for name in names}
    except (OSError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        raise FairnessError(f"{path}: cannot be unpacked: {error}; fetch the file again") from None


def needed(record: Row, names: Iterable[str], where: str) -> None:
    """Refuses a record that lacks a field.

    Raises:
        FairnessError: it does; names the field, and those that there are.
    """
    for name in names:
        if name not in record:
            found = some([field[:40] for field in sorted(record)], 20) or "none"
            raise FairnessError(f"{where}: expected the field '{name}'; found {found}")


def answers_by_id(answers: Answers, key: str) -> Mapping[str, Row]:
    """A model's answers by the id of what was asked.

    Args:
        answers: The answers, or their file: JSON Lines with the field `key`.
        key: What names an item.

    Raises:
        FairnessError: a line has no id, or one that stands before.
    """
    if not isinstance(answers, Path):
        return answers
    if answers.suffix in (".csv", ".tsv"):
        raise FairnessError(f"{answers}: expected answers as JSON Lines, an object with '{key}' a line; found a table")
    found: dict[str, Row] = {}
    for where, record in read_json_lines(answers):
        needed(record, [key], where)
        if str(record[key]) in found:
            raise FairnessError(f"{where}: {key} {record[key]} stands twice; keep one answer to each item")
        found[str(record[key])] = record
    return found


def first_record(path: Path) -> Row:
    """The first object of a JSON Lines file; empty if it is none."""
    try:
        return next((record for _, record in read_json_lines(path)), {})
    except FairnessError:
        return {}


def scores(value: Any, name: str) -> Iterator[tuple[str, float | None]]:
    """The numbers in a score as evaluation tools write it: yes and no, grades (C, P, I), dictionaries."""
    if isinstance(value, Mapping):
        for key, own in value.items():
            yield from scores(own, f"{name}.{key}")
    elif isinstance(value, bool | int | float):
        number = float(value)
        yield name, number if number == number else None
    elif isinstance(value, str):
        grade = {"C": 1.0, "P": 0.5, "I": 0.0, "N": None}
        if value in grade:
            yield name, grade[value]


def json_text(value: Any) -> str | None:
    """A value as one cell: text as it is, anything else as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
