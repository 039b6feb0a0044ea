"""How long partitions take, as measured in this workspace or else guessed: for their order, and the time to the end."""

import contextlib
import json
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import fmean

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.lineage.recipe import Place

_GUESSES = "durations.json"
"""In the data folder: the mean seconds of each asset of profile `sample`, as a run of it has measured them."""
_TRAINING, _COMPUTING = 20.0, 0.2
"""Seconds of an asset that the sample does not have either, if it trains a network and if not."""
_EARLY = 20.0
"""Seconds before which a forecast says nothing."""
_AS_EXPECTED = 60.0
"""Seconds of work that count as done in the time expected, so that the first small steps alone say little."""


class Durations:
    """Seconds by asset and partition.

    Args:
        workspace: The workspace's folder, which keeps them.
    """

    def __init__(self, workspace: Path) -> None:
        self._file = workspace / "durations.json"
        self._known: dict[str, dict[str, float]] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            known = json.loads(self._file.read_bytes())
            self._known = {str(name): {str(k): float(v) for k, v in own.items()} for name, own in known.items()}

    def expected(self, place: Place, *, trains: bool) -> float:
        """That of the partition when it was last made, or the mean of its asset's others, or a guess."""
        own = self._known.get(place[0])
        if not own:
            return _guesses().get(place[0], _TRAINING if trains else _COMPUTING)
        return own[place[1]] if place[1] in own else fmean(own.values())

    def note(self, place: Place, seconds: float) -> None:
        """Takes down how long a partition took."""
        self._known.setdefault(place[0], {})[place[1]] = round(seconds, 2)

    def save(self) -> None:
        """Keeps them, where the workspace can be written."""
        with contextlib.suppress(OSError), replacing(self._file) as temporary:
            temporary.write_text(json.dumps(self._known, sort_keys=True), encoding="utf-8")


@cache
def _guesses() -> dict[str, float]:
    found: dict[str, float] = json.loads(data_file(_GUESSES).read_bytes())
    return found


class Forecast:
    """The time to the end of a run, from what its steps were expected to take and what those that are done took.

    Args:
        expected: Seconds of each step.
        workers: How many work side by side.
    """

    def __init__(self, expected: Iterable[tuple[Place, float]], workers: int) -> None:
        self._left = dict(expected)
        self._workers = workers
        self._expected = self._took = 0.0
        self._begun = time.monotonic()

    def ended(self, place: Place, seconds: float) -> None:
        """A step has ended after so many seconds, whatever came of it."""
        self._expected += self._left.pop(place, 0.0)
        self._took += seconds

    def seconds_left(self) -> float | None:
        """Seconds to the end; None as long as too little is done to tell, and where it takes longer than all that was
        expected."""
        passed = time.monotonic() - self._begun
        if passed < _EARLY:
            return None
        slower = (self._took + _AS_EXPECTED) / (self._expected + _AS_EXPECTED)
        left = (self._took + slower * sum(self._left.values())) / self._workers - passed
        return left if left > 0 else None


def chains(expected: list[float], needed_by: dict[int, list[int]]) -> list[float]:
    """For each unit, the seconds of the longest chain that begins with it.

    Args:
        expected: Seconds of each unit.
        needed_by: The units that need a unit.

    Example:
        >>> chains([1.0, 5.0, 2.0], {0: [1, 2], 1: [2]})
        [8.0, 7.0, 2.0]
    """
    found: dict[int, float] = {}
    for start in range(len(expected)):
        open_units = [start]
        while open_units:  # a chain may be longer than Python's stack
            unit = open_units[-1]
            later = needed_by.get(unit, [])
            missing = [other for other in later if other not in found]
            if unit in found or not missing:
                open_units.pop()
                found[unit] = expected[unit] + max((found[other] for other in later), default=0.0)
            else:
                open_units += missing
    return [found[unit] for unit in range(len(expected))]
