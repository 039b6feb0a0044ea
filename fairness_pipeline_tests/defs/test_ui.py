"""The UI as a user meets it, in its real processes: materialise, backfill, cancel, kill, recover, automation."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.defs.processes import PROCESS
from fairness_pipeline.defs.sync import sync
from fairness_pipeline.foundation.processes import process_number
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.project.project import PROFILE, Project
from fairness_pipeline_tests.browser import Browser, wait
from fairness_pipeline_tests.commands import change, content, planned, run
from fairness_pipeline_tests.defs.test_sync import FRESH, agreed

ROOT = Path(__file__).parents[2]
_SELECTOR = {"repositoryLocationName": "fairness_pipeline", "repositoryName": "__repository__"}


class Ui:
    """Queries a server as Dagster's own pages do."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/graphql"
        self._port = port

    def page(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}/{path}"

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self._url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            result = json.loads(answer.read())
        assert "errors" not in result, result
        return result["data"]

    def backfill(self, asset: str, *partitions: str) -> str:
        launched = self.ask(
            """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
                 __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }""",
            p={"assetSelection": [{"path": [asset]}], "partitionNames": list(partitions), "fromFailure": False},
        )["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return str(launched["backfillId"])

    def backfill_status(self, backfill: str) -> str:
        query = (
            "query($b: String!) { partitionBackfillOrError(backfillId: $b) { ... on PartitionBackfill { status } } }"
        )
        return str(self.ask(query, b=backfill)["partitionBackfillOrError"]["status"])

    def runs(self) -> list[dict[str, Any]]:
        query = "{ runsOrError(limit: 200) { ... on Runs { results { runId status tags { key value } } } } }"
        results = self.ask(query)["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in results]

    def run_of(self, backfill: str) -> dict[str, Any] | None:
        return next((run for run in self.runs() if run["tags"].get("dagster/backfill") == backfill), None)


@contextmanager
def opened(log: Path, profile: str = "tiny") -> Iterator[Ui]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "fairness_pipeline.cli", "ui", "--port", str(port), "--profile", profile]
    with log.open("w") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output)
    ui = Ui(port)

    def loaded() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            entries = ui.ask("{ workspaceOrError { ... on Workspace { locationEntries { loadStatus } } } }")
        except OSError:
            return False
        return [entry["loadStatus"] for entry in entries["workspaceOrError"]["locationEntries"]] == ["LOADED"]

    try:
        wait(loaded)
        yield ui
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, log.read_text()


@pytest.mark.verify
def test_the_pipeline_can_be_used_from_the_ui_alone(tiny: Project, data: Path, tmp_path: Path) -> None:
    """One long test, as starting the UI takes long."""

    def slow(profile: dict[str, Any]) -> None:
        profile["models"]["seq2seq"]["training"]["epochs"] = 2000
        profile["models"]["seq2seq"]["training"]["patience"] = 2000

    (tiny.workspace / "dagster" / "dagster.yaml").unlink(missing_ok=True)  # the one that users get
    run()
    with opened(tmp_path / "ui.txt") as ui:
        partitions = [f"{dimension}|seq2seq" for dimension in ("gender", "dialect")]
        backfills = [ui.backfill(asset, *partitions) for asset in ("diversity", "politeness", "sentiment", "responses")]
        for backfill in backfills:
            wait(lambda backfill_id=backfill: ui.backfill_status(backfill_id) == "COMPLETED_SUCCESS")
        assert not planned()

        # Cancelled in the UI: the run ends, and its process with it.
        before = tiny.path.read_text(encoding="utf-8")
        change(tiny.path, slow)
        training = ui.backfill("dialogue_models", "seq2seq")
        started = wait(
            lambda: (
                (record := ui.run_of(training))
                and record["status"] == "STARTED"
                and PROCESS in record["tags"]
                and record
            )
        )
        number = process_number(started["tags"][PROCESS])
        ui.ask(
            "mutation($r: String!) { terminateRun(runId: $r) { __typename } }",
            r=started["runId"],
        )
        wait(lambda: ui.run_of(training)["status"] == "CANCELED")
        wait(lambda: not Path(f"/proc/{number}").exists())

        # Killed: its run is marked as failed and tried once more, and the next one can start.
        killed = ui.backfill("dialogue_models", "seq2seq")
        started = wait(
            lambda: (
                (record := ui.run_of(killed)) and record["status"] == "STARTED" and PROCESS in record["tags"] and record
            )
        )
        os.kill(process_number(started["tags"][PROCESS]), signal.SIGKILL)
        wait(lambda: next(record for record in ui.runs() if record["runId"] == started["runId"])["status"] == "FAILURE")
        tiny.path.write_text(before, encoding="utf-8")
        for record in ui.runs():
            if record["status"] in ("QUEUED", "STARTING", "STARTED"):  # the second try, which would take as long
                ui.ask("mutation($r: String!) { terminateRun(runId: $r) { __typename } }", r=record["runId"])
        again = ui.backfill("dialogue_models", "seq2seq")
        wait(lambda: ui.backfill_status(again) == "COMPLETED_SUCCESS")

        # Automation makes what is missing, and what follows from it, in runs of its own.
        shutil.rmtree(tiny.workspace / "tables" / "context_pairs")
        assert planned()
        ui.ask(
            "mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }",
            s={**_SELECTOR, "sensorName": "automation"},
        )
        wait(lambda: not planned())
    with open_instance(tiny) as instance:
        assert all(record.is_finished for record in instance.get_runs())


