"""A recipe as a Dagster asset: lock, make, check, write whole or not at all, record."""

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pyarrow as pa

from fairness_pipeline.defs import metadata, partitions, sync
from fairness_pipeline.defs.partitions import Shown, to_dagster
from fairness_pipeline.defs.processes import PROCESS, process_tag, show_signs_of_life
from fairness_pipeline.defs.sources import settings_key
from fairness_pipeline.engines.rows import engine_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained, replacing
from fairness_pipeline.foundation.gpu_turns import turn_ends
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.threads import one_thread
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Recipe, Result
from fairness_pipeline.lineage.state import State
from fairness_pipeline.models.usage import note_in
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint, partition_name

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
    recipe: Recipe,
    listener: Listener,
    condition: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> dg.AssetsDefinition:
    """The Dagster asset of a recipe; `condition` says when automation makes it."""
    lineage = shown.lineage
    settings = dg.AssetDep(
        settings_key(recipe.name), partition_mapping=dg.IdentityPartitionMapping() if recipe.axes else None
    )
    above = [dg.AssetDep(name, partition_mapping=own) for name, own in shown.mappings(recipe).items()]

    @dg.asset(
        name=recipe.name,
        group_name=lineage.group(recipe.name),
        description=recipe.description + (_ONE_AT_A_TIME if recipe.axes else ""),
        code_version=recipe.code_version,
        partitions_def=shown.definition(recipe),
        deps=[settings, *above],
        check_specs=[
            dg.AssetCheckSpec(check.__name__, asset=recipe.name, description=check.__doc__, blocking=True)
            for check in recipe.checks
        ],
        kinds=metadata.KINDS[recipe.kind],
        automation_condition=condition,
        metadata=metadata.definition_metadata(recipe.schema),
    )
    def body(context: dg.AssetExecutionContext) -> _Events:
        yield from _materialise(context, shown, recipe, listener)

    return body


def _materialise(context: dg.AssetExecutionContext, shown: Shown, recipe: Recipe, listener: Listener) -> _Events:
    lake = Lake(shown.lineage.project.workspace)
    show_signs_of_life(lake.root)
    if context.run.tags.get(PROCESS) != process_tag()[PROCESS]:  # another launcher has started it
        context.instance.add_run_tags(context.run.run_id, process_tag())
    key = partitions.from_dagster(recipe.axes, context.partition_key if context.has_partition_key else None)
    try:
        with one_thread(), lake.lock(recipe.name, key, lambda holder: listener.waiting(recipe.name, key, holder)):
            yield from _make(context, shown, recipe, lake, key, listener)
    except FairnessError as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    except OSError as error:
        raise dg.Failure(str(explained(error, Path(error.filename or lake.root))), allow_retries=False) from error


def _make(
    context: dg.AssetExecutionContext, shown: Shown, recipe: Recipe, lake: Lake, key: Key, listener: Listener
) -> _Events:
    lineage = shown.lineage
    described = State(lineage, lake).inputs(recipe.name, key)
    stamp = fingerprint(described)
    # Before Dagster records what the partition was made from. It read the settings' version when the step began.
    if sync.observe(context.instance, recipe.name, to_dagster(key), stamp):
        context.get_step_execution_context().wipe_input_asset_version_info(settings_key(recipe.name))
    card = lake.card(recipe.name, key)
    made_before = card is not None and card.fingerprint == stamp
    if card and made_before and context.run.tags.get(ONLY_IF_STALE):
        yield from (dg.AssetCheckResult(passed=True, check_name=check.__name__) for check in recipe.checks)
        known = _last_metadata(context, card) or metadata.card_metadata(card, recipe.path(lake, key))
        yield dg.MaterializeResult(
            data_version=dg.DataVersion(card.content), metadata={**known, LEFT_ALONE: "it is up to date"}
        )
        return
    folder = work = lake.folder(recipe.name, key, stamp)
    if made_before or lake.was_finished(recipe.name, key, stamp):
        # Asked for again, or damaged: made beside what is there, which others may be reading until this is whole.
        work = folder.with_name(f"{folder.name}-again")
    progress = listener.progress(recipe.name, key)
    started = time.monotonic()
    engine = engine_of(lineage.project.profile.engine, lake.root)
    note_in(lake.root)
    with turn_ends(progress):
        result = recipe.make(Partition(recipe.name, key, lineage, lake, progress, engine, work))
    still_ours = lake.still_ours(recipe.name, key)
    if recipe.kind == "checkpoint" and work != folder:
        still_ours()
        _clear(folder)
        work.rename(folder)
    result.before_it_counts()
    yield from _save(lake, recipe, key, result, Card(stamp, described, result.figures))
    if recipe.kind != "checkpoint":
        still_ours()
        _clear(folder.parent)  # with what runs that were stopped have left under other settings
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(lake.content(recipe.name, key) or ""),
        metadata=metadata.run_metadata(result, recipe.path(lake, key), time.monotonic() - started),
    )


def _last_metadata(context: dg.AssetExecutionContext, card: Card) -> Mapping[str, dg.MetadataValue]:
    """What the run that made the partition told of it: its tables and pictures; nothing if Dagster does not know it."""
    own = [context.partition_key] if context.has_partition_key else None
    asked = dg.AssetRecordsFilter(asset_key=context.asset_key, asset_partitions=own)
    for record in context.instance.fetch_materializations(asked, limit=1).records:
        if record.asset_materialization and sync.reported_version(record) == card.content:
            return record.asset_materialization.metadata
    return {}


def _save(lake: Lake, recipe: Recipe, key: Key, result: Result, card: Card) -> Iterator[dg.AssetCheckResult]:
    if isinstance(result.content, pa.Table):
        assert recipe.schema is not None
        with lake.writing(recipe.name, key, result.content, recipe.schema, card) as table:
            for check in recipe.checks:
                wrong = check(table)
                yield dg.AssetCheckResult(
                    passed=wrong is None, check_name=check.__name__, metadata={"found": wrong or "nothing wrong"}
                )
                if wrong:
                    raise FairnessError(f"{recipe.name}: {wrong}; the table was not written")
        return
    if isinstance(result.content, str):
        with replacing(lake.document_path(recipe.name), lake.still_ours(recipe.name, key)) as temporary:
            temporary.write_text(result.content, encoding="utf-8")
    lake.write_card(recipe.name, key, card)


def _clear(folder: Path) -> None:
    """Removes a folder with all in it."""
    if folder.exists():
        shutil.rmtree(folder)
