"""What an asset's function is given: one partition, with its settings and the way to its inputs."""

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
from fairness_pipeline.workspace.lake import Key, Lake, partition_name


@dataclass(frozen=True)
class Partition(Generic[P]):
    """What an asset is given: its part of the profile, its key, the way to its inputs, a folder for unfinished work."""

    name: str
    key: Key
    lineage: Lineage
    lake: Lake
    progress: Progress
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
        """The same along an axis: the same responses of two models then give the same table."""
        key = {own: value for own, value in self.key.items() if own != axis}
        return _seed(self.project.profile.seed, self.name, key)

    @property
    def folder(self) -> Path:
        """A folder for this fingerprint alone, with what a killed run left in it. Kept only for a checkpoint."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def of_base(self) -> Self:
        """The same for what this partition's subject was made from: the way to the base's inputs."""
        key = self.part.base_of(self.key)
        if key is None:
            raise FairnessError(f"{self.name} {partition_name(self.key)}: expected a subject made from another one")
        return replace(self, key=key)

    @property
    def of_seeds(self) -> list[Self]:
        """The same for every seed that this partition's subject is trained with."""
        return [replace(self, key=key) for key in self.part.seeds_of(self.key)]

    def of(self, key: Key) -> Self:
        """The same for another subject, one of the rivals: the way to its inputs."""
        return replace(self, key=key)

    def read(self, table: str) -> pa.Table:
        """The upstream table's partition that belongs to this one."""
        return self.lake.read(table, self._upstream(table))

    def checkpoint(self, asset: str) -> Path:
        """The upstream checkpoint's folder that belongs to this partition."""
        return self.lake.current_folder(asset, self._upstream(asset))

    def figures(self, asset: str) -> dict[str, Any]:
        """What was found while the upstream partition that belongs to this one was made."""
        card = self.lake.card(asset, self._upstream(asset))
        return card.figures if card else {}

    def stale(self, table: str) -> list[Key]:
        """The partitions of an upstream table that are not what the profile asks for now."""
        state = State(self.lineage, self.lake)
        return [key for key in self.lineage.keys(table) if state.stale(table, key)]

    def _upstream(self, asset: str) -> Key:
        (key,) = self.lineage.upstream_keys(self.key, asset)
        return key


def _seed(seed: int, name: str, key: Key) -> int:
    """A seed fixed by the profile's seed, the asset and the partition."""
    text = "\x1f".join([str(seed), name, *(f"{axis}={key[axis]}" for axis in sorted(key))])
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
