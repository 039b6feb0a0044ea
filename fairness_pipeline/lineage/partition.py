"""The argument of an asset's function: one partition, with its settings and access to its inputs."""

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Self, cast

import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import P
from fairness_pipeline.workspace.distinct import Engine
from fairness_pipeline.workspace.lake import Key, Lake, partition_name


@dataclass(frozen=True)
class Partition(Generic[P]):
    """The argument of an asset's function: its key, its part of the profile, its inputs, and a folder to work in."""

    name: str
    key: Key
    lineage: Lineage
    lake: Lake
    progress: Progress
    engine: Engine
    _folder: Path

    @property
    def project(self) -> Project:
        """The profile."""
        return self.lineage.project

    @property
    def part(self) -> P:
        """The profile's part of the asset's study."""
        return cast(P, self.lineage.part(self.name))

    @property
    def seed(self) -> int:
        """The seed of this asset and partition."""
        return _seed(self.project.profile.seed, self.name, self.key)

    def seed_without(self, axis: str) -> int:
        """A seed that is the same along an axis, so that two models with the same responses get the same table."""
        key = {own: value for own, value in self.key.items() if own != axis}
        return _seed(self.project.profile.seed, self.name, key)

    @property
    def folder(self) -> Path:
        """A folder for this fingerprint alone, with what a killed run left in it. It is only kept for a checkpoint."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def of_base(self) -> Self:
        """This partition for the base of its subject, to read the base's inputs."""
        key = self.part.base_of(self.key)
        if key is None:
            raise FairnessError(f"{self.name} {partition_name(self.key)}: expected a subject made from another one")
        return replace(self, key=key)

    @property
    def of_seeds(self) -> list[Self]:
        """This partition for each training seed of its subject."""
        return [replace(self, key=key) for key in self.part.seeds_of(self.key)]

    @property
    def of_shared(self) -> Self:
        """This partition for the subject that makes what its own shares with others."""
        return replace(self, key=self.part.shared_with(self.key))

    def of(self, key: Key) -> Self:
        """This partition for another subject, such as a baseline, to read that subject's inputs."""
        return replace(self, key=key)

    def read(self, table: str) -> pa.Table:
        """The matching partition of an upstream table."""
        return self.lake.read(table, self._upstream(table))

    def checkpoint(self, asset: str) -> Path:
        """The folder of the matching upstream checkpoint; raises FairnessError if it is not as it was written."""
        return self.lake.sound_folder(asset, self._upstream(asset))

    def figures(self, asset: str) -> dict[str, Any]:
        """The figures of the matching upstream partition."""
        card = self.lake.card(asset, self._upstream(asset))
        return card.figures if card else {}

    def stale(self, table: str) -> list[Key]:
        """The partitions of an upstream table that are not up to date with the profile."""
        state = State(self.lineage, self.lake)
        return [key for key in self.lineage.keys(table) if state.stale(table, key)]

    def _upstream(self, asset: str) -> Key:
        (key,) = self.lineage.upstream_keys(self.key, asset)
        return key


def _seed(seed: int, name: str, key: Key) -> int:
    """A seed that depends on the profile's seed, the asset and the partition."""
    text = "\x1f".join([str(seed), name, *(f"{axis}={key[axis]}" for axis in sorted(key))])
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
