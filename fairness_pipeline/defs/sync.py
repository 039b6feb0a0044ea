"""Reports to a Dagster instance what a lake holds.

The lake knows what was made and what is out of date. Dagster knows what its own runs reported, so it misses a
copied lake and a changed settings file, and a new instance knows nothing. Differences are reported as events without a
run; the second time there is nothing to report.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from fairness_pipeline.defs import metadata
from fairness_pipeline.defs.at_rest import COMPARED
from fairness_pipeline.defs.checks import evaluations
from fairness_pipeline.defs.dagster_internals import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
)
from fairness_pipeline.defs.names import Names
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.lineage.assets import Asset, partition_id
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.workspace.lake import Card, Key, Lake

_CHECKED = "fairness_pipeline_checks"
"""The cursor that keeps the state of the lake at the last evaluation of the checks."""
_IN_PROGRESS = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_MOMENT = 0.05  # seconds
_MADE = dg.DagsterEventType.ASSET_MATERIALIZATION
_OBSERVED = dg.DagsterEventType.ASSET_OBSERVATION


@dataclass(frozen=True)
class Synchronised:
    """How many partitions a synchronisation reported as made, and for how many it reported a new version."""

    made: int
    versions: int


def sync(lineage: Lineage, instance: dg.DagsterInstance, names: Names | None = None) -> Synchronised:
    """Reports to a Dagster instance what it does not know of the lake.

    Args:
        lineage: The lineage of a profile.
        instance: The instance.
        names: The names of the profile's definitions in the instance; by default, without a prefix.
    """
    names = names or Names()
    versions = Versions(lineage)
    cursors, state = instance.daemon_cursor_storage, versions.fingerprint
    last, checked = names.cursor(COMPARED), names.cursor(_CHECKED)
    compared = {last: f"{instance.event_log_storage.get_maximum_record_id()} {state}"}
    known = cursors.get_cursor_values({last, checked})
    if compared.items() <= known.items():
        return Synchronised(0, 0)
    shown = Shown(lineage, versions.shown, names)
    unsuccessful = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED])
    any_failed = instance.get_runs_count(unsuccessful) > 0
    made = changed = 0
    for asset in shown.assets:  # upstream first: a partition is reported before those made from it
        reporter = _Reporter(shown, asset, instance, versions, any_failed=any_failed)
        made += reporter.report_made()
        changed += reporter.report_versions()
    if known.get(checked) != state:
        for evaluation in evaluations(lineage, versions, names):
            instance.report_runless_asset_event(evaluation)
        cursors.set_cursor_values({checked: state})
    elif not made + changed:
        cursors.set_cursor_values(compared)
    return Synchronised(made, changed)


def observe(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str | None, version: str) -> bool:
    """Reports the version of an observable source; False if Dagster has it already."""
    last = instance.get_latest_data_version_record(key, is_source=True, partition_key=partition)
    if reported_version(last) == version:
        return False
    _report_version(instance, key, partition, version)
    return True


def _report_version(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str | None, version: str) -> None:
    instance.report_runless_asset_event(dg.AssetObservation(key, partition=partition, tags={DATA_VERSION_TAG: version}))


def reported_version(record: dg.EventLogRecord | None) -> str | None:
    """The data version that an event reported; None if there is no event, or none in it."""
    event = (record.asset_observation or record.asset_materialization) if record else None
    return (event.tags or {}).get(DATA_VERSION_TAG) if event else None


class _Reporter:
    """Reports the partitions and versions of one asset."""

    def __init__(
        self, shown: Shown, asset: Asset, instance: dg.DagsterInstance, versions: Versions, *, any_failed: bool
    ) -> None:
        self._asset = asset
        self._instance = instance
        self._versions = versions
        self._lake = Lake(shown.lineage.project.workspace)
        self._keys = shown.keys(asset.name)
        self._any_failed = any_failed
        self._jobs = {  # runs of any job may name no assets; runs of these make none themselves
            shown.names.other(name)
            for name in ("bring_up_to_date", *(f"audit_{study.name}" for study in shown.lineage.project.studies))
        }
        self._checked_at, self._in_progress = float("-inf"), set[str | None]()
        self._above = shown.above(asset)
        self._key, self._settings = shown.names.asset(asset.name), shown.names.settings(asset.name)
        self._names = {name: shown.names.asset(name) for name in self._above}
        self._observed = self._latest(self._settings, _OBSERVED)

    def report_made(self) -> int:
        """Reports the made partitions that Dagster does not know as they are now; returns how many."""
        unknown = self._unknown(self._keys)
        if unknown:
            # A run in progress will report what it made. One that has ended meanwhile has reported it: compare again.
            being_made = self._being_made()
            unknown = self._unknown(partition for partition, _, _ in unknown if partition not in being_made)
        for partition, _, card in unknown:
            self._observe(partition, card.fingerprint)
        pointers = self._pointers() if unknown else {}
        for partition, key, card in unknown:
            self._instance.report_runless_asset_event(
                dg.AssetMaterialization(
                    self._key,
                    partition=partition,
                    metadata=metadata.card_metadata(card, self._asset.path(self._lake, key), self._lake.root),
                    tags=self._tags(card, pointers),
                )
            )
        return len(unknown)

    def _unknown(self, partitions: Iterable[str | None]) -> list[tuple[str | None, Key, Card]]:
        """The partitions, out of these, that Dagster does not know as the lake holds them now."""
        known, failed = self._latest(self._key, _MADE), self._failed(self._key)
        return [
            (partition, key, card)
            for partition in partitions
            if (key := self._keys[partition]) is not None
            and (card := self._versions.cards.get(asset_partition := partition_id(self._asset.name, key)))
            # Report again the partitions that a failed run left valid; those that it was to remake stay failed.
            and (
                (partition in failed and asset_partition not in self._versions.stale)
                or not self._is_known(partition, card, known.get(partition))
            )
            and self._lake.card(self._asset.name, key) == card  # a run may have made it anew meanwhile
        ]

    def _being_made(self) -> set[str | None]:
        """The partitions that runs make now; kept for a moment, because many may be reported in sequence."""
        if time.monotonic() > self._checked_at + _MOMENT:
            runs = self._instance.get_runs(dg.RunsFilter(statuses=_IN_PROGRESS))
            self._in_progress = {
                run.tags.get("dagster/partition")
                for run in runs
                if self._key in (run.asset_selection or ())
                or (not run.asset_selection and run.job_name not in self._jobs)
            }
            self._checked_at = time.monotonic()
        return self._in_progress

    def report_versions(self) -> int:
        """Reports the versions that the partitions would have now; returns how many changed."""
        changed = 0
        for partition, key in self._keys.items():
            asset_partition = partition_id(self._asset.name, key)
            if asset_partition in self._versions.cards or partition in self._observed:
                version = self._versions.of(asset_partition)
                # A run in progress has reported its version, and Dagster records the latest one with its result.
                if self._observed.get(partition) != version and partition not in self._being_made():
                    changed += self._observe(partition, version)
        return changed

    def _is_known(self, partition: str | None, card: Card, content: str | None) -> bool:
        """Whether Dagster's latest materialization is this one: the same content, made from the same settings."""
        if content != card.content:
            return False
        if self._observed.get(partition) == card.fingerprint:
            return True
        # The settings may have changed since; the version that it was made from was reported before it.
        instance = self._instance
        latest = instance.get_latest_data_version_record(self._key, is_source=False, partition_key=partition)
        observed_before = instance.get_latest_data_version_record(
            self._settings,
            is_source=True,
            partition_key=partition,
            before_cursor=latest.storage_id if latest else None,
        )
        return reported_version(observed_before) == card.fingerprint

    def _observe(self, partition: str | None, version: str) -> bool:
        if self._observed.get(partition) == version:
            return False
        _report_version(self._instance, self._settings, partition, version)
        self._observed[partition] = version
        return True

    def _latest(self, asset: dg.AssetKey, event: dg.DagsterEventType) -> dict[str | None, str | None]:
        """The latest version that was reported of each partition."""
        if not self._asset.axes:
            last = self._instance.get_latest_data_version_record(asset, is_source=event == _OBSERVED)
            return {None: reported_version(last)} if last else {}
        storage = self._instance.event_log_storage
        tags_of = storage.get_latest_tags_by_partition(asset, event, [DATA_VERSION_TAG])
        return {partition: tags[DATA_VERSION_TAG] for partition, tags in tags_of.items()}

    def _failed(self, asset: dg.AssetKey) -> set[str | None]:
        """The partitions whose last run has ended without making them."""
        if not self._asset.axes or not self._any_failed:
            return set()
        storage = self._instance.event_log_storage
        tried = storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
        ended = {
            run_id: run is None or run.is_finished
            for run_id in {run_id for run_id, _ in tried.values()}
            for run in [self._instance.get_run_by_id(run_id)]
        }
        return {partition for partition, (run_id, _) in tried.items() if ended[run_id]}

    def _pointers(self) -> dict[str, int]:
        """The latest event of every asset that this one is made from, and of its settings."""
        keys = [*self._names.values()]
        pointers = {
            record.asset_entry.asset_key.to_user_string(): record.asset_entry.last_materialization_storage_id
            for record in self._instance.get_asset_records(keys)
        }
        last = self._instance.fetch_observations(self._settings, limit=1).records
        pointers[self._settings.to_user_string()] = last[0].storage_id if last else None
        return {name: pointer for name, pointer in pointers.items() if pointer is not None}

    def _tags(self, card: Card, pointers: Mapping[str, int]) -> dict[str, str]:
        settings = self._settings.to_user_string()
        used: dict[str, Any] = {name.split("/")[0]: content for name, content in card.inputs["upstream"].items()}
        # An asset that is made only on request has this version in Dagster's own events, too.
        unmade = DEFAULT_DATA_VERSION.value
        versions = {
            key.to_user_string(): str(used.get(name, unmade)).split(" of ")[0] for name, key in self._names.items()
        } | {settings: card.fingerprint}
        return {
            CODE_VERSION_TAG: card.inputs["code_version"],
            DATA_VERSION_TAG: card.content,
            DATA_VERSION_IS_USER_PROVIDED_TAG: "true",
            **{f"{INPUT_DATA_VERSION_TAG_PREFIX}/{name}": version for name, version in versions.items()},
            **{f"{INPUT_EVENT_POINTER_TAG_PREFIX}/{name}": str(pointers.get(name, "NULL")) for name in versions},
        }
