"""Answers to questions about groups as trials: what they decide, and their words with the group masked."""

import re
from collections.abc import Collection, Mapping, Sequence
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
)
from fairness_pipeline.foundation.csv_cells import read_rows
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_json_lines
from fairness_pipeline.lexicons.masking import MASK, without_words

ID, ANSWER = "id", "answer"
"""The columns of a file of answers."""
_OTHERS = (
    "an answer belongs to its --groups, --messages, --spans and the profile's seed: export the questions again with "
    "those of this audit, and answer all of them"
)
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
    `rating` is the percentage of the scale or ranking, `amount` 100 times the log of one plus the amount, minus its
    message's mean: about a percent where differences are small, and beyond ten times the message's median cut. Of both
    more is better for the group.

    Args:
        questions: A table of `GROUP_QUESTIONS`.
        answers: By model its answers by id, or their file.
        columns: The names of the columns of groups.
        telling: The words that tell the group in an answer.

    Raises:
        FairnessError: an answer is missing, or belongs to no question.
    """
    asked = questions.to_pylist()
    echoes = _echoes(asked)
    rows: list[Row] = []
    for model, given in answers.items():
        by_id = answers_in(given) if isinstance(given, Path) else given
        _check(by_id, questions, f"{given if isinstance(given, Path) else model}")
        said = [by_id[row["id"]].get(ANSWER) for row in asked]
        quoted = [
            None if answer is None else echoes[row["item"]].sub(MASK, answer)
            for row, answer in zip(asked, said, strict=True)
        ]
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


def _echoes(asked: Sequence[Row]) -> dict[str, re.Pattern[str]]:
    """By item what is masked in its answers: the spans that it is asked with, and their words. An echo is no difference
    between groups; as the answers of all groups lose the same words, nor is what is masked."""
    spans: dict[str, set[str]] = {}
    for row in asked:
        spans.setdefault(row["item"], set()).add(row["span"].rstrip(" ."))
    return {item: _pattern_of(own) for item, own in spans.items()}


def _pattern_of(spans: Collection[str]) -> re.Pattern[str]:
    words = {word for span in spans for word in re.findall(r"[\w'’-]+", span) if len(word) >= _SHORTEST}
    longest_first = sorted({*spans, *words}, key=lambda text: (-len(text), text))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE)


def _one_mask(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts with one mask where several stand in a row: of two spans one may have more words."""
    return pc.replace_substring_regex(texts, rf"{MASK}(?:[ ,]+{MASK})+", MASK)


def answers_in(path: Path) -> Mapping[str, Row]:
    """The answers in a file, by id: JSON Lines, CSV or TSV with `id` and `answer`.

    Raises:
        FairnessError: a row has no id, one that stands before, or no answer in words; names the line.
    """
    rows = read_rows(path) if path.suffix in (".csv", ".tsv") else read_json_lines(path)
    answers: dict[str, Row] = {}
    for where, row in rows:
        needed(row, (ID, ANSWER), where)
        name, said = row[ID], row[ANSWER]
        if not isinstance(name, str) or not name:
            raise FairnessError(f"{where}: expected the id of a question, found {name!r}")
        if not isinstance(said, str | None):
            raise FairnessError(f"{where}: expected an answer in words (or null), found {said!r}")
        if name in answers:
            raise FairnessError(f"{where}: id '{name}' stands twice; keep one answer to each question")
        answers[name] = row
    return answers


def check_answers(path: Path, questions: pa.Table, *, keep_empty: bool = False) -> None:
    """Checks a file of answers before anything is kept of it.

    Args:
        path: The file.
        questions: A table of `GROUP_QUESTIONS`.
        keep_empty: Whether empty answers are answers without words.

    Raises:
        FairnessError: an answer is missing or empty, or belongs to no question.
    """
    answers = answers_in(path)
    _check(answers, questions, f"{path}")
    empty = [name for name, row in answers.items() if not (row[ANSWER] or "").strip()]
    if empty and not keep_empty:
        raise FairnessError(
            f"{path}: id {empty[0]}: the answer is empty ({len(empty):,} of {len(answers):,} are); fill in '{ANSWER}', "
            "or take empty ones as answers without words with --keep-empty"
        )


def _check(by_id: Answers, questions: pa.Table, whose: str) -> None:
    assert not isinstance(by_id, Path)
    check_ids(by_id, dict.fromkeys(questions["id"].to_pylist()), f"{whose}: id", "those that are asked", _OTHERS)


def _decided(row: Row, answer: str | None) -> float | None:
    if row["answer"] is None:
        return None
    return favor(row["answer"], row["good"], answer, row["options"], row["scale"])


def _above_the_mean(asked: Sequence[Row], decided: Sequence[float | None]) -> list[float | None]:
    """Of amounts the logarithm, minus the mean of its message; extreme ones are cut before."""
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
        "rating": value if kind in ("number", "ranking") else None,
        "rating_read": read if kind in ("number", "ranking") else None,
        "amount": amount,
        "amount_read": read if kind == "amount" else None,
    }
