"""Notices of verdicts that turned, of a first run's findings and of failed runs; to a server and to a command."""

import json
import logging
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import dagster as dg
import pytest

from fairness_pipeline.defs import automation
from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.names import Names
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.notifications import Message, NotifySettings, notify, shortened
from fairness_pipeline.foundation.processes import PARENT
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.notices import notify_first
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.studies.dialogue_fairness.study import STUDY as DIALOGUE
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command
from fairness_pipeline_tests.local_server import TOLD_AT, answer, serve


def enable_notices(project: Project, **settings: object) -> None:
    change(project.path, lambda profile: profile.update(notify={"webhook_variable": TOLD_AT, **settings}))


def test_a_notice_lists_what_a_first_run_finds(made: Project, told: list[dict]) -> None:
    enable_notices(made)
    project, lake = Project("tiny"), Lake(made.workspace)
    audits = audits_of(DIALOGUE, project.parts[DIALOGUE.name], lake)
    notify_first(DIALOGUE, project, audits, Path("report.html"))
    assert told == []  # there is no finding
    biased = [replace(audit, rows=[{**row, "verdict": "biased"} for row in audit.rows[:1]]) for audit in audits]
    notify_first(DIALOGUE, project, biased, Path("report.html"))
    (message,) = told
    assert message["event"] == "check" and "no_verdict_is_biased fails, 2 findings" in message["title"]
    part = project.parts[DIALOGUE.name]
    assert message["lines"] == [DIALOGUE.finding(part, audit.key, audit.rows[0]) for audit in biased]


