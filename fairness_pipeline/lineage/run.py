"""The working folder and the seeds of an asset's function."""

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.workspace.distinct import HERE, Engine
from fairness_pipeline.workspace.lake import Key


def _silent(done: int, total: int | None, note: str) -> None:
    """Ignores progress."""


@dataclass(frozen=True)
class Run:
    """The working folder and the seeds of an asset's function. In a notebook `Run()` is enough.

    `asset`, `key` and `profile_seed` are part of every fingerprint, so a function may use them and the seeds that
    follow from them.
    """

    asset: str = ""
    key: Key = field(default_factory=dict)
    profile_seed: int = 0
    progress: Progress = _silent
    engine: Engine = HERE
    working_folder: Path | None = None

    @cached_property
    def folder(self) -> Path:
        """A folder for this fingerprint alone, with what a killed run left in it. It is only kept for a checkpoint."""
        folder = self.working_folder or Path(mkdtemp())
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def seed(self) -> int:
        """The seed of this asset and partition."""
        return self._seed_of(self.key)

    def seed_without(self, axis: str) -> int:
        """A seed that is the same along an axis, so that two models with the same responses get the same table."""
        return self._seed_of({name: value for name, value in self.key.items() if name != axis})

    def _seed_of(self, key: Key) -> int:
        text = "\x1f".join([str(self.profile_seed), self.asset, *(f"{axis}={key[axis]}" for axis in sorted(key))])
        return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
