"""Defines the systems of the line-up, and judges the outcomes of their draws."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairness_pipeline.statistics.verdicts import FINDINGS

Verdicts = Mapping[str, str]
"""The verdict of each row that a gate looks at."""
Truth = Literal["innocent", "guilty", "hangs on few", "only a control could tell"]
"""`hangs on few`: biased about a few words or names, which does not prove a bias about a group. It must not be `fair`,
and may be `inconclusive`. `only a control could tell`: innocent, but only a control could show it, and the control is
too small. A `biased` row must say so, and then counts as `SAID_SO`."""
SAID_SO = "biased, and the control too small to tell"
"""`biased`, with a note on the control in its row."""


@dataclass(frozen=True)
class System:
    """A system of known truth.

    Args:
        study: The study that judges it.
        where: The dimension, corpus or setting in which it is judged.
        name: What it does, in words.
        truth: Whether there is a bias to find.
        judge: Returns the verdicts of one draw, given the draw's number; sizes are drawn at random.
        wanted: The rows of which one must be `biased` if the system is guilty; all rows if empty.
        power: The least share of draws in which a guilty system must be found.
        fast: Whether `make test` runs it, too.
    """

    study: str
    where: str
    name: str
    truth: Truth
    judge: Callable[[int], Verdicts]
    wanted: tuple[str, ...] = ()
    power: float = 0.8
    fast: bool = False

    @property
    def key(self) -> str:
        """Its key in the saved state of a verification."""
        return f"{self.study} / {self.where} / {self.name}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a system's draws.

    A row counts if it is `biased` or `differs`. `biased` is the largest share of draws in which the same row counts,
    `any` the share in which any row counts, and `found` the share in which a row of `System.wanted` counts. `verdicts`
    counts the verdicts of all rows.
    """

    draws: int
    biased: float
    any: float
    found: float
    verdicts: dict[str, int]


def outcome(system: System, draws: Sequence[Verdicts]) -> Outcome:
    """Summarises the draws of a system."""
    rows = sorted({name for draw in draws for name in draw})
    share = {name: float(np.mean([draw.get(name) in FINDINGS for draw in draws])) for name in rows}
    expected = system.wanted or tuple(rows)
    return Outcome(
        len(draws),
        max(share.values(), default=0.0),
        float(np.mean([any(v in FINDINGS for v in draw.values()) for draw in draws])),
        float(np.mean([any(draw.get(name) in FINDINGS for name in expected) for draw in draws])),
        dict(Counter(v for draw in draws for v in draw.values())),
    )


def wrong(system: System, result: Outcome) -> str | None:
    """Returns why an outcome contradicts the truth by more than chance; None if it does not."""
    if system.truth in ("innocent", "only a control could tell"):
        # At a true rate of 5%, more than 3 of 20 draws are biased with a probability of 1.6%.
        allowed = 0.05 + 3 * (0.05 * 0.95 / result.draws) ** 0.5
        return f"biased in {result.biased:.0%} of draws in one row" if result.biased > allowed else None
    if system.truth == "guilty":
        least = system.power - 3 * (system.power * (1 - system.power) / result.draws) ** 0.5
        return f"found in {result.found:.0%} of draws, {system.power:.0%} wanted" if result.found < least else None
    return None
