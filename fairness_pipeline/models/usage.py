"""Records the tokens that endpoints report for their replies, computes their cost, and enforces a budget.

The workspace's `usage.jsonl` has a line for each reply that took tokens, from all processes. Lines are appended whole,
so a kill loses nothing.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pydantic

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import freely
from fairness_pipeline.foundation.paths import data_folders
from fairness_pipeline.foundation.text_files import parse_json
from fairness_pipeline.foundation.yaml_files import Specification, load

FILE = "usage.jsonl"
PRICES = "prices.yaml"
BUDGET = "FAIRNESS_BUDGET"
"""The environment variable with the budget of a run, and the size of the file when the run began."""
_MILLION = 1_000_000
_MOST = 1_000_000_000
"""The most tokens of one reply; a larger number counts as missing."""
_ledger: list[Path] = []
"""The file in which replies are noted; empty until `note_in` sets it."""


class Price(Specification):
    """The price of a million tokens."""

    input: pydantic.NonNegativeFloat
    """Of tokens sent."""
    output: pydantic.NonNegativeFloat
    """Of tokens received."""


class Prices(Specification):
    """`prices.yaml` in the folder that `FAIRNESS_DATA` names: the prices of endpoints. None ship, as they change."""

    currency: str = "USD"
    """The currency of the prices and of a budget."""
    per_million_tokens: dict[str, Price] = {}
    """The prices of each model, as `endpoint.model` names it."""


class Used(NamedTuple):
    """The tokens of one reply, or of many together."""

    model: str
    requests: int
    input: int
    output: int


@dataclass(frozen=True)
class Budget:
    """An amount of money for one run.

    Attributes:
        amount: The amount, in the currency of the prices.
        begin: The size of the file when the run began, in bytes.
    """

    amount: float
    begin: int

    def __str__(self) -> str:
        return f"{self.amount!r}@{self.begin}"

    @classmethod
    def of_environment(cls) -> "Budget | None":
        """The budget of the run that this process works for; None if it has none."""
        amount, _, begin = os.environ.get(BUDGET, "").partition("@")
        return cls(float(amount), int(begin)) if amount else None


def note_in(workspace: Path) -> None:
    """Makes `note` write the replies that this process gets to this workspace."""
    _ledger[:] = [workspace / FILE]


def note(model: str, reply: dict[str, Any]) -> None:
    """Notes the tokens of a reply, from its field `usage` (`prompt_tokens`, `completion_tokens`).

    The model is the one that the endpoint's file names. A reply that was no JSON is empty.

    Raises:
        FairnessError: this run has a budget, and the reply does not say how many tokens it took.
    """
    tokens = _tokens(reply)
    if tokens is None:
        if Budget.of_environment():
            raise FairnessError(
                f"--budget: the endpoint does not say how many tokens '{model}' took (the field `usage`); limit its "
                "requests instead: endpoint.max_requests"
            )
        return
    if _ledger:
        line = {
            "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "model": model,
            "input": tokens[0],
            "output": tokens[1],
        }
        with _ledger[0].open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def check_budget() -> None:
    """Raises FairnessError if this run has spent its budget, before anything more is sent."""
    if not _ledger or (budget := Budget.of_environment()) is None:
        return
    spent = _spent(_ledger[0], budget.begin)
    if (money := spent.money()) >= budget.amount:
        raise FairnessError(
            f"--budget: {money:.2f} {spent.prices.currency} of {budget.amount:.2f} are spent; the answers are kept: "
            "run again to go on with a new budget"
        )


class _Spent:
    """The money spent since a run began. Each call of `money` reads only the new lines of the file."""

    def __init__(self, path: Path, begin: int) -> None:
        self.prices = prices()
        self._path, self._position, self._money = path, begin, 0.0

    def money(self) -> float:
        for line, position in _lines(self._path, self._position):
            self._money += cost([Used(line["model"], 1, line["input"], line["output"])], self.prices) or 0.0
            self._position = position
        return self._money


_spent = cache(_Spent)


def used_since(path: Path, begin: int) -> list[Used]:
    """The tokens of each model since the file, which need not exist, had `begin` bytes."""
    by_model: dict[str, Used] = {}
    for line, _ in _lines(path, begin):
        total = by_model.get(line["model"], Used(line["model"], 0, 0, 0))
        by_model[total.model] = Used(
            total.model, total.requests + 1, total.input + line["input"], total.output + line["output"]
        )
    return list(by_model.values())


def cost(used: Iterable[Used], known: Prices) -> float | None:
    """The cost of the tokens; None if a price is not known."""
    total = 0.0
    for row in used:
        if row.model not in known.per_million_tokens:
            return None
        price = known.per_million_tokens[row.model]
        total += (row.input * price.input + row.output * price.output) / _MILLION
    return total


def prices() -> Prices:
    """The prices that the user has given; none if there is no file.

    Raises:
        FairnessError: the file is invalid.
    """
    for folder in data_folders():
        if (path := folder / PRICES).is_file():
            with freely():
                return load(Prices, path)
    return Prices()


def check_prices(models: Iterable[str]) -> None:
    """Raises FairnessError unless the price of each of these models is known."""
    known = prices().per_million_tokens
    if missing := sorted(set(models) - set(known)):
        raise FairnessError(
            f"--budget: the price of '{missing[0]}' is not known: write per_million_tokens: {{{missing[0]}: "
            f"{{input: 1, output: 2}}}} into {PRICES} of the folder that FAIRNESS_DATA names"
        )


def size(workspace: Path) -> int:
    """The current size of the workspace's file in bytes."""
    path = workspace / FILE
    return path.stat().st_size if path.exists() else 0


def describe(used: Iterable[Used]) -> Iterator[str]:
    """A readable line for each model."""
    known = prices()
    for row in used:
        money = cost([row], known)
        price = f", about {money:.2f} {known.currency}" if money is not None else ""
        yield f"{row.model}: {row.requests:,} replies took {row.input:,} tokens in and {row.output:,} out{price}"


def _lines(path: Path, begin: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields each complete line from a position on, and the position after it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(begin)
        for line in file:
            begin += len(line)
            if not line.endswith(b"\n"):  # still being written
                return
            try:
                yield parse_json(line), begin
            except ValueError:  # cut off by a full disk
                continue


def _tokens(reply: dict[str, Any]) -> tuple[int, int] | None:
    try:
        usage = reply["usage"]
        sent = float(usage["prompt_tokens"])
        received = usage.get("completion_tokens")
        counts = sent, float(received) if received is not None else float(usage["total_tokens"]) - sent
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    if not all(math.isfinite(number) and 0 <= number <= _MOST for number in counts):
        return None
    return int(counts[0]), int(counts[1])