@pytest.mark.verify
@pytest.mark.parametrize("profile", ["tiny", pytest.param("sample", marks=pytest.mark.timeout(7200))])
def test_automation_makes_all_and_its_record_stays(
    profile: str, tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an empty workspace, with a sensor that ticks during the steps and must not overwrite what a run recorded.

    The result is the command's, byte for byte (compared for the small profile: the sample takes most of an hour).
    """
    monkeypatch.setenv(PROFILE, profile)
    project = Project(profile)
    shutil.rmtree(project.workspace / "dagster", ignore_errors=True)
    with opened(tmp_path / "ui.txt", profile) as ui, ticking(profile):
        ui.ask(
            "mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }",
            s={**_SELECTOR, "sensorName": "automation"},
        )
        wait(lambda: not planned(), patience=5400)
        wait(lambda: all(launched["status"] in ("SUCCESS", "FAILURE", "CANCELED") for launched in ui.runs()))
    printed = (tmp_path / "ui.txt").read_text()
    assert "DEBUG" not in printed and "INFO" not in printed, printed[:2000]  # what runs say is in the UI
    assert set(agreed(profile)) == {FRESH}
    project = Project(profile)
    shown = Shown(Lineage(project), Versions(Lineage(project)).shown)
    with open_instance(project) as instance:
        for asset in shown.assets:
            for partition in shown.keys(asset.name):
                query = dg.AssetRecordsFilter(
                    dg.AssetKey(asset.name), asset_partitions=[partition] if partition else None
                )
                (record,) = instance.fetch_materializations(query, limit=1).records
                assert record.run_id, f"{asset.name} {partition}: the record has no run"
                metadata = record.asset_materialization.metadata
                assert "seconds" in metadata, (asset.name, partition, metadata.keys())  # only a run records it
        checks = definitions(project).get_repository_def().asset_graph.asset_check_keys
        for key in checks:
            executions = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])
            assert executions and executions[key].evaluation is not None, f"{key} is not evaluated"
    assert "0 made" in run().stdout
    if profile == "tiny":
        made = content(project.workspace)
        monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "command"))
        run()
        assert made == content(Project(profile).workspace)


@contextmanager
def ticking(profile: str) -> Iterator[None]:
    """Repeats what the sensor `lake` does, in another process than the runs."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.5):
            with open_instance(Project(profile)) as instance:
                sync(Lineage(Project(profile)), instance)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.verify
def test_a_browser_shows_hostile_text_as_text(tiny: Project, data: Path, tmp_path: Path) -> None:
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("no chromedriver here: the UI is not looked at in a browser")
    hostile = ["![x](y.png)", "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "[press](javascript:1)"]
    grammar = yaml.safe_load((ROOT / "data" / "grammars" / "twitter_sample.yaml").read_text(encoding="utf-8"))
    grammar["openings"] = hostile
    (data / "grammars" / "twitter_sample.yaml").write_text(yaml.safe_dump(grammar), encoding="utf-8")
    (tiny.workspace / "dagster" / "dagster.yaml").unlink(missing_ok=True)
    run("--select", "context_pairs")
    with opened(tmp_path / "ui.txt") as ui:
        browser = Browser(driver, tmp_path / "chromium")
        try:
            browser.call("/url", {"url": ui.page("assets/context_pairs?view=partitions&partition=tiny%7Cgender")})
            page_text = wait(lambda: (text := browser.run("document.body.innerText")) and "context_a" in text and text)
            assert sum(text in page_text for text in hostile) >= 2  # of the five pairs that are shown
            tags = browser.run("[...document.querySelectorAll('img, script, a')].map(own => own.outerHTML).join(' ')")
        finally:
            browser.close()
    for trace in ("y.png", 'src="x"', "alert(1)", "javascript:1"):
        assert trace not in tags
