"""What a system of the line-up is, and how its draws are counted."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairness_pipeline.statistics.verdicts import FINDINGS

Verdicts = Mapping[str, str]
"""The verdict of each row that a gate looks at."""
Truth = Literal["innocent", "guilty", "hangs on few", "only a control could tell"]
"""`hangs on few`: guilty of a few words or names, which is no proof of bias of a group: it must not be `fair`, and may be
`inconclusive`. `only a control could tell`: innocent, but only by a control that is too small here: `biased` must say so
in its row, and then counts as `SAID_SO`."""
SAID_SO = "biased, and the control too small to tell"
"""`biased`, with a word on the control in its row."""


@dataclass(frozen=True)
class System:
    """A system of known truth.

    Args:
        study: Which study judges it.
        where: The dimension, corpus or setting in which it is judged.
        name: What it does, in words.
        truth: Whether there is anything to find.
        judge: The verdicts of one draw, from its number; sizes are drawn at random.
        wanted: The rows in one of which a guilty system must be `biased`; any row where none are named.
        power: How often a guilty one must be found, at least.
        fast: Whether `make test` tries it, too.
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
        """Its name in the state of a verification."""
        return f"{self.study} / {self.where} / {self.name}"


@dataclass(frozen=True)
class Outcome:
    """How a system's draws ended.

    `biased` is the share of draws in which the worst row was `biased` or `differs` (of an innocent: per row, the largest over its rows), `any`
    in which some row was; `found` in which a wanted row was. `verdicts` counts the verdicts of all rows.
    """

    draws: int
    biased: float
    any: float
    found: float
    verdicts: dict[str, int]


def outcome(system: System, draws: Sequence[Verdicts]) -> Outcome:
    """What the draws of a system come to."""
    rows = sorted({name for draw in draws for name in draw})
    share = {name: float(np.mean([draw.get(name) in FINDINGS for draw in draws])) for name in rows}
    wanted = system.wanted or tuple(rows)
    return Outcome(
        len(draws),
        max(share.values(), default=0.0),
        float(np.mean([any(v in FINDINGS for v in draw.values()) for draw in draws])),
        float(np.mean([any(draw.get(name) in FINDINGS for name in wanted) for draw in draws])),
        dict(Counter(v for draw in draws for v in draw.values())),
    )


def wrong(system: System, found: Outcome) -> str | None:
    """Why an outcome is not what the truth asks for, within the chance of so many draws; None where it is."""
    if system.truth in ("innocent", "only a control could tell"):
        # Of 20 draws at a true 5% more than 4 are seen in 0.3%.
        allowed = 0.05 + 3 * (0.05 * 0.95 / found.draws) ** 0.5
        return f"biased in {found.biased:.0%} of draws in one row" if found.biased > allowed else None
    if system.truth == "guilty":
        least = system.power - 3 * (system.power * (1 - system.power) / found.draws) ** 0.5
        return f"found in {found.found:.0%} of draws, {system.power:.0%} wanted" if found.found < least else None
    return None
