"""The profile that this process serves, and who listens to how far its stages are."""

import os
import time
from functools import lru_cache

import dagster as dg

from fairness_pipeline.lake import Key, partition_name
from fairness_pipeline.progress import Progress
from fairness_pipeline.project import Project

PROFILE = "FAIRNESS_PROFILE"
DEFAULT_PROFILE = "sample"
_LOG_EVERY = 10.0


@lru_cache(maxsize=1)
def current_project() -> Project:
    """The project of `FAIRNESS_PROFILE` (`sample` by default), read once a process."""
    return Project(os.environ.get(PROFILE) or DEFAULT_PROFILE)


class Listener:
    """Hears of waiting and progress; this one writes to Dagster's log, where the UI shows it."""

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Another run makes the partition; this one waits."""
        dg.get_dagster_logger().warning(f"{asset} {partition_name(key)}: waiting for {holder}, which makes it now")

    def progress(self, asset: str, key: Key) -> Progress:
        """Where the asset's room reports to."""
        last = time.monotonic()

        def tell(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if time.monotonic() - last > _LOG_EVERY:
                last = time.monotonic()
                dg.get_dagster_logger().info(f"{done:,} of {total:,} {note}" if total else f"{done:,} {note}")

        return tell


_listener = Listener()


def listener() -> Listener:
    """Who listens in this process."""
    return _listener


def listen(other: Listener) -> None:
    """Makes `other` the listener of this process (the command line shows bars instead of log lines)."""
    global _listener
    _listener = other
