"""Shared parts of the readers of benchmarks and logs."""

import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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
"""The column with the model whose answers a row holds."""
Row = Mapping[str, Any]
Answers = Path | Mapping[str, Row]
"""A model's answers: their file, or the answers by the id of the item."""
ASKED = schema(
    id=(pa.string(), "what names the item in a file of answers"),
    field=(pa.string(), "the answer's field there"),
    text=(pa.string(), "what a model is asked, or how likely it finds"),
    beside=(pa.string(), "the text that it is compared with; empty if there is none"),
)


def log_likelihood(value: Any, where: str) -> float:
    """A log-likelihood or a score as a number.

    Raises:
        FairnessError: it is no finite number; without one the sentence would be left out silently.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, bool):
        raise FairnessError(f"{where}: expected a log-likelihood, found {value!r}; each sentence needs one")
    return number


def answer_in_words(value: Any, where: str) -> str | int | None:
    """An answer, or its number; raises FairnessError if it is something else."""
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise FairnessError(f"{where}: expected an answer in words, or its number; found {value!r}")
    return value


def as_table(rows: Iterable[Row], path: Path = Path("table")) -> pa.Table:
    """Rows as columns of text; nested objects give names such as `doc.id`, and missing values are null.

    Raises:
        FairnessError: there are no rows.
    """
    plain = [flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in plain for name in row))
    columns = {name: pa.array([row.get(name) for row in plain], pa.string()) for name in names}
    return text_columns(pa.table(columns), path)


def log_table(rows: Iterable[tuple[Row, Row]], path: Path) -> pa.Table:
    """Rows of a log as columns of text: the data's, then the tool's, which win if both have a name.

    Raises:
        FairnessError: there are no rows.
    """
    pairs = list(rows)
    table = as_table(({**data, **measured} for data, measured in pairs), path)
    last = dict.fromkeys(name for _, measured in pairs for name in flat(measured))
    return table.select([*(name for name in table.column_names if name not in last), *last])


def with_models(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tables of several models below each other, with the column `model`."""
    named = []
    for model, table in tables.items():
        if MODEL in table.column_names:
            table = table.drop_columns([MODEL])
        column = pa.array([model] * table.num_rows, pa.string()).dictionary_encode()
        named.append(table.append_column(MODEL, pa.chunked_array([column])))
    return join_tables(named)


