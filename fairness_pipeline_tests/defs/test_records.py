"""Dagster's own classes read what these records write; and what the records leave out."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage

from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.records import MAKING, EventsInOneFile, forget_connections
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.conftest import write_instance

EVENT = dg.DagsterEventType


@dg.asset(check_specs=[dg.AssetCheckSpec("right", asset="numbers")])
def numbers() -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    print("printed by the asset", flush=True)
    os.write(1, b"and by a library\n")
    yield dg.AssetCheckResult(passed=True, check_name="right")
    yield dg.MaterializeResult(metadata={"picture": "x" * 5000}, data_version=dg.DataVersion("1"))


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    write_instance(tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as dagster_instance:
        yield dagster_instance


def made(instance: dg.DagsterInstance) -> str:
    result = dg.materialize([numbers], instance=instance)
    assert result.success
    return result.run_id


def test_dagsters_own_classes_read_it(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    run_id = made(instance)
    forget_connections()
    events = ConsolidatedSqliteEventLogStorage(str(tmp_path))
    materialization = events.get_latest_materialization_events([dg.AssetKey("numbers")])[dg.AssetKey("numbers")]
    assert len(materialization.asset_materialization.metadata["picture"].value) == 5000
    assert materialization.asset_materialization.tags["dagster/data_version"] == "1"
    kinds = [record.event_log_entry.dagster_event_type for record in events.get_records_for_run(run_id).records]
    assert {EVENT.STEP_START, EVENT.STEP_OUTPUT, EVENT.STEP_SUCCESS, EVENT.ASSET_CHECK_EVALUATION} < set(kinds)
    assert EVENT.RESOURCE_INIT_SUCCESS not in kinds
    runs = SqliteRunStorage.from_local(str(tmp_path / "history"))
    assert [(run.run_id, run.is_success) for run in runs.get_runs()] == [(run_id, True)]


def test_a_check_that_was_planned_and_never_made_is_planned(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    made(instance)

    @dg.asset(name="numbers", check_specs=[dg.AssetCheckSpec("right", asset="numbers")])
    def failing() -> Iterator[dg.MaterializeResult[None]]:
        raise RuntimeError("before the check")
        yield dg.MaterializeResult()

    failed = dg.materialize([failing], instance=instance, raise_on_error=False)
    check = dg.AssetCheckKey(dg.AssetKey("numbers"), "right")
    events = ConsolidatedSqliteEventLogStorage(str(tmp_path))
    (info,) = events.get_asset_check_partition_info([check])
    assert (info.latest_execution_status.value, info.latest_planned_run_id) == ("PLANNED", failed.run_id)
    assert [execution.status.value for execution in events.get_asset_check_execution_history(check, limit=5)] == [
        "PLANNED", "SUCCEEDED"
    ]  # fmt: skip


def test_a_message_is_stored_once_and_without_spaces(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    run_id = made(instance)
    (entry,) = instance.all_logs(run_id, of_type=EVENT.STEP_SUCCESS)
    assert entry.message.startswith('Finished execution of step "numbers"') and entry.user_message == ""
    with closing(sqlite3.connect(tmp_path / "event_log.db")) as connection:
        rows = connection.execute("SELECT event, dagster_event_type FROM event_logs").fetchall()
    assert rows and all(json.dumps(json.loads(event), separators=(",", ":")) == event for event, _ in rows)
    assert EVENT.ASSET_CHECK_EVALUATION_PLANNED.value not in {kind for _, kind in rows}


def test_pages_hold_an_event_of_several_kilobytes(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    made(instance)
    with closing(sqlite3.connect(tmp_path / "event_log.db")) as connection:
        settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "journal_mode")]
    assert settings == [8192, "wal"]


def test_a_file_whose_creation_is_interrupted_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(storage: ConsolidatedSqliteEventLogStorage, index: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ConsolidatedSqliteEventLogStorage, "enable_secondary_index", broken_off)
        EventsInOneFile(str(tmp_path))
    assert not list(tmp_path.iterdir())
    assert EventsInOneFile(str(tmp_path)).get_maximum_record_id() is None


OPENING = """
import sys
from fairness_pipeline.defs.records import EventsInOneFile
print("loaded", flush=True)
EventsInOneFile(sys.argv[1])
"""


@pytest.mark.verify
@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_a_kill_while_the_file_is_made_leaves_one_that_works(tmp_path: Path, after: float) -> None:
    with subprocess.Popen([sys.executable, "-c", OPENING, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"loaded\n"
        time.sleep(after)
        process.kill()
    events = EventsInOneFile(str(tmp_path))
    assert events.get_maximum_record_id() is None and events.supports_asset_checks


def test_leftovers_of_a_killed_first_run_are_removed(tiny: Project) -> None:
    leftover = tiny.workspace / "dagster" / f"{MAKING}1"
    leftover.mkdir()
    (leftover / "event_log.db").touch()
    with open_instance(tiny):
        assert not leftover.exists()


def test_the_file_of_the_first_process_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_by_dagster = ConsolidatedSqliteEventLogStorage._init_db

    def made_meanwhile(storage: ConsolidatedSqliteEventLogStorage) -> None:
        made_by_dagster(storage)
        (tmp_path / "event_log.db").write_text("of another process")

    monkeypatch.setattr(ConsolidatedSqliteEventLogStorage, "_init_db", made_meanwhile)
    EventsInOneFile(str(tmp_path))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("event_log.db", "of another process")]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*paths: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    events = EventsInOneFile(str(tmp_path))
    assert events.get_maximum_record_id() is None and events.has_table("event_logs")


def test_what_a_table_says_is_kept_once(instance: dg.DagsterInstance) -> None:
    run_id = made(instance)
    outputs = [entry.dagster_event for entry in instance.all_logs(run_id, of_type=EVENT.STEP_OUTPUT)]
    assert [output.step_output_data.output_name for output in outputs] == [
        "result"
    ]  # the check's result is in its evaluation
    assert [dict(output.step_output_data.metadata) for output in outputs] == [{}]
    assert not [entry for entry in instance.all_logs(run_id) if entry.dagster_event_type == EVENT.ENGINE_EVENT]
    result = dg.materialize([numbers], instance=instance)
    assert result.asset_materializations_for_node("numbers")[0].metadata["picture"].value == "x" * 5000


def test_a_file_that_was_deleted_is_made_and_read_anew(tmp_path: Path) -> None:
    for again in range(2):
        write_instance(tmp_path)
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            made(instance)
            assert instance.get_runs_count() == 1, again
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_fork_has_connections_of_its_own(instance: dg.DagsterInstance) -> None:
    made(instance)
    child = os.fork()
    if child == 0:
        os._exit(0 if instance.get_runs_count() == 1 and made(instance) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert instance.get_runs_count() == 2


SCRIPT = """
import sys
import dagster as dg
from fairness_pipeline.defs.records import PrintsInFiles
from fairness_pipeline_tests.defs.test_records import made

