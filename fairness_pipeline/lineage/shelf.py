"""What a report is made from: the whole profile, and the declared assets of the lake."""

from typing import Any

from fairness_pipeline.foundation.guard import UndeclaredRead, only
from fairness_pipeline.lineage.assets import Asset
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import State
from fairness_pipeline.workspace.lake import Key, Lake


class Shelf:
    """The argument of a report's function.

    Attributes:
        lineage: The lineage of the profile.
        whole: The whole lake, for what happens after the report is made: publishing it.
    """

    def __init__(self, asset: Asset, lineage: Lineage, lake: Lake) -> None:
        self.lineage = lineage
        self.whole = lake
        self.lake = NarrowLake(lake, asset)
        self._name = asset.name

    @property
    def part(self) -> Any:
        """The profile's part of the report's study."""
        return self.lineage.part(self._name)

    def stale(self, table: str) -> list[Key]:
        """The partitions of an upstream table that are not up to date with the profile."""
        with only(None):  # the comparison reads files that the report does not declare
            return State(self.lineage, self.whole).stale_keys(table)


class NarrowLake(Lake):
    """A lake from which an asset can read what it declared, and nothing else."""

    def __init__(self, lake: Lake, asset: Asset) -> None:
        super().__init__(lake.root)
        self._reader, self._declared = asset.name, frozenset(asset.sources)

    def read(self, table: str, key: Key) -> Any:
        """One partition of a declared table."""
        self._check(table)
        return super().read(table, key)

    def card(self, asset: str, key: Key) -> Any:
        """The card of a partition of a declared asset."""
        self._check(asset)
        return super().card(asset, key)

    def _check(self, asset: str) -> None:
        if asset not in self._declared:
            raise UndeclaredRead(f"{self._reader} reads {asset}, and does not declare it under `reads`")