def read_zipped(path: Path, is_read: Callable[[str], bool]) -> dict[str, bytes]:
    """Files in a `.zip`, also if they are packed with zstd.

    Raises:
        FairnessError: it cannot be read, or a file in it is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if is_read(name)]
            return {name: read_member(path, archive, name) for name in names}
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile) as error:  # encrypted, or packed in an unknown way
        raise FairnessError(f"{path}: cannot be unpacked: {error}; fetch the file again") from None


def needed(record: Row, names: Iterable[str], where: str) -> None:
    """Refuses a record that lacks a field.

    Raises:
        FairnessError: a field is missing; names it, and the fields of the record.
    """
    for name in names:
        if name not in record:
            fields = some([field[:40] for field in sorted(record)], 20) or "none"
            raise FairnessError(f"{where}: expected the field '{name}'; found {fields}")


def read_answers(path: Path, key: str) -> dict[str, Row]:
    """Reads a model's answers from JSON Lines, by the id of the item in the field `key`.

    Raises:
        FairnessError: a line has no id, or the id of an earlier line.
    """
    if path.suffix in (".csv", ".tsv"):
        raise FairnessError(f"{path}: expected answers as JSON Lines, an object with '{key}' a line; found a table")
    answers: dict[str, Row] = {}
    for where, record in read_json_lines(path):
        needed(record, [key], where)
        if str(record[key]) in answers:
            raise FairnessError(f"{where}: {key} {record[key]} is given twice; keep one answer to each item")
        answers[str(record[key])] = record
    return answers


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that is read from its authors' file.

    Args:
        items: The rows of the file, with the texts that a model answers or scores.
        key: The field of an answer with the id of its row.
        row_id: The row's column with that id.
        texts: By field of an answer, the row's column with the text, and the column for the answer.
        answer: The form of an answer: text that the model writes, the log-likelihood of a text, or that per token.
        trials: Makes the rows of the table of trials from the answered rows (with a column `model`) and the file.
        second_file: The second file that is next to the first, if there is one.
        answers_of: The answers in a file, by id.
        answers_within: The answers in the benchmark's own file, by model and id.
    """

    items: Callable[[Path], Iterable[Row]]
    key: str
    row_id: str
    texts: Mapping[str, tuple[str, str]]
    answer: Literal["text", "likelihood", "likelihood_per_token"]
    trials: Callable[[Iterator[Row], Path], Iterable[Row]] = lambda rows, path: rows
    second_file: Callable[[Path], Path | None] = lambda path: None
    answers_of: Callable[[Path, str], Mapping[str, Row]] = read_answers
    answers_within: Callable[[Path], Mapping[str, Answers]] = lambda path: {}

    def read(self, path: Path, answers: Mapping[str, Answers]) -> pa.Table:
        """The table of trials, its columns as text, with the column `model`.

        Args:
            path: The authors' file.
            answers: By model, its answers or their file; if there are none, those within the authors' file.

        Raises:
            FairnessError: a line is not as the authors write it, or an answer is missing or wrong; names the file.
        """
        return as_table(self.trials(self._answered(path, answers or self.answers_within(path)), path), path)

    def asked(self, path: Path) -> pa.Table:
        """A table of `ASKED`; two texts of a row are compared with each other."""
        rows = []
        for item in self.items(path):
            texts = [item[column] for column, _ in self.texts.values()]
            others = reversed(texts) if len(texts) > 1 else [""]
            rows += [
                {"id": str(item[self.row_id]), "field": name, "text": text, "beside": other}
                for name, text, other in zip(self.texts, texts, others, strict=True)
            ]
        return pa.Table.from_pylist(rows, schema=ASKED)

    def _answered(self, path: Path, answers: Mapping[str, Answers]) -> Iterator[Row]:
        items = {str(item[self.row_id]): item for item in self.items(path)}
        parse = answer_in_words if self.answer == "text" else log_likelihood
        for model, given in answers.items():
            source = f"{given}" if isinstance(given, Path) else model
            by_id = self.answers_of(given, self.key) if isinstance(given, Path) else given
            check_ids(by_id, items, f"{source}: {self.key}", path)
            for row_id, item in items.items():
                where = f"{source}, {self.key} {row_id}"
                needed(by_id[row_id], self.texts, where)
                answered = {
                    new: parse(by_id[row_id][name], f"{where}, {name}") for name, (_, new) in self.texts.items()
                }
                yield {**item, MODEL: model, **answered}


def check_ids(
    answers: Collection[str],
    ids: Collection[str],
    where: str,
    path: Path | str,
    hint: str = "where a part was asked, cut the benchmark's file to it",
) -> None:
    """Refuses answers to unknown questions, and questions without an answer.

    Args:
        answers: The ids that are answered.
        ids: The ids that are asked.
        where: The source of the answers and the name of its ids, for messages.
        path: The source of the questions, for messages.
        hint: The remedy, for messages.

    Raises:
        FairnessError: an id is unknown or missing.
    """
    if unknown := [name for name in answers if name not in ids]:
        raise FairnessError(
            f"{where} {unknown[0]} is no question of {path} ({len(unknown):,} of {len(answers):,} are not); its ids: "
            f"{some(list(ids))}; {hint}"
        )
    if missing := [name for name in ids if name not in answers]:
        raise FairnessError(
            f"{where} {missing[0]}: there is no answer ({len(missing):,} of {len(ids):,} are missing); {hint}"
        )


def first_record(path: Path) -> Row:
    """The first object of a JSON Lines file; empty if it has none."""
    try:
        return next((record for _, record in read_json_lines(path)), {})
    except FairnessError:
        return {}


def scores(value: Any, name: str) -> Iterator[tuple[str, float | None]]:
    """Yields the numbers in a score as evaluation tools write it: yes and no, grades (C, P, I), dictionaries."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from scores(part, f"{name}.{key}")
    elif isinstance(value, bool | int | float):
        number = float(value)
        yield name, number if number == number else None
    elif isinstance(value, str):
        grade = {"C": 1.0, "P": 0.5, "I": 0.0, "N": None}
        if value in grade:
            yield name, grade[value]


def json_text(value: Any) -> str | None:
    """A value as one cell: text unchanged, anything else as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
