"""An asset as a Dagster asset: made by `lineage/making.py`, and recorded."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg

from fairness_pipeline.defs import metadata, partitions, sync
from fairness_pipeline.defs.lake_io_manager import RESOURCE
from fairness_pipeline.defs.partitions import Shown, to_dagster
from fairness_pipeline.defs.processes import PROCESS, process_tag, show_signs_of_life
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.lineage.assets import Asset
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.making import make
from fairness_pipeline.workspace.lake import Card, Key, Lake, partition_name

LEFT_ALONE = "left_alone"
"""The metadata of a partition that such a run left alone."""
_LOG_EVERY = 10.0
ONLY_IF_STALE = "fairness_pipeline/only_if_stale"
"""A run with this tag skips what is up to date by now: another run made it, or its upstream came out the same."""
_ONE_AT_A_TIME = (
    "\n\nDagster shows for one partition at a time whether it is out of date (Partitions, choose one); "
    "`fairness-pipeline run --dry-run` says it of all."
)
_Events = Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]


class Log(Listener):
    """Writes to Dagster's log, where the UI shows it."""

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Another run makes the partition; this one waits."""
        dg.get_dagster_logger().warning(f"{asset} {partition_name(key)}: waiting for {holder}, which makes it now")

    def progress(self, asset: str, key: Key) -> Progress:
        """A line every ten seconds."""
        last = time.monotonic()

        def tell(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if time.monotonic() - last > _LOG_EVERY:
                last = time.monotonic()
                dg.get_dagster_logger().info(f"{done:,} of {total:,} {note}" if total else f"{done:,} {note}")

        return tell


def definition(
    shown: Shown,
    asset: Asset,
    listener: Listener,
    condition: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> dg.AssetsDefinition:
    """The Dagster asset of an asset; `condition` says when automation makes it."""
    names = shown.names
    settings = dg.AssetDep(
        names.settings(asset.name), partition_mapping=dg.IdentityPartitionMapping() if asset.axes else None
    )
    above = [dg.AssetDep(names.asset(name), partition_mapping=own) for name, own in shown.mappings(asset).items()]

    @dg.asset(
        key=names.asset(asset.name),
        group_name=names.group(shown.lineage.group(asset.name)),
        owners=names.owners,
        description=asset.description + (_ONE_AT_A_TIME if asset.axes else ""),
        code_version=asset.code_version,
        partitions_def=shown.definition(asset),
        deps=[settings, *above],
        check_specs=[
            dg.AssetCheckSpec(check.__name__, asset=names.asset(asset.name), description=check.__doc__, blocking=True)
            for check in asset.checks
        ],
        kinds=metadata.KINDS[asset.kind],
        io_manager_key=names.other(RESOURCE),
        automation_condition=condition,
        metadata=metadata.definition_metadata(shown, asset),
    )
    def body(context: dg.AssetExecutionContext) -> _Events:
        yield from _materialise(context, shown, asset, listener)

    return body


def on_request(shown: Shown, asset: Asset) -> dg.AssetSpec:
    """An asset that has no partition yet, and gets one only when somebody asks for it."""
    names, profile = shown.names, shown.lineage.project.name
    return dg.AssetSpec(
        names.asset(asset.name),
        group_name=names.group(shown.lineage.group(asset.name)),
        owners=names.owners,
        description=f"{asset.description}\n\nMade only on request: `fairness-pipeline run --profile {profile} --select "
        f"{asset.name}` with the `--model` or `--dimension` that needs it, or `--all`.",
        kinds=metadata.KINDS[asset.kind],
        deps=[names.asset(name) for name in shown.above(asset)],
        metadata={"dagster/io_manager_key": names.other(RESOURCE)},
    )


def _materialise(context: dg.AssetExecutionContext, shown: Shown, asset: Asset, listener: Listener) -> _Events:
    lake = Lake(shown.lineage.project.workspace)
    show_signs_of_life(lake.root)
    if context.run.tags.get(PROCESS) != process_tag()[PROCESS]:  # another launcher has started it
        context.instance.add_run_tags(context.run.run_id, process_tag())
    key = partitions.from_dagster(asset.axes, context.partition_key if context.has_partition_key else None)
    found: dict[str, str | None] = {}
    settings = shown.names.settings(asset.name)

    def tell(version: str) -> None:
        """Dagster records the settings' version that it last heard of; it read one when the step began."""
        if sync.observe(context.instance, settings, to_dagster(key), version):
            context.get_step_execution_context().wipe_input_asset_version_info(settings)

    try:
        made = make(
            shown.lineage,
            asset.name,
            key,
            listener,
            only_if_stale=ONLY_IF_STALE in context.run.tags,
            beginning=tell,
            checked=found.__setitem__,
        )
    except (FairnessError, OSError) as error:
        yield from _evaluations(found)
        if isinstance(error, FairnessError):
            raise dg.Failure(str(error), allow_retries=False) from None
        raise dg.Failure(str(explained(error, Path(error.filename or lake.root))), allow_retries=False) from error
    # The sensor `lake` may have told another version meanwhile: before this was made, it was out of date.
    tell(made.card.fingerprint)
    version, path = dg.DataVersion(made.card.content), asset.path(lake, key)
    if made.result is None:
        yield from _evaluations({check.__name__: None for check in asset.checks})
        known = _last_metadata(context, made.card) or metadata.card_metadata(made.card, path, lake.root)
        yield dg.MaterializeResult(data_version=version, metadata={**known, LEFT_ALONE: "it is up to date"})
        return
    yield from _evaluations(found)
    told = metadata.run_metadata(made.result, made.glance, path, lake.root, made.seconds)
    yield dg.MaterializeResult(data_version=version, metadata=told)


def _evaluations(found: Mapping[str, str | None]) -> Iterator[dg.AssetCheckResult]:
    """What the checks found, by name; None where nothing is wrong."""
    for name, wrong in found.items():
        yield dg.AssetCheckResult(passed=wrong is None, check_name=name, metadata={"found": wrong or "nothing wrong"})


def _last_metadata(context: dg.AssetExecutionContext, card: Card) -> Mapping[str, dg.MetadataValue]:
    """What the run that made the partition told of it: its tables and pictures; nothing if Dagster does not know it."""
    own = [context.partition_key] if context.has_partition_key else None
    asked = dg.AssetRecordsFilter(asset_key=context.asset_key, asset_partitions=own)
    for record in context.instance.fetch_materializations(asked, limit=1).records:
        if record.asset_materialization and sync.reported_version(record) == card.content:
            return record.asset_materialization.metadata
    return {}
