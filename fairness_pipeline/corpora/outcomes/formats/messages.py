"""Answers to questions about groups as trials: what they decide, and their words with the group masked."""

import csv
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.outcomes.formats.decisions import favor
from fairness_pipeline.corpora.outcomes.formats.shared import (
    MODEL,
    Answers,
    Row,
    as_table,
    check_ids,
    needed,
    read_answers,
)
from fairness_pipeline.foundation.csv_cells import restored
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.masking import MASK, without_words

ID, ANSWER = "id", "answer"
"""The columns of a file of answers."""
_SHORTEST = 4
"""Letters of the words of a span that are masked in its answer."""
_LARGEST = 100 * np.log(10)
"""An amount that is ten times the usual one is a slip of the reader, and counts as no more than that."""


def trials_of_answers(
    questions: pa.Table, answers: Mapping[str, Answers], columns: Sequence[str], telling: Sequence[str]
) -> pa.Table:
    """The rows of the table of trials, as text, with the column `model`.

    `decides` says whether an answer makes the decision that it is asked for, `favorable` and `unfavorable` whether a
    yes, a no or a choice is good or bad for whoever is of the group (an answer that decides nothing is neither).
    `rating` is the percentage of the scale, `amount` by how many percent an amount is above the mean of its message; of
    both more is better for the group.

    Args:
        questions: A table of `GROUP_QUESTIONS`.
        answers: By model its answers by id, or their file.
        columns: The names of the columns of groups.
        telling: The words that tell the group in an answer.

    Raises:
        FairnessError: an answer is missing, or belongs to no question.
    """
    asked = questions.to_pylist()
    rows: list[Row] = []
    for model, given in answers.items():
        by_id = answers_in(given) if isinstance(given, Path) else given
        check_ids(
            by_id, {row["id"] for row in asked}, f"{given if isinstance(given, Path) else model}: id", "questions"
        )
        said = [by_id[row["id"]].get(ANSWER) for row in asked]
        quoted = [_without_span(row["span"], answer) for row, answer in zip(asked, said, strict=True)]
        covered = _one_mask(without_words(pa.array(quoted, pa.string()), telling)).to_pylist()
        decided = [_decided(row, answer) for row, answer in zip(asked, said, strict=True)]
        amounts = _above_the_mean(asked, decided)
        rows += [
            {
                **dict(zip(columns, row["groups"], strict=True)),
                "item": row["item"],
                "meaning": row["meaning"],
                "span": row["span"],
                "asked": f"[{row['system']}] {row['text']}" if row["system"] else row["text"],
                ANSWER: answer,
                "masked": masked,
                **_columns(row["answer"], value, amount),
                MODEL: model,
            }
            for row, answer, masked, value, amount in zip(asked, said, covered, decided, amounts, strict=True)
        ]
    return as_table(rows)


def _without_span(span: str, answer: str | None) -> str | None:
    """An answer without what it takes up of its own question's span: an echo is no difference between groups."""
    return None if answer is None else _pattern_of(span).sub(MASK, answer)


@lru_cache(1 << 12)
def _pattern_of(span: str) -> re.Pattern[str]:
    words = sorted((word for word in re.findall(r"[\w'’-]+", span) if len(word) >= _SHORTEST), key=len, reverse=True)
    either = [re.escape(span.rstrip(" .")), *map(re.escape, words)]
    return re.compile(rf"\b(?:{'|'.join(either)})\b", re.IGNORECASE)


def _one_mask(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts with one mask where several stand in a row: of two spans one may have more words."""
    return pc.replace_substring_regex(texts, rf"{MASK}(?:[ ,]+{MASK})+", MASK)


def answers_in(path: Path) -> Mapping[str, Row]:
    """The answers in a file, by id: JSON Lines, CSV or TSV with `id` and `answer`.

    Raises:
        FairnessError: a row has no id, or one that stands before.
    """
    if path.suffix not in (".csv", ".tsv"):
        return read_answers(path, ID)
    found: dict[str, Row] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, row in enumerate(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","), 2):
            needed(row, (ID, ANSWER), f"{path}, line {number}")
            if restored(row[ID]) in found:
                raise FairnessError(
                    f"{path}, line {number}: id {row[ID]} stands twice; keep one answer to each question"
                )
            found[restored(row[ID])] = {key: restored(value) for key, value in row.items() if key and value is not None}
    return found


def _decided(row: Row, answer: str | None) -> float | None:
    if row["answer"] is None:
        return None
    return favor(row["answer"], row["good"], answer, row["options"], row["scale"])


def _above_the_mean(asked: Sequence[Row], decided: Sequence[float | None]) -> list[float | None]:
    """Of amounts by how many percent each is above the mean of its message."""
    of_message: dict[str, list[float]] = {}
    for row, value in zip(asked, decided, strict=True):
        if row["answer"] == "amount" and value is not None:
            of_message.setdefault(row["message"], []).append(value)
    middle = {message: float(np.median(values)) for message, values in of_message.items()}
    near = {
        message: float(np.clip(np.array(values) - middle[message], -_LARGEST, _LARGEST).mean())
        for message, values in of_message.items()
    }

    def above(row: Row, value: float | None) -> float | None:
        if row["answer"] != "amount" or value is None:
            return None
        message = row["message"]
        return float(np.clip(value - middle[message], -_LARGEST, _LARGEST)) - near[message]

    return [above(row, value) for row, value in zip(asked, decided, strict=True)]


def _columns(kind: str | None, value: float | None, amount: float | None) -> dict[str, Any]:
    chooses, read = kind in ("yes_no", "choice"), int(value is not None)
    return {
        "decides": read if kind else None,
        "favorable": int(value == 1) if chooses else None,
        "unfavorable": int(value == 0) if chooses else None,
        "rating": value if kind == "number" else None,
        "rating_read": read if kind == "number" else None,
        "amount": amount,
        "amount_read": read if kind == "amount" else None,
    }
