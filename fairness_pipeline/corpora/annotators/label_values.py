"""Finds out what the labels of a file are: two words, a scale, or several classes."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = re.compile(
    r"(|na|nan|none|null|n/a|unknown|data_expired|consent_revoked|(i )?(would )?(prefer|rather) not.*)",
    re.IGNORECASE,
)
"""A cell without information."""
_UNSURE = re.compile(
    r"(unsure|not sure|unclear|undecided|maybe|ignore|skip|skipped|other|(i )?(don't|do not|can't|cannot) .*)",
    re.IGNORECASE,
)
_YES = ("1", "yes", "y", "true", "positive", "toxic", "offensive", "unsafe", "hateful", "accept")
_NO = ("0", "no", "n", "false", "negative", "not toxic", "inoffensive", "safe", "reject")
NUMBER, _DECIMAL_COMMA = re.compile(r"-?\d+(\.\d+)?"), re.compile(r"-?\d+,\d+")
_MOST_CLASSES, SCALE = 10, 3
"""The most classes, and the fewest values of a scale."""
CLASSES = "classes"
"""What a user writes instead of positive=LABEL if numbers name classes."""


def one_spelling(column: "pd.Series") -> "pd.Series":
    """Labels in one spelling: the commonest of those that differ only in capitals; decimal commas become points."""
    common = {value.lower(): value for value in reversed(column.value_counts().index.tolist())}
    if all(NUMBER.fullmatch(v) or _DECIMAL_COMMA.fullmatch(v) or UNKNOWN.fullmatch(v) for v in common):
        common = {value: spelling.replace(",", ".") for value, spelling in common.items()}
    return column.map(lambda value: common[value.lower()])


def label_section(column: "pd.Series", positive: str | None, path: Path) -> tuple[dict[str, Any], list[str]]:
    """The section `labels` of a corpus, and lines that describe it for a reader.

    Args:
        column: The labels, in one spelling.
        positive: The label of the positive class, or the number from which on a scale is positive; `CLASSES` if
            numbers name classes; None if the user names none.
        path: The file, for messages.

    Raises:
        FairnessError: all labels are alike, or there are too many to be classes.
    """
    counts = column.value_counts()
    values = [value for value in map(str, counts.index) if not UNKNOWN.fullmatch(value)]
    empty = [value for value in map(str, counts.index) if value not in values]
    if len(values) < 2:
        raise FairnessError(
            f"{path}: all labels are {values[0] if values else 'empty'}; with one label only, groups cannot "
            "differ. Is it the column of the labels? --column label=NAME"
        )
    numbers = sorted(float(value) for value in values if NUMBER.fullmatch(value))
    if len(numbers) == len(values) >= SCALE and positive != CLASSES:
        if positive and not NUMBER.fullmatch(positive):
            raise FairnessError(
                f"--label positive={positive}: {path} has a scale; from which number on is it positive?"
            )
        return _scale(column, numbers, values, positive, empty)
    if positive not in (None, CLASSES, *values):
        raise FairnessError(f"--label positive={positive}: {path} has the labels {some(values, 8)}")
    classes = None if positive == CLASSES else _two(values, positive)
    if classes is None:
        classes = _several(values, path), f"{len(values)} classes", []
    labels, description, unsure = classes
    shares = {value: count / max(1, int(counts[values].sum())) for value, count in counts[values].items()}
    percentages = ", ".join(f"{value} {100 * share:.0f}%" for value, share in list(shares.items())[:8])
    labels["ignored"] = [*empty, *unsure]
    lines = [f"{description}: {percentages}{_left([*empty, *unsure], counts)}"]
    return labels, lines + _typos(counts[values])


def _scale(
    column: "pd.Series", numbers: list[float], values: list[str], positive: str | None, ignored: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """A scale, cut at its middle, or above 0 if it has numbers below and above 0."""
    if numbers[0] == -1 and numbers[1] >= 0:  # -1 is "not understood" on a scale from 0
        ignored = ignored + [value for value in values if float(value) == -1]
        numbers = numbers[1:]
    middle = float(-(-(numbers[0] + numbers[-1]) // 2))
    if numbers[0] < 0 < numbers[-1]:
        middle = min(number for number in numbers if number > 0)
    least = float(positive) if positive else middle
    share = float((column[~column.isin(ignored)].astype(float) >= least).mean())
    left_out = _left(ignored, column.value_counts())
    description = f"a scale from {numbers[0]:g} to {numbers[-1]:g}; {least:g} or more is positive"
    return {"at_least": least, "ignored": ignored}, [
        f"{description}: {100 * share:.0f}% (--label positive={least:g}){left_out}",
        f"where numbers name classes: --label {CLASSES}",
    ]


def _two(values: list[str], positive: str | None) -> tuple[dict[str, Any], str, list[str]] | None:
    """Two classes, their description and the unsure labels; None if more are left and the user names no positive."""
    known = {value.lower().removesuffix(".0"): value for value in values}
    yes = positive or next((known[word] for word in _YES if word in known), None)
    unsure = [value for value in values if value != yes and _UNSURE.fullmatch(value)]
    if len(values) - len(unsure) < 2:
        unsure = []
    if not positive and len(values) - len(unsure) != 2:
        return None
    yes = yes or next(value for value in reversed(values) if value not in unsure)  # the rarer one
    no = [value for value in values if value not in (yes, *unsure)]
    names = {} if {yes, *no} <= {"0", "1", "0.0", "1.0"} else {"names": [yes, " or ".join(no)]}
    description = f"{yes} is positive, {', '.join(no)} negative (--label positive={yes})"
    return {"positive": _spelled([yes]), "negative": _spelled(no), **names}, description, unsure


def _several(values: list[str], path: Path) -> dict[str, Any]:
    if len(values) > _MOST_CLASSES:
        raise FairnessError(
            f"{path}: {len(values)} labels ({some(values, 8)}); expected two, a scale of numbers, or up to "
            f"{_MOST_CLASSES} classes. Which is positive? --label positive={values[0]}"
        )
    order = sorted(values, key=float) if all(NUMBER.fullmatch(value) for value in values) else values
    return {"classes": {value: _spelled([value]) for value in order}}


def _spelled(values: list[str]) -> list[str]:
    """The labels, and whole numbers also without `.0`, as the file may write them."""
    return [spelling for value in values for spelling in dict.fromkeys((value, value.removesuffix(".0")))]


def _left(ignored: Sequence[str], counts: "pd.Series[int]") -> str:
    parts = [f"{value or 'empty'} ({counts[value]:,})" for value in ignored]
    return f"; left out: {', '.join(parts)}" if parts else ""


def _typos(counts: "pd.Series") -> list[str]:
    """Notes on rare labels that are spelled almost like a common one."""
    notes = []
    for value, count in counts.items():
        common = [str(candidate) for candidate, frequency in counts.items() if frequency >= 10 * count]
        near = get_close_matches(str(value), common, n=1, cutoff=0.85)
        if near and not NUMBER.fullmatch(str(value)):
            notes.append(f"a slip for '{near[0]}'? '{value}' ({count:,}) counts as a label of its own; mend the file")
    return notes
