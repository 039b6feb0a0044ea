"""Who hears how far a stage is."""

from typing import Protocol

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.workspace.lake import Key


class Listener(Protocol):
    """Hears of waiting and progress while a partition is made."""

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Another run makes the partition; this one waits."""

    def progress(self, asset: str, key: Key) -> Progress:
        """Where the asset's room reports to."""