PrintsInFiles.in_terminal = sys.argv[2] == "True"
with dg.DagsterInstance.from_config(sys.argv[1]) as instance:
    run_id = made(instance)
    logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.LOGS_CAPTURED)[0].dagster_event.logs_captured_data
    kept = instance.compute_log_manager.get_log_data([run_id, "compute_logs", logged.file_key])
print("kept:", kept.stdout)
"""


@pytest.mark.parametrize("in_terminal", [False, True])
def test_what_is_printed_is_in_a_file_or_in_the_terminal(tmp_path: Path, in_terminal: bool) -> None:
    write_instance(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), str(in_terminal)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    printed = ["printed by the asset", "and by a library"]
    kept = "kept: b''" if in_terminal else f"kept: {chr(10).join([*printed, '']).encode()!r}"
    assert sorted(lines) == sorted([*printed, kept] if in_terminal else [kept])


def check_last_stays_last(instance: dg.DagsterInstance) -> None:
    """Two processes may store events in one order and note them in the other; what is made from the later one must not
    look stale."""
    made(instance)
    made(instance)
    last, first = instance.fetch_materializations(dg.AssetKey("numbers"), limit=2).records
    instance.event_log_storage.store_asset_event(first.event_log_entry, first.storage_id)
    (record,) = instance.get_asset_records([dg.AssetKey("numbers")])
    assert record.asset_entry.last_materialization_storage_id == last.storage_id > first.storage_id


def test_the_last_event_of_an_asset_stays_the_last(instance: dg.DagsterInstance) -> None:
    check_last_stays_last(instance)
