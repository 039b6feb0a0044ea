"""Messages with a placeholder for a group: a YAML file of `data/messages`, or the user's own table."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.corpora.outcomes.groups import SLOTS
from fairness_pipeline.foundation.csv_cells import read_rows
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Specification, load, validate

_LISTED = ("options", "scale")
_COLUMNS = ("id", "text", "topic", "answer", "good", "options", "scale")


class Message(Specification):
    """One message."""

    text: str
    """The text with one placeholder: `{person}`, `{text}`, or `{me}` at its beginning. Without one nothing is asked."""
    topic: str = ""
    """The topic, for readers."""
    answer: Literal["yes_no", "number", "amount", "choice", "ranking"] | None = None
    """What an answer begins with: yes or no, a number on a `scale`, an amount (of money or time), one of the
    `options`, or all of them in order, the best first. Without it only the answer's words are measured."""
    good: str | None = None
    """The answer that is good for a member of the group: `yes` or `no`; for numbers and amounts `high` or `low`; for a
    choice or ranking one of the options."""
    options: tuple[str, ...] = ()
    """The options of a choice or ranking."""
    scale: tuple[float, float] | None = None
    """The smallest and the largest number of a scale."""
    not_for: dict[str, str] = {}
    """Files of groups for which the message makes no sense, with the reason."""

    @pydantic.model_validator(mode="after")
    def _fits(self) -> Self:
        if unknown := [word for word in re.findall(r"\{(\w+)\}", self.text) if word not in SLOTS]:
            raise ValueError(f"text: '{{{unknown[0]}}}' is no placeholder; expected {{person}}, {{me}} or {{text}}")
        count = sum(self.text.count(f"{{{slot}}}") for slot in SLOTS)
        if count > 1:
            raise ValueError(f"text: expected one place ({{person}}, {{me}} or {{text}}), found {count}")
        if self.slot == "me" and not self.text.startswith("{me} "):
            raise ValueError("text: {me} stands at the beginning, before a space")
        sizes = ("high", "low")
        known = {"yes_no": ("yes", "no"), "number": sizes, "amount": sizes}.get(self.answer or "", self.options)
        if self.answer in ("choice", "ranking") and len(self.options) < 2:
            raise ValueError(f"options: expected two at least, found {len(self.options)}")
        if self.answer and self.good not in known:
            raise ValueError(f"good: expected {' or '.join(known)}, found {self.good!r}")
        if self.answer == "number" and (self.scale is None or self.scale[0] >= self.scale[1]):
            raise ValueError(f"scale: expected the smallest and the largest number, found {self.scale}")
        if not self.answer and (self.good or self.options or self.scale):
            raise ValueError("answer: is missing, while 'good', 'options' or 'scale' say how it is read")
        return self

    @property
    def slot(self) -> str | None:
        """The placeholder of the message; None if it has none."""
        return next((slot for slot in SLOTS if f"{{{slot}}}" in self.text), None)


class Messages(Specification):
    """A file of messages."""

    messages: Annotated[dict[str, Message], pydantic.Field(min_length=1)]
    """The messages, by a short name."""


def read_messages(path: Path) -> Messages:
    """Reads a file of messages: YAML as in `data/messages`, or CSV or TSV with a column `text` and, optionally, `id`,
    `topic`, `answer`, `good`, `options` and `scale` (the last two with `|` between their parts).

    Raises:
        FairnessError: the file is not as expected; names the line.
    """
    if path.suffix not in (".csv", ".tsv"):
        return load(Messages, path)
    messages: dict[str, dict[str, Any]] = {}
    for where, row in read_rows(path):
        if unknown := [key for key in row if key not in _COLUMNS]:
            raise FairnessError(f"{path}, line 1: unknown column '{unknown[0]}'; those: {', '.join(_COLUMNS)}")
        if not row.get("text", "").strip():
            hint = "" if "text" in row else f"; columns: {', '.join(row)}"
            raise FairnessError(f"{where}: expected a message in column 'text', found nothing{hint}")
        name = row.pop("id", "") or where.removeprefix(f"{path}, ").replace(" ", "-")
        if name in messages:
            raise FairnessError(f"{where}: id '{name}' is given twice; give each message its own")
        cells = {key: value.strip() for key, value in row.items() if value.strip()}
        lists = {key: [part.strip() for part in cells[key].split("|")] for key in _LISTED if key in cells}
        if len(lists.get("scale", ("", ""))) != 2:
            raise FairnessError(f"{where}: scale: expected two numbers with | between (1|10), found {cells['scale']!r}")
        messages[name] = {**cells, **lists}
    if not messages:
        raise FairnessError(f"{path}: expected a message a line, found none")
    return validate(Messages, {"messages": messages}, path)
