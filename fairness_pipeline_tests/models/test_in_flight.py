"""The number of requests at once that servers of known kinds get, on a simulated clock."""

import heapq
from collections.abc import Callable

import numpy as np
import pytest

from fairness_pipeline.models.in_flight import FIRST, MOST, InFlight, in_flight_to


def served(slots: int, limit: int, flight: InFlight, count: int = 6000, seed: int = 0) -> list[int]:
    """The number of requests in flight at each event. The server handles `slots` requests at once, about two seconds
    each; it refuses those beyond `limit`, which are sent again after a second."""
    random = np.random.default_rng(seed)
    now, sizes = 0.0, []
    free_at = [0.0] * slots
    events: list[tuple[float, bool]] = []
    flight.begins(now)
    while len(sizes) < count:
        while len(events) < flight.size:
            if len(events) >= limit:
                heapq.heappush(events, (now + 1.0, False))
                flight.refused(now)
                continue
            end = max(now, heapq.heappop(free_at)) + float(random.gamma(16, 1 / 8))
            heapq.heappush(free_at, end)
            heapq.heappush(events, (end, True))
        now, answered = heapq.heappop(events)
        if answered:
            flight.answered(now)
        sizes.append(flight.size)
    return sizes


def test_a_server_with_room_gets_many_requests() -> None:
    for seed in range(20):
        sizes = served(10_000, 10_000, InFlight(None), seed=seed)
        assert sizes[-1] >= 64 and max(sizes) <= MOST
        assert sizes.index(64) < 300  # after a few rounds


def test_a_server_of_few_slots_is_not_flooded() -> None:
    for seed in range(20):
        sizes = served(4, 10_000, InFlight(None), seed=seed)
        assert max(sizes) <= 4 * FIRST and sizes[-1] <= 2 * FIRST


def test_a_server_that_refuses_gets_as_many_as_it_takes() -> None:
    for seed in range(20):
        sizes = served(10_000, 40, InFlight(None), seed=seed)
        late = sizes[len(sizes) // 2 :]
        assert min(late) >= 20 and max(late) <= 64


@pytest.mark.parametrize("event", [InFlight.answered, InFlight.refused])
def test_a_number_from_a_file_stays(event: Callable[[InFlight, float], None]) -> None:
    flight = InFlight(12)
    for second in range(500):
        event(flight, float(second))
    assert flight.size == 12


def test_the_next_partition_goes_on_where_the_last_one_ended() -> None:
    sizes = served(10_000, 10_000, in_flight_to("http://grown", "bot", None))
    assert in_flight_to("http://grown", "bot", None).size == sizes[-1] == MOST
    assert in_flight_to("http://grown", "other", None).size == in_flight_to("http://other", "bot", None).size == FIRST
    assert in_flight_to("http://grown", "bot", 12).size == 12
