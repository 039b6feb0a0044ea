"""Adapts the number of concurrent requests to a server: it grows with the throughput, and shrinks after a refusal.

Eight requests keep a server with one slot busy, and 64 would time out in its queue; a server with a GPU answers 64
nearly as fast as one. So the number doubles as long as each doubling brings a fifth more answers a second.
"""

FIRST, MOST = 8, 256
_GAIN = 1.2
_LEAST_ROUND = 16
"""The fewest answers in a round, as the first answers come in bursts."""
_MISSES = 2
"""Rounds without a gain after which the number stops growing; a single one may be chance."""
_APART = 1.0
"""Seconds within which several refusals count as one."""


class InFlight:
    """The number of requests that may be in flight: `fixed` if a file sets it, otherwise adapted to the server.

    Attributes:
        size: The current number.

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
        """Begins a round. Earlier answers no longer count, as the pause since then says nothing about the server."""
        self._since, self._count, self._misses = now, 0, 0

    def answered(self, now: float) -> None:
        """Counts an answer, and adapts the number at the end of a round."""
        if self._fixed:
            return
        self._count += 1
        if self._count < max(_LEAST_ROUND, 2 * self.size):
            return
        rate = self._count / max(now - self._since, 1e-9)
        self._since, self._count = now, 0
        if not self._grows:
            self.size = min(self._most, self.size + 1)  # recovers from a refusal one by one
        elif rate >= _GAIN * self._best[0]:
            self._best = rate, self.size
            self.size, self._misses = min(MOST, 2 * self.size), 0
        else:
            self._misses += 1
            if self._misses == _MISSES:
                self.size = self._most = self._best[1]
                self._grows = False

    def refused(self, now: float) -> None:
        """Lowers the number after the server reported too many requests, or did not answer in time."""
        if self._fixed or (self._cut is not None and now - self._cut < _APART):
            return
        self._cut = now
        self._most = max(1, self.size - 1)
        self.size = max(1, self.size // 2)
        self._grows = False
        self.begins(now)


_adapted: dict[tuple[str, str], InFlight] = {}


def in_flight_to(server: str, model: str, fixed: int | None) -> InFlight:
    """The number of requests to a model of a server. What one partition has found out holds for the next ones of the
    process.

    Args:
        server: The server's address.
        model: The model's name there.
        fixed: The number, if a file sets it.
    """
    return InFlight(fixed) if fixed else _adapted.setdefault((server, model), InFlight(None))
