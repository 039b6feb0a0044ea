"""Turns answers to questions about groups into trials: their decisions, and their words with the group masked."""

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
"""The fewest letters of a span's word that is masked in answers."""
_LARGEST = 100 * np.log(10)
"""An amount of more than ten times the usual one is taken for a reading error, and is cut to that."""


def trials_of_answers(
    questions: pa.Table, answers: Mapping[str, Answers], columns: Sequence[str], telling: Sequence[str]
) -> pa.Table:
    """The rows of the table of trials, as text, with the column `model`.

    `decides` says whether an answer makes the decision that it is asked for; `favorable` and `unfavorable` say whether
    a yes, a no or a choice is good or bad for a member of the group (an answer that decides nothing is neither).
    `rating` is the percentage of the scale or ranking. `amount` is 100 log(1 + amount) minus the mean of its message;
    it is cut beyond ten times the message's median, and a small difference is about one in percent. Of both, more is
    better for the group.

    Args:
        questions: A table of `GROUP_QUESTIONS`.
        answers: By model, its answers by id, or their file.
        columns: The names of the group columns.
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
        texts = [by_id[row["id"]].get(ANSWER) for row in asked]
        without_echoes = [
            None if answer is None else echoes[row["item"]].sub(MASK, answer)
            for row, answer in zip(asked, texts, strict=True)
        ]
        masked_texts = _one_mask(without_words(pa.array(without_echoes, pa.string()), telling)).to_pylist()
        decisions = [_decided(row, answer) for row, answer in zip(asked, texts, strict=True)]
        amounts = _above_the_mean(asked, decisions)
        rows += [
            {
                **dict(zip(columns, row["groups"], strict=True)),
                "item": row["item"],
                "meaning": row["meaning"],
                "span": row["span"],
                "asked": f"[{row['system']}] {row['text']}" if row["system"] else row["text"],
                ANSWER: answer,
                "masked": masked,
                **_outcomes(row["answer"], value, amount),
                MODEL: model,
            }
            for row, answer, masked, value, amount in zip(asked, texts, masked_texts, decisions, amounts, strict=True)
        ]
    return as_table(rows)


def _echoes(asked: Sequence[Row]) -> dict[str, re.Pattern[str]]:
    """By item, a pattern of what is masked in its answers: the spans of its questions, and their words. An echo is no
    difference between groups; nor is the masking, because the answers of all groups lose the same words."""
    spans: dict[str, set[str]] = {}
    for row in asked:
        spans.setdefault(row["item"], set()).add(row["span"].rstrip(" ."))
    return {item: _pattern_of(item_spans) for item, item_spans in spans.items()}


def _pattern_of(spans: Collection[str]) -> re.Pattern[str]:
    words = {word for span in spans for word in re.findall(r"[\w'’-]+", span) if len(word) >= _SHORTEST}
    longest_first = sorted({*spans, *words}, key=lambda text: (-len(text), text))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE)


def _one_mask(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts with one mask for several in a row, because one span may have more words than another."""
    return pc.replace_substring_regex(texts, rf"{MASK}(?:[ ,]+{MASK})+", MASK)


def answers_in(path: Path) -> Mapping[str, Row]:
    """The answers in a file, by id: JSON Lines, CSV or TSV with `id` and `answer`.

    Raises:
        FairnessError: a row has no id, the id of an earlier row, or an answer that is not text; names the line.
    """
    rows = read_rows(path) if path.suffix in (".csv", ".tsv") else read_json_lines(path)
    answers: dict[str, Row] = {}
    for where, row in rows:
        needed(row, (ID, ANSWER), where)
        name, answer = row[ID], row[ANSWER]
        if not isinstance(name, str) or not name:
            raise FairnessError(f"{where}: expected the id of a question, found {name!r}")
        if not isinstance(answer, str | None):
            raise FairnessError(f"{where}: expected an answer in words (or null), found {answer!r}")
        if name in answers:
            raise FairnessError(f"{where}: id '{name}' is given twice; keep one answer to each question")
        answers[name] = row
    return answers


def check_answers(path: Path, questions: pa.Table, *, keep_empty: bool = False) -> None:
    """Checks a file of answers before any of it is kept; `keep_empty`: empty answers count as answers without words.

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


def _check(by_id: Answers, questions: pa.Table, source: str) -> None:
    assert not isinstance(by_id, Path)
    check_ids(by_id, dict.fromkeys(questions["id"].to_pylist()), f"{source}: id", "those that are asked", _OTHERS)


def _decided(row: Row, answer: str | None) -> float | None:
    if row["answer"] is None:
        return None
    return favor(row["answer"], row["good"], answer, row["options"], row["scale"])


def _above_the_mean(asked: Sequence[Row], decisions: Sequence[float | None]) -> list[float | None]:
    """The log amounts minus the means of their messages, with extreme ones cut; None for other answers."""
    by_message: dict[str, list[float]] = {}
    for row, value in zip(asked, decisions, strict=True):
        if row["answer"] == "amount" and value is not None:
            by_message.setdefault(row["message"], []).append(value)
    medians = {message: float(np.median(values)) for message, values in by_message.items()}
    means = {
        message: float(np.clip(np.array(values) - medians[message], -_LARGEST, _LARGEST).mean())
        for message, values in by_message.items()
    }

    def above(row: Row, value: float | None) -> float | None:
        if row["answer"] != "amount" or value is None:
            return None
        message = row["message"]
        return float(np.clip(value - medians[message], -_LARGEST, _LARGEST)) - means[message]

    return [above(row, value) for row, value in zip(asked, decisions, strict=True)]


def _outcomes(kind: str | None, value: float | None, amount: float | None) -> dict[str, Any]:
    chooses, was_read = kind in ("yes_no", "choice"), int(value is not None)
    return {
        "decides": was_read if kind else None,
        "favorable": int(value == 1) if chooses else None,
        "unfavorable": int(value == 0) if chooses else None,
        "rating": value if kind in ("number", "ranking") else None,
        "rating_read": was_read if kind in ("number", "ranking") else None,
        "amount": amount,
        "amount_read": was_read if kind == "amount" else None,
    }
