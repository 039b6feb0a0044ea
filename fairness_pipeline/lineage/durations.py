"""How long partitions take, as measured in this workspace or else guessed: for their order, and the time to the end."""

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
from fairness_pipeline.lineage.assets import Place

_GUESSES = "durations.json"
"""In the data folder: the mean seconds of each asset of profile `sample`, as a run of it has measured them."""
_TRAINING, _COMPUTING = 20.0, 0.2
"""Seconds of an asset that the sample does not have either, if it trains a network and if not."""
_EARLY = 20.0
"""Seconds before which a forecast says nothing."""
_SEEN = 0.02
"""The share of a phase after which its pace counts."""
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
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, OverflowError):
            known = parse_json(self._file.read_bytes())
            self._known = {str(name): {str(k): float(v) for k, v in own.items()} for name, own in known.items()}

    def expected(self, place: Place, *, trains: bool) -> float:
        """That of the partition when it was last made, or the mean of its asset's others, or a guess."""
        own = self._known.get(place[0])
        if not own:
            return _guesses().get(place[0], _TRAINING if trains else _COMPUTING)
        return own[place[1]] if place[1] in own else fmean(own.values())

    def knows(self, name: str) -> bool:
        """Whether a partition of an asset was made in this workspace before."""
        return bool(self._known.get(name))

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
    """The time to the end of a run.

    It adds what the steps that wait are expected to take, scaled by what those that are done took, to what the pace of
    those that run leaves of them.

    Args:
        expected: Seconds of each step.
        chains: For each step, those of the longest chain that begins with it.
        workers: How many work side by side.
    """

    def __init__(self, expected: Mapping[Place, float], chains: Mapping[Place, float], workers: int) -> None:
        self._left = dict(expected)
        self._behind = {place: chains[place] - own for place, own in expected.items()}
        self._workers = workers
        self._expected = self._took = 0.0
        self._begun = time.monotonic()
        self._running: dict[Place, _Pace] = {}

    def began(self, place: Place) -> None:
        """A step begins, if it has not begun."""
        self._running.setdefault(place, _Pace(time.monotonic()))

    def progressed(self, place: Place, share: float) -> None:
        """So much of a step, or of one of its phases, is done."""
        self.began(place)
        self._running[place].note(time.monotonic(), share)

    def ended(self, place: Place, seconds: float | None) -> None:
        """A step has ended, and was made in so many seconds; None if it was not made, which says nothing of others."""
        self._running.pop(place, None)
        expected = self._left.pop(place, 0.0)
        if seconds is not None:
            self._expected += expected
            self._took += seconds

    def seconds_left(self) -> float | None:
        """Seconds to the end; None as long as too little is done to tell."""
        now = time.monotonic()
        if now - self._begun < _EARLY:
            return None
        slower = (self._took + _AS_EXPECTED) / (self._expected + _AS_EXPECTED)
        left = {place: slower * seconds for place, seconds in self._left.items()}
        left |= {place: pace.left(now, left.get(place, 0.0)) for place, pace in self._running.items()}
        chains = (seconds + slower * self._behind.get(place, 0.0) for place, seconds in left.items())
        return max(sum(left.values()) / self._workers, *chains, 0.0)


class _Pace:
    """How fast a step, or the phase that it is in, comes forward.

    A phase begins at its first report, which need not be 0: a training that was killed goes on from where it was.
    """

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._first: tuple[float, float] | None = None
        self._last = (begun, 0.0)

    def note(self, now: float, share: float) -> None:
        """The share that is done now."""
        if self._first is None or share < self._last[1]:
            self._first = now, share
        self._last = now, share

    def left(self, now: float, expected: float) -> float:
        """Seconds that are left, by the pace if one is seen; else by what the whole is expected to take."""
        then, share = self._last
        if self._first and share - self._first[1] >= _SEEN:
            return max(0.0, (1 - share) * (then - self._first[0]) / (share - self._first[1]) - (now - then))
        return max(0.0, expected - (now - self._begun))


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
