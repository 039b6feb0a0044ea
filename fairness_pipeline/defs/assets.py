"""Wraps assets as Dagster assets, which `lineage/making.py` makes and Dagster records."""

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
"""The metadata of a partition that a run with `ONLY_IF_STALE` left alone."""
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
        """Logs that another run makes the partition and this one waits."""
        dg.get_dagster_logger().warning(f"{asset} {partition_name(key)}: waiting for {holder}, which is making it")

    def progress(self, asset: str, key: Key) -> Progress:
        """Logs a line every ten seconds."""
        last = time.monotonic()

        def log(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if time.monotonic() - last > _LOG_EVERY:
                last = time.monotonic()
                dg.get_dagster_logger().info(f"{done:,} of {total:,} {note}" if total else f"{done:,} {note}")

        return log


def definition(
    shown: Shown,
    asset: Asset,
    listener: Listener,
    condition: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> dg.AssetsDefinition:
    """Returns the Dagster asset of an asset; `condition` says when automation makes it."""
    names = shown.names
    settings = dg.AssetDep(
        names.settings(asset.name), partition_mapping=dg.IdentityPartitionMapping() if asset.axes else None
    )
    upstream = [
        dg.AssetDep(names.asset(name), partition_mapping=mapping) for name, mapping in shown.mappings(asset).items()
    ]

    @dg.asset(
        key=names.asset(asset.name),
        group_name=names.group(shown.lineage.group(asset.name)),
        owners=names.owners,
        description=asset.description + (_ONE_AT_A_TIME if asset.axes else ""),
        code_version=asset.code_version,
        partitions_def=shown.definition(asset),
        deps=[settings, *upstream],
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
    """Returns the specification of an asset whose partitions are made only on request; none was made yet."""
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
    check_results: dict[str, str | None] = {}
    settings = shown.names.settings(asset.name)

    def report_version(version: str) -> None:
        """Reports the settings' version. Dagster records the latest one, but has cached the one at the step's start."""
        if sync.observe(context.instance, settings, to_dagster(key), version):
            context.get_step_execution_context().wipe_input_asset_version_info(settings)

    try:
        made = make(
            shown.lineage,
            asset.name,
            key,
            listener,
            only_if_stale=ONLY_IF_STALE in context.run.tags,
            beginning=report_version,
            checked=check_results.__setitem__,
        )
    except (FairnessError, OSError) as error:
        yield from _evaluations(check_results)
        if isinstance(error, FairnessError):
            raise dg.Failure(str(error), allow_retries=False) from None
        raise dg.Failure(str(explained(error, Path(error.filename or lake.root))), allow_retries=False) from error
    # The sensor `lake` may have reported another version meanwhile, when this partition was still out of date.
    report_version(made.card.fingerprint)
    version, path = dg.DataVersion(made.card.content), asset.path(lake, key)
    if made.result is None:
        yield from _evaluations({check.__name__: None for check in asset.checks})
        stored = _last_metadata(context, made.card) or metadata.card_metadata(made.card, path, lake.root)
        yield dg.MaterializeResult(data_version=version, metadata={**stored, LEFT_ALONE: "it is up to date"})
        return
    yield from _evaluations(check_results)
    entries = metadata.run_metadata(made.result, made.glance, path, lake.root, made.seconds)
    yield dg.MaterializeResult(data_version=version, metadata=entries)


def _evaluations(check_results: Mapping[str, str | None]) -> Iterator[dg.AssetCheckResult]:
    """Yields the results of the checks, by name; None means that nothing is wrong."""
    for name, problem in check_results.items():
        yield dg.AssetCheckResult(
            passed=problem is None, check_name=name, metadata={"found": problem or "nothing wrong"}
        )


def _last_metadata(context: dg.AssetExecutionContext, card: Card) -> Mapping[str, dg.MetadataValue]:
    """Returns the metadata of the run that made the partition, with tables and pictures; {} if Dagster has none."""
    partition_keys = [context.partition_key] if context.has_partition_key else None
    records_filter = dg.AssetRecordsFilter(asset_key=context.asset_key, asset_partitions=partition_keys)
    for record in context.instance.fetch_materializations(records_filter, limit=1).records:
        if record.asset_materialization and sync.reported_version(record) == card.content:
            return record.asset_materialization.metadata
    return {}
