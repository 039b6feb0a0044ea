"""All assets of a profile, their partitions, and the upstream partitions that each partition is made from."""

from contextlib import suppress
from itertools import product
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import files_of
from fairness_pipeline.lineage.assets import Asset, PartitionId, declared_in, partition_id
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyPart, AnyStudy, Subject
from fairness_pipeline.workspace.lake import Key


class Lineage:
    """All assets of the studies that a profile takes part in, upstream before downstream."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.assets: dict[str, Asset] = {}
        self.study_of: dict[str, str] = {}
        self._keys: dict[str, list[Key]] = {}
        self._sources: dict[PartitionId, list[tuple[str, Key]]] = {}
        for study in project.studies:
            module = study.load("lineage")
            for asset in declared_in(module) if module else ():
                if asset.name in self.study_of:
                    raise ValueError(f"{study.name} and {self.study_of[asset.name]} both make {asset.name}")
                self.assets[asset.name] = asset
                self.study_of[asset.name] = study.name

    def study(self, name: str) -> AnyStudy:
        """The study that the asset `name` belongs to."""
        return next(study for study in self.project.studies if study.name == self.study_of[name])

    def group(self, name: str) -> str:
        """The asset's group in the UI: its study, or the study's stage with its number."""
        study, stage = self.study_of[name], self.assets[name].stage
        stages = list(
            dict.fromkeys(asset.stage for asset in self.assets.values() if self.study_of[asset.name] == study)
        )
        return f"{study}_{stages.index(stage) + 1}_{stage}" if stage else study

    def part(self, name: str) -> AnyPart:
        """The profile's part of the study that the asset `name` belongs to."""
        return self.project.parts[self.study_of[name]]

    def subject(self, name: str, key: Key) -> Subject:
        """The subject of a partition of the asset `name`."""
        return self.part(name).subjects[key[self.study(name).subject]]

    def keys(self, name: str) -> list[Key]:
        """Every partition that the asset `name` can have; not every combination of axes needs to exist."""
        if name not in self._keys:
            asset, part = self.assets[name], self.part(name)
            combinations = product(*(part.axes[axis] for axis in asset.axes))
            keys = (dict(zip(asset.axes, values, strict=True)) for values in combinations)
            self._keys[name] = [key for key in keys if asset.covers(part, key)]
        return self._keys[name]

    def upstream_keys(self, key: Key, source: str) -> list[Key]:
        """The partitions of the upstream asset `source` that the partition `key` is made from.

        Values that follow from the key are used (a model's corpus). On every other axis, all values are used.
        """
        asset, part = self.assets[source], self.part(source)
        known = part.implied(key)
        choices = ([known[axis]] if axis in known else part.axes[axis] for axis in asset.axes)
        keys = (dict(zip(asset.axes, values, strict=True)) for values in product(*choices))
        return [upstream for upstream in keys if asset.covers(part, upstream)]

    def files(self) -> set[Path]:
        """The existing files that partitions are made from besides each other."""
        paths: set[Path] = set()
        for name, asset in self.assets.items():
            for key in self.keys(name):
                with suppress(FairnessError):  # a missing file changes the set as soon as it exists
                    paths |= {file.path for file in files_of(asset.inputs(self.part(name), key))}
        return {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()}

    def sources(self, name: str, key: Key) -> list[tuple[str, Key]]:
        """The upstream partitions that a partition reads: its own subject's, its base's, its seeds' and so on."""
        if (partition := partition_id(name, key)) not in self._sources:
            part = self.part(name)
            upstreams = [
                (source.name, upstream)
                for read in self.assets[name].reads.values()
                for subject in read.subjects(part, key)
                for source in read.assets
                for upstream in self.upstream_keys(subject, source.name)
            ]
            self._sources[partition] = list({partition_id(*source): source for source in upstreams}.values())
        return self._sources[partition]

    def other_subjects(self, name: str, key: Key) -> list[Key]:
        """The partitions of other subjects that a partition reads: of its base, its seeds, its baselines."""
        others = (read for read in self.assets[name].reads.values() if read.of != "own")
        return [subject for read in others for subject in read.subjects(self.part(name), key)]