def test_a_message_links_to_the_report_or_to_the_run(
    made: Project, told: list[dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a user's own code location the report's key has a prefix, which the command does not know."""
    enable_notices(made, link="https://dagster.example.com/")
    project = Project("tiny")
    audits = audits_of(DIALOGUE, project.parts[DIALOGUE.name], Lake(made.workspace))
    biased = [replace(audit, rows=[{**row, "verdict": "biased"} for row in audit.rows[:1]]) for audit in audits]
    notify_first(DIALOGUE, project, biased, Path("report.html"))
    monkeypatch.setenv(PARENT, "a-run")
    notify_first(DIALOGUE, project, biased, Path("report.html"))
    assert [message["link"] for message in told] == [
        f"https://dagster.example.com/{page}" for page in (f"assets/{DIALOGUE.report}", "runs/a-run")
    ]


def test_a_failed_run_is_notified(tiny: Project, told: list[dict], data: Path) -> None:
    enable_notices(tiny, events=["failure"])
    change(data / "corpora" / "tiny.yaml", lambda corpus: corpus["grammar"].update(dialogues=3))
    assert command("run").returncode == 1
    (message,) = told
    assert message["event"] == "failure"
    assert "twitter_dialogues tiny" in message["lines"]  # without the reason, which may quote a text
    told.clear()
    enable_notices(tiny, events=["failure"], texts=True)
    assert command("run").returncode == 1
    assert any(line.startswith("twitter_dialogues tiny: ") for line in told[0]["lines"])


def test_a_command_that_cannot_go_on_is_notified(tiny: Project, told: list[dict]) -> None:
    enable_notices(tiny)
    done = command("run", "--model", "seq2seq", "--corpus", "nonsense")
    assert done.returncode == 1 and "unknown corpus 'nonsense'" in done.stderr
    assert [message["title"] for message in told] == ["a run failed: it could not go on"]


def test_a_failed_run_of_dagsters_is_notified_once(tiny: Project, told: list[dict]) -> None:
    assert "failures" not in {sensor.name for sensor in definitions(tiny).sensors}
    enable_notices(tiny, link="https://dagster.example.com")
    project = Project("tiny")
    assert "failures" in {sensor.name for sensor in definitions(project).sensors}

    @dg.op
    def fails() -> None:
        raise dg.Failure("a text of the corpus")

    def run_and_sense(job: str, jobs: set[str]) -> None:
        sensor = automation.failures("tiny", project.profile.notify, Names(), jobs, [dg.AssetKey("contexts")])
        with dg.DagsterInstance.ephemeral() as instance:
            done = dg.GraphDefinition(name=job, node_defs=[fails]).to_job().execute_in_process(
                instance=instance, raise_on_error=False
            )  # fmt: skip
            context = dg.build_run_status_sensor_context(
                sensor_name=sensor.name, dagster_event=done.get_run_failure_event(), dagster_instance=instance,
                dagster_run=done.dagster_run, partition_key="gender|seq2seq",
            ).for_run_failure()  # fmt: skip
            sensor(context)
            runs.append(done.run_id)

    runs: list[str] = []
    run_and_sense("somebody_elses", {"bring_up_to_date"})
    assert told == []
    run_and_sense("bring_up_to_date", {"bring_up_to_date"})
    assert told == [{
        "event": "failure", "profile": "tiny", "title": "a run failed: bring_up_to_date", "lines": [],
        "link": f"https://dagster.example.com/runs/{runs[-1]}",
    }]  # fmt: skip


MESSAGE = Message("verdict", "p", "Two & <three>", ("a line",), "https://x.example")


def test_slack_takes_one_text(told: list[dict]) -> None:
    notify(NotifySettings(webhook_variable=TOLD_AT, format="slack"), MESSAGE)
    assert told == [
        {"text": "Fairness pipeline, profile p: Two &amp; &lt;three&gt;\n• a line\nhttps://x.example"}
    ]  # fmt: skip
    notify(NotifySettings(webhook_variable=TOLD_AT, events=("failure",)), MESSAGE)
    notify(None, MESSAGE)
    assert len(told) == 1


def test_a_command_gets_the_message(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    program = f"import sys; open({str(file)!r}, 'wb').write(sys.stdin.buffer.read())"
    notify(NotifySettings(command=(sys.executable, "-c", program)), MESSAGE)
    assert json.loads(file.read_text(encoding="utf-8"))["title"] == "Two & <three>"


def test_a_failed_notice_stops_nothing_and_keeps_the_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def handler(request: BaseHTTPRequestHandler) -> None:
        answer(request, 500, b"")

    notify(NotifySettings(webhook_variable=TOLD_AT), MESSAGE)
    with serve(handler) as address:
        monkeypatch.setenv(TOLD_AT, f"{address}/SECRET")
        notify(NotifySettings(webhook_variable=TOLD_AT), MESSAGE)
    notify(NotifySettings(webhook_variable=TOLD_AT), MESSAGE)  # nobody listens any more
    monkeypatch.setenv(TOLD_AT, "SECRET")
    notify(NotifySettings(webhook_variable=TOLD_AT, command=("/nowhere/program",)), MESSAGE)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    monkeypatch.setenv(TOLD_AT, "https://127.0.0.1:9/SECRET")
    notify(NotifySettings(webhook_variable=TOLD_AT), replace(MESSAGE, title="\ud800"))
    assert [record.message.count("nobody was notified") for record in caplog.records] == [1] * 6
    assert f"{TOLD_AT} is not set" in caplog.text
    assert "status 500" in caplog.text
    assert "/SECRET" not in caplog.text


def test_a_secret_in_the_profile_is_refused(tiny: Project) -> None:
    enable_notices(tiny)
    change(tiny.path, lambda profile: profile["notify"].update(webhook_variable="https://hooks.example.com/T0/B0/xyz"))
    with pytest.raises(FairnessError, match="name of an environment variable in capitals, not an address") as raised:
        Project("tiny")
    assert "xyz" not in str(raised.value)


def test_long_lists_are_shortened() -> None:
    assert shortened(["a"] * 20) == ("a",) * 20
    assert shortened(["a"] * 22)[20:] == ("and 2 others",)
