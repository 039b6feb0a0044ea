"""The interface for following the progress of a stage."""

from typing import Protocol

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.workspace.lake import Key


class Listener(Protocol):
    """Receives waiting notices and progress while a partition is made."""

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Notes that another run makes the partition and this one waits."""

    def progress(self, asset: str, key: Key) -> Progress:
        """Returns the function that the asset's code reports its progress to."""
