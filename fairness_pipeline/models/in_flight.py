"""How many requests a server gets at once: as many as make it answer faster, fewer if it says that these are too many.

Eight requests keep a server of one slot busy, and 64 would time out in its queue; a server with a GPU answers 64 nearly
as fast as one. So the number doubles for as long as this brings a fifth more answers a second.
"""

FIRST, MOST = 8, 256
_GAIN = 1.2
_LEAST_ROUND = 16
"""Answers, of which the first few come in bursts."""
_MISSES = 2
"""Rounds without a gain after which the number stays: one may be chance."""
_APART = 1.0
"""Seconds: refusals that come together are one."""


class InFlight:
    """The number of requests that may be on their way.

    Args:
        fixed: The number, if a file names it; else it is found.

    Attributes:
        size: The number as it stands.

    Examples:
        >>> flight = InFlight(None)
        >>> flight.begins(0.0)
        >>> for answer in range(16):
        ...     flight.answered(1.0)
        >>> flight.size
        16
    """

    def __init__(self, fixed: int | None) -> None:
        self.size = fixed or FIRST
        self._fixed = fixed is not None
        self._best = (0.0, self.size)
        self._most = MOST
        self._grows = True
        self._cut: float | None = None
        self.begins(0.0)

    def begins(self, now: float) -> None:
        """A round of answers begins; what came before, with pauses in between, tells nothing of the server."""
        self._since, self._count, self._misses = now, 0, 0

    def answered(self, now: float) -> None:
        """Takes note of an answer."""
        if self._fixed:
            return
        self._count += 1
        if self._count < max(_LEAST_ROUND, 2 * self.size):
            return
        rate = self._count / max(now - self._since, 1e-9)
        self._since, self._count = now, 0
        if not self._grows:
            self.size = min(self._most, self.size + 1)  # what a refusal took away comes back one by one
        elif rate >= _GAIN * self._best[0]:
            self._best = rate, self.size
            self.size, self._misses = min(MOST, 2 * self.size), 0
        else:
            self._misses += 1
            if self._misses == _MISSES:
                self.size = self._most = self._best[1]
                self._grows = False

    def refused(self, now: float) -> None:
        """Takes note of a server that says it has too many requests, or does not answer in time."""
        if self._fixed or (self._cut is not None and now - self._cut < _APART):
            return
        self._cut = now
        self._most = max(1, self.size - 1)
        self.size = max(1, self.size // 2)
        self._grows = False
        self.begins(now)
