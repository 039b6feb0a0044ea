"""Tokens and money: what endpoints say that each reply took, what that costs, and when a budget is spent.

The workspace's `usage.jsonl` has a line for each reply that took tokens, of whichever process asked: lines are appended
whole, so nothing is lost to a kill.
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
"""The environment variable that tells the processes of one run its budget, and where in the file the run begins."""
_MILLION = 1_000_000
_MOST = 1_000_000_000
"""Tokens of one reply; a server that says more says nothing."""
_ledger: list[Path] = []
"""Where replies are noted: of the partition that this process makes now."""


class Price(Specification):
    """What a million tokens cost."""

    input: pydantic.NonNegativeFloat
    """Of what is sent."""
    output: pydantic.NonNegativeFloat
    """Of what is answered."""


class Prices(Specification):
    """`prices.yaml` in the folder that `FAIRNESS_DATA` names: what endpoints cost. None ships, as they change."""

    currency: str = "USD"
    """What the prices, and a budget, are in."""
    per_million_tokens: dict[str, Price] = {}
    """By the endpoint's model, as `endpoint.model` names it."""


class Used(NamedTuple):
    """What one reply took, or many together."""

    model: str
    requests: int
    input: int
    output: int


@dataclass(frozen=True)
class Budget:
    """An amount of money for one run.

    Attributes:
        amount: In the currency of the prices.
        begin: The size of the file when the run began, in bytes.
    """

    amount: float
    begin: int

    def __str__(self) -> str:
        return f"{self.amount!r}@{self.begin}"

    @classmethod
    def of_environment(cls) -> "Budget | None":
        """That of the run which this process works for."""
        amount, _, begin = os.environ.get(BUDGET, "").partition("@")
        return cls(float(amount), int(begin)) if amount else None


def note_in(workspace: Path) -> None:
    """From now on the replies that this process gets are noted in this workspace."""
    _ledger[:] = [workspace / FILE]


def note(model: str, reply: dict[str, Any]) -> None:
    """Notes what a reply took, as its field `usage` says (`prompt_tokens`, `completion_tokens`).

    Args:
        model: As the endpoint's file names it.
        reply: The reply's JSON; empty if it was none.

    Raises:
        FairnessError: this run has a budget, and the reply does not say what it took.
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
    """Raises FairnessError if this run has spent its budget: nothing more may be asked."""
    if not _ledger or (budget := Budget.of_environment()) is None:
        return
    spent = _spent(_ledger[0], budget.begin)
    if (money := spent.money()) >= budget.amount:
        raise FairnessError(
            f"--budget: {money:.2f} {spent.prices.currency} of {budget.amount:.2f} are spent; the answers are kept: "
            "run again to go on with a new budget"
        )


class _Spent:
    """What was taken since a run began; what is new in the file is read at each look."""

    def __init__(self, path: Path, begin: int) -> None:
        self.prices = prices()
        self._path, self._place, self._money = path, begin, 0.0

    def money(self) -> float:
        for line, place in _lines(self._path, self._place):
            self._money += cost([Used(line["model"], 1, line["input"], line["output"])], self.prices) or 0.0
            self._place = place
        return self._money


_spent = cache(_Spent)


def used_since(path: Path, begin: int) -> list[Used]:
    """What was taken since the file had so many bytes, a line a model.

    Args:
        path: The file; it need not exist.
        begin: Bytes.
    """
    found: dict[str, Used] = {}
    for line, _ in _lines(path, begin):
        own = found.get(line["model"], Used(line["model"], 0, 0, 0))
        found[own.model] = Used(own.model, own.requests + 1, own.input + line["input"], own.output + line["output"])
    return list(found.values())


def cost(used: Iterable[Used], known: Prices) -> float | None:
    """What it costs; None where a price is not known."""
    whole = 0.0
    for own in used:
        if own.model not in known.per_million_tokens:
            return None
        price = known.per_million_tokens[own.model]
        whole += (own.input * price.input + own.output * price.output) / _MILLION
    return whole


def prices() -> Prices:
    """The prices that the user has given; none if there is no file.

    Raises:
        FairnessError: the file is not as it should be.
    """
    for folder in data_folders():
        if (path := folder / PRICES).is_file():
            with freely():
                return load(Prices, path)
    return Prices()


def check_prices(models: Iterable[str]) -> None:
    """Raises FairnessError unless the price of each of these endpoints' models is known."""
    known = prices().per_million_tokens
    if missing := sorted(set(models) - set(known)):
        raise FairnessError(
            f"--budget: the price of '{missing[0]}' is not known: write per_million_tokens: {{{missing[0]}: "
            f"{{input: 1, output: 2}}}} into {PRICES} of the folder that FAIRNESS_DATA names"
        )


def size(workspace: Path) -> int:
    """How many bytes the workspace's file has now."""
    path = workspace / FILE
    return path.stat().st_size if path.exists() else 0


def told(used: Iterable[Used]) -> Iterator[str]:
    """A line for each model, for a reader."""
    known = prices()
    for own in used:
        money = cost([own], known)
        price = f", about {money:.2f} {known.currency}" if money is not None else ""
        yield f"{own.model}: {own.requests:,} replies took {own.input:,} tokens in and {own.output:,} out{price}"


def _lines(path: Path, begin: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Each whole line from a place, and the place after it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(begin)
        for line in file:
            begin += len(line)
            if not line.endswith(b"\n"):  # being written
                return
            try:
                yield parse_json(line), begin
            except ValueError:  # cut off by a full disk
                continue


def _tokens(reply: dict[str, Any]) -> tuple[int, int] | None:
    try:
        usage = reply["usage"]
        taken = float(usage["prompt_tokens"])
        given = usage.get("completion_tokens")
        found = taken, float(given) if given is not None else float(usage["total_tokens"]) - taken
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    if not all(math.isfinite(number) and 0 <= number <= _MOST for number in found):
        return None
    return int(found[0]), int(found[1])
