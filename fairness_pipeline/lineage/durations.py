"""Estimates how long partitions take, by measurements in this workspace or guesses: for their order and a forecast."""

import contextlib
import json
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import fmean

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.text_files import parse_json
from fairness_pipeline.lineage.assets import PartitionId

_GUESSES = "durations.json"
"""In the data folder: the mean seconds of each asset of profile `sample`, measured in a run of it."""
_TRAINING, _COMPUTING = 20.0, 0.2
"""Guessed seconds of an asset that the sample lacks: of one that trains a network, and of any other."""
_EARLY = 20.0
"""Seconds before the first forecast."""
_SEEN = 0.02
"""The share of a phase after which its pace counts."""
_AS_EXPECTED = 60.0
"""Seconds of work that count as done as fast as expected, so that the first small steps have little weight."""


class Durations:
    """Seconds by asset and partition."""

    def __init__(self, workspace: Path) -> None:
        self._file = workspace / "durations.json"
        self._known: dict[str, dict[str, float]] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, OverflowError):
            stored = parse_json(self._file.read_bytes())
            self._known = {
                str(name): {str(k): float(v) for k, v in seconds.items()} for name, seconds in stored.items()
            }

    def expected(self, partition: PartitionId, *, trains: bool) -> float:
        """Returns the seconds that the partition took last, or the mean of the asset's other partitions, or a guess."""
        measured = self._known.get(partition[0])
        if not measured:
            return _guesses().get(partition[0], _TRAINING if trains else _COMPUTING)
        return measured[partition[1]] if partition[1] in measured else fmean(measured.values())

    def knows(self, name: str) -> bool:
        """Whether a partition of an asset was made in this workspace before."""
        return bool(self._known.get(name))

    def note(self, partition: PartitionId, seconds: float) -> None:
        """Records how long a partition took."""
        self._known.setdefault(partition[0], {})[partition[1]] = round(seconds, 2)

    def save(self) -> None:
        """Writes them to the workspace, if it is writable."""
        with contextlib.suppress(OSError), replacing(self._file) as temporary:
            temporary.write_text(json.dumps(self._known, sort_keys=True), encoding="utf-8")


@cache
def _guesses() -> dict[str, float]:
    guesses: dict[str, float] = json.loads(data_file(_GUESSES).read_bytes())
    return guesses


class Forecast:
    """The time to the end of a run.

    It adds the expected seconds of the waiting steps, scaled by what the finished ones took, to the seconds that the
    running ones still need at their pace.

    Args:
        expected: Seconds of each step.
        chains: For each step, the seconds of the longest chain that begins with it.
        workers: How many work in parallel.
    """

    def __init__(
        self, expected: Mapping[PartitionId, float], chains: Mapping[PartitionId, float], workers: int
    ) -> None:
        self._left = dict(expected)
        self._behind = {partition: chains[partition] - seconds for partition, seconds in expected.items()}
        self._workers = workers
        self._expected = self._took = 0.0
        self._begun = time.monotonic()
        self._running: dict[PartitionId, _Pace] = {}

    def began(self, partition: PartitionId) -> None:
        """Notes the start of a step, unless it has started."""
        self._running.setdefault(partition, _Pace(time.monotonic()))

    def progressed(self, partition: PartitionId, share: float) -> None:
        """Notes the share of a step, or of its present phase, that is done."""
        self.began(partition)
        self._running[partition].note(time.monotonic(), share)

    def ended(self, partition: PartitionId, seconds: float | None) -> None:
        """Notes the end of a step and its seconds; None if it was not made, which says nothing about others."""
        self._running.pop(partition, None)
        expected = self._left.pop(partition, 0.0)
        if seconds is not None:
            self._expected += expected
            self._took += seconds

    def seconds_left(self) -> float | None:
        """Returns the seconds to the end; None until enough is done to tell."""
        now = time.monotonic()
        if now - self._begun < _EARLY:
            return None
        slowdown = (self._took + _AS_EXPECTED) / (self._expected + _AS_EXPECTED)
        left = {partition: slowdown * seconds for partition, seconds in self._left.items()}
        left |= {partition: pace.left(now, left.get(partition, 0.0)) for partition, pace in self._running.items()}
        chains = (seconds + slowdown * self._behind.get(partition, 0.0) for partition, seconds in left.items())
        return max(sum(left.values()) / self._workers, *chains, 0.0)


class _Pace:
    """The pace of a step, or of its present phase.

    A phase begins at its first report, which need not be 0: a killed training resumes where it was.
    """

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._first: tuple[float, float] | None = None
        self._last = (begun, 0.0)

    def note(self, now: float, share: float) -> None:
        """Records the share that is done now."""
        if self._first is None or share < self._last[1]:
            self._first = now, share
        self._last = now, share

    def left(self, now: float, expected: float) -> float:
        """Returns the seconds left at the observed pace; without one, the rest of the expected seconds."""
        then, share = self._last
        if self._first and share - self._first[1] >= _SEEN:
            return max(0.0, (1 - share) * (then - self._first[0]) / (share - self._first[1]) - (now - then))
        return max(0.0, expected - (now - self._begun))


def chains(expected: list[float], needed_by: dict[int, list[int]]) -> list[float]:
    """For each unit, the seconds of the longest chain that begins with it.

    Args:
        expected: Seconds of each unit.
        needed_by: For each unit, the units that need it.

    Example:
        >>> chains([1.0, 5.0, 2.0], {0: [1, 2], 1: [2]})
        [8.0, 7.0, 2.0]
    """
    longest: dict[int, float] = {}
    for start in range(len(expected)):
        stack = [start]
        while stack:  # a chain may be longer than Python's stack
            unit = stack[-1]
            successors = needed_by.get(unit, [])
            missing = [successor for successor in successors if successor not in longest]
            if unit in longest or not missing:
                stack.pop()
                longest[unit] = expected[unit] + max((longest[successor] for successor in successors), default=0.0)
            else:
                stack += missing
    return [longest[unit] for unit in range(len(expected))]
