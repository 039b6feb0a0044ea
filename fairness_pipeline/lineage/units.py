"""What is handed to a worker, and what comes back."""

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


class Workers(Protocol):
    """Make units."""

    @property
    def idle(self) -> int:
        """How many could begin a unit now."""

    def start(self, unit: Unit) -> None:
        """Begins a unit; one must be idle."""

    def wait(self) -> Done:
        """The next unit that ends."""
