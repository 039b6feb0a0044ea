"""The units of work that workers get, and the results that they return."""

from dataclasses import dataclass
from typing import Literal, Protocol

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
    """The result of one asset of a unit."""

    name: str
    state: Literal["made", "unchanged", "failed", "skipped"]
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Done:
    """A unit that has ended."""

    number: int
    results: list[StepResult]


class Workers(Protocol):
    """The workers that make units."""

    @property
    def idle(self) -> int:
        """The number of workers that could start a unit now."""

    def start(self, unit: Unit) -> None:
        """Starts a unit; a worker must be idle."""

    def wait(self) -> Done:
        """Waits for the next unit that ends."""
