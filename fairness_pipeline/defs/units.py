"""What is handed to a worker, and what comes back."""

from dataclasses import dataclass
from typing import Literal

from fairness_pipeline.workspace.lake import Key


@dataclass(frozen=True)
class Unit:
    """Assets of one partition that are made together, one after the other."""

    number: int
    names: list[str]
    key: Key
    force: bool


@dataclass(frozen=True)
class StepResult:
    """What became of an asset of a unit."""

    name: str
    state: Literal["made", "unchanged", "failed", "skipped"]
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Done:
    """A unit that has ended."""

    number: int
    results: list[StepResult]
