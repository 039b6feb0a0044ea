"""What assets are made from besides each other: YAML files, and the settings that follow from them.

Every asset has an observable source `settings/<asset>` with the same partitions. Its data version is the fingerprint of
a partition while the partition is up to date, and something else as soon as `run` would make it again. Dagster compares
it with the version that the partition was made from, and so comes to the same answer as `run --dry-run`. The YAML files
only make the lineage readable; their content is part of the settings.
"""

import warnings
from collections.abc import Callable, Iterator

import dagster as dg

from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.foundation import paths
from fairness_pipeline.lineage.assets import Asset

_KINDS = {
    "corpus": "corpora",
    "dimension": "dimensions",
    "model": "models",
    "system": "systems",
    "classifier": "classifiers",
    "table": "tables",
}
"""The folder of `data` in which the values of an axis have their files."""


class Sources:
    """The sources of a lineage."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._known = {kind: paths.yaml_files(kind) for kind in ("profiles", *_KINDS.values())}

    def files(self) -> list[dg.AssetSpec]:
        """The profile's YAML files as roots of the lineage."""
        named = dict.fromkeys(file for asset in self._shown.assets for file in self._files_of(asset))
        names = self._shown.names
        return [
            dg.AssetSpec(
                names.file(kind, name),
                group_name=names.group("files"),
                owners=names.owners,
                kinds={"yaml"},
                description=f"The file {name}.yaml in the folder {kind}. Its content is part of the settings below it.",
                metadata={"path": dg.MetadataValue.path(str(self._known[kind][name]))},
            )
            for kind, name in named
        ]

    def settings(self, observe: Callable[[dg.DagsterInstance], object]) -> list[dg.AssetsDefinition]:
        """The observable sources of all assets; `observe` reports their versions to Dagster.

        Sources with the same partitions are one definition: Dagster's telemetry counts each definition's partitions,
        and fails where they are of several kinds.
        """
        names, group = self._shown.names, self._shown.lineage.group
        alike: dict[tuple[str, ...] | None, list[dg.AssetSpec]] = {}
        for asset in self._shown.assets:
            partitions = self._shown.definition(asset)
            spec = dg.AssetSpec(
                names.settings(asset.name),
                deps=[names.file(*file) for file in self._files_of(asset)],
                partitions_def=partitions,
                group_name=names.group(group(asset.name)),
                owners=names.owners,
                kinds={"yaml"},
                description=f"What `{asset.name}` is made from besides other assets: code version, seed, settings. "
                "Its version differs from the one that a partition was made from when `run` would make it again.",
            )
            alike.setdefault(tuple(partitions.get_partition_keys()) if partitions else None, []).append(spec)
        return [
            _observable(names.other(f"settings_of_{specs[0].key.path[-1]}"), specs, observe) for specs in alike.values()
        ]

    def _files_of(self, asset: Asset) -> Iterator[tuple[str, str]]:
        """Yields the files that this asset uses and its upstream does not."""
        keys, part = self._shown.keys, self._shown.lineage.part(asset.name)
        upstream = asset.sources
        if not upstream:
            yield "profiles", self._shown.lineage.project.name
        for axis in asset.axes:
            upstream_values = {key.get(axis) for name in upstream for key in keys(name).values()}
            new_values = dict.fromkeys(
                key[axis] for key in keys(asset.name).values() if key[axis] not in upstream_values
            )
            yield from (
                (kind, value) for value in new_values if value in self._known.get(kind := _KINDS.get(axis, ""), {})
            )
        if not asset.axes and not upstream:
            yield from (("corpora", corpus) for corpus in part.corpora_of_all)


def _observable(
    name: str, specs: list[dg.AssetSpec], observe: Callable[[dg.DagsterInstance], object]
) -> dg.AssetsDefinition:
    def observe_settings(context: dg.OpExecutionContext) -> Iterator[dg.ObserveResult]:
        observe(context.instance)
        yield from ()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # pinned in pyproject.toml
        definition: dg.AssetsDefinition = dg.multi_observable_source_asset(specs=specs, name=name, can_subset=True)(
            observe_settings
        )
    return definition
