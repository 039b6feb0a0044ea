"""Partitions and partition mappings in Dagster's own types.

A partition with two axes is one flat key, `gender|seq2seq`, and not a cell of a grid: a grid has holes where nothing
can be made (a rate that a corpus does not have), and Dagster cannot express most mappings between grids.
"""

from collections.abc import Iterable, Mapping

import dagster as dg

from fairness_pipeline.defs.names import Names
from fairness_pipeline.lineage.assets import Asset, Axes
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.workspace.lake import Key

_SEPARATOR = "|"


class Shown:
    """The partitions that Dagster shows, by asset.

    Args:
        lineage: The lineage of a profile.
        partitions: The partitions; by default all that can be made.
        names: The names of its definitions.
    """

    def __init__(
        self, lineage: Lineage, partitions: Iterable[tuple[str, Key]] | None = None, names: Names | None = None
    ) -> None:
        self.lineage = lineage
        self.names = names or Names()
        everything = ((name, key) for name in lineage.assets for key in lineage.keys(name))
        self._keys: dict[str, dict[str | None, Key]] = {name: {} for name in lineage.assets}
        for name, key in everything if partitions is None else partitions:
            self._keys[name][to_dagster(key)] = key

    def keys(self, name: str) -> Mapping[str | None, Key]:
        """The partitions of an asset by their name in Dagster, which is None if the asset is not partitioned."""
        return self._keys[name]

    @property
    def assets(self) -> list[Asset]:
        """The assets that have a partition, upstream before downstream."""
        return [asset for asset in self.lineage.assets.values() if self._keys[asset.name]]

    def above(self, asset: Asset) -> list[str]:
        """The assets that Dagster draws an arrow from, also those with partitions only on request: a run records what
        its partition was made from, and an arrow that comes and goes would make it stale."""
        return [name for name in asset.arrows or asset.sources if self.lineage.keys(name)]

    @property
    def on_request(self) -> list[Asset]:
        """The assets whose partitions are all made only on request, and were not made yet."""
        return [
            asset
            for asset in self.lineage.assets.values()
            if not self._keys[asset.name] and self.lineage.keys(asset.name)
        ]

    def definition(self, asset: Asset) -> dg.PartitionsDefinition | None:
        """Dagster's partitions of an asset; None if it has no axes."""
        return dg.StaticPartitionsDefinition([str(key) for key in self.keys(asset.name)]) if asset.axes else None

    def mappings(self, asset: Asset) -> dict[str, dg.PartitionMapping | None]:
        """`Lineage.sources` as Dagster's own mappings, by upstream asset; None where all partitions are meant."""
        targets_of: dict[str, dict[str, set[str]]] = {name: {} for name in self.above(asset)}
        for partition, key in self.keys(asset.name).items():
            for source, source_key in self.lineage.sources(asset.name, key):
                name = to_dagster(source_key)
                if source in targets_of and name in self.keys(source):
                    targets_of[source].setdefault(str(name), set()).add(str(partition))
        return {
            name: dg.StaticPartitionMapping(targets) if asset.axes and self._axes(name) else None
            for name, targets in targets_of.items()
        }

    def _axes(self, name: str) -> Axes:
        """The axes of an asset's partitions in Dagster."""
        return self.lineage.assets[name].axes if self._keys[name] else ()


def to_dagster(key: Key) -> str | None:
    """A partition as Dagster writes it: its values in the order of the axes' names; None without axes."""
    return _SEPARATOR.join(key[axis] for axis in sorted(key)) if key else None


def from_dagster(axes: Axes, partition_key: str | None) -> Key:
    """The inverse of `to_dagster` for an asset with these axes."""
    if not axes:
        return {}
    values = dict(zip(sorted(axes), str(partition_key).split(_SEPARATOR), strict=True))
    return {axis: values[axis] for axis in axes}
