"""Sensors, schedules and jobs, and the history with which later runs are compared."""

import json
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairness_pipeline.cli import _parser
from fairness_pipeline.cli.arguments import selection
from fairness_pipeline.defs import automation
from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.names import Names
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import selected
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.history import entries, find_entry, keep
from fairness_pipeline.studies.dialogue_fairness.study import STUDY as DIALOGUE
from fairness_pipeline_tests.commands import change, command, planned, run
from fairness_pipeline_tests.conftest import TINY, write_yaml
from fairness_pipeline_tests.local_server import TOLD_AT

NAMES = Names()


def job_of(profile: str) -> dg.JobDefinition:
    lineage = Lineage(Project(profile))
    return automation.bring_up_to_date(lineage, NAMES, automation.command_op(lineage, NAMES))


def tick(context: dg.SensorEvaluationContext) -> list[dg.RunRequest]:
    sensor = automation.changed_files(job_of("tiny"), "tiny", NAMES)
    return [r for r in sensor(context) if isinstance(r, dg.RunRequest)]


def test_the_sensor_sees_changed_and_new_files(tiny: Project, data: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("context\tresponse\na\tb\n")
    write_yaml(data / "corpora" / "mine.yaml", {
        "platform": "other", "format": "tsv", "files": [{"path": str(pairs)}], "licence": "", "citation": "",
    })  # fmt: skip
    weights = tmp_path / "bot" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_text("1")
    write_yaml(data / "models" / "bot.yaml", {
        "architecture": "causal_lm", "studies": ["dialogue_fairness"], "corpus": "mine",
        "huggingface": {"name": "../../bot"},
    })  # fmt: skip
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(
        dialogue_fairness={**profile["dialogue_fairness"], "corpora": ["tiny", "mine"]}, models={**profile["models"], "bot": {}},
    ))  # fmt: skip
    tweets = tmp_path / "tweets.tsv"
    tweets.write_text("")
    change(
        data / "profiles" / "tiny.yaml",
        lambda profile: profile.update(sentiment_equity={"systems": {"linear_svm": {}}, "tweets": [str(tweets)]}),
    )
    (data / "equity").mkdir()
    (data / "equity" / "templates.yaml").write_text("")
    scores = tiny.workspace / "scores" / "mine.csv"
    scores.parent.mkdir(parents=True)
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance)
        assert tick(context) == []  # the first tick
        assert tick(context) == []  # nothing changed
        for touch in (
            lambda: write_yaml(data / "dimensions" / "new.yaml", {"anything": 1}),
            lambda: (data / "dimensions" / "new.yaml").write_text("another: 2"),
            lambda: write_yaml(data / "models" / "new.yaml", {"anything": 1}),
            lambda: pairs.write_text("context\tresponse\na\tb\nc\td\n"),
            lambda: (data / "models" / "new.yaml").unlink(),
            lambda: weights.write_text("other"),
            lambda: scores.write_text("sentence_id,score"),
            lambda: scores.write_text("sentence_id,score\n1,0.5"),
            lambda: (data / "equity" / "templates.yaml").write_text("published: []"),
            lambda: tweets.write_text("ID\tTweet"),
        ):
            touch()
            (request,) = tick(context)
            assert not request.run_config  # the job's default: everything, and no answers are asked anew
            assert tick(context) == []


def test_the_weekly_schedule_asks_again() -> None:
    context = dg.build_schedule_context(scheduled_execution_time=datetime(2026, 11, 23, 3, tzinfo=UTC))
    weekly = automation.weekly(job_of("sample"), NAMES)
    request = weekly(context)
    assert request.run_config == {"ops": {"run_command": {"config": {"ask_again": True, "everything": False}}}}
    assert weekly.cron_schedule == "0 3 * * 1"


def test_the_jobs_configuration_is_the_commands_options() -> None:
    """Each field is an option that the command takes."""
    configuration = {
        "study": "outcomes", "dimension": "gender", "model": "m", "corpus": "c", "condition": "d", "everything": True,
        "ask_again": True,
    }  # fmt: skip
    assert automation.options({"study": "(all)", "everything": False, "ask_again": False}) == []
    parsed = vars(_parser().parse_args(["run", *automation.options(configuration)]))
    assert {name: parsed[{"everything": "all"}.get(name, name)] for name in configuration} == configuration


def test_the_launchpad_offers_every_limit() -> None:
    job = job_of("sample")
    (config,) = job.run_config["ops"].values()
    schema = job.get_node_named("run_command").definition.config_schema.as_field().config_type.fields
    assert config["config"] == {
        **dict.fromkeys(("study", "dimension", "model", "corpus", "condition"), "(all)"), "everything": False, "ask_again": False,
    }  # fmt: skip
    assert schema["condition"].config_type.config_values == ["(all)", "plain", "instructed", "planted"]
    assert "seq2seq-cda" in schema["model"].config_type.config_values


def test_two_profiles_in_one_process_have_limits_of_their_own(tiny: Project, data: Path) -> None:
    write_yaml(data / "profiles" / "other.yaml", TINY | {"dimensions": ["dialect"]})
    for profile, dimensions in (("tiny", ["gender", "dialect"]), ("other", ["dialect"])):
        schema = job_of(profile).get_node_named("run_command").definition.config_schema.as_field()
        assert schema.config_type.fields["dimension"].config_type.config_values == ["(all)", *dimensions]


@pytest.mark.parametrize("profile", [*paths.yaml_files("profiles")])
def test_every_shipped_profile_has_its_jobs(profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One of them has a condition named `all`."""
    monkeypatch.setenv("FAIRNESS_CORPORA", str(tmp_path))
    job = job_of(profile)
    dg.validate_run_config(job, job.run_config)
    assert automation.options({"condition": "all"}) == ["--condition=all"]


def test_an_audit_is_one_partition_of_its_studys_job() -> None:
    """The job's configuration selects exactly that audit: its verdicts, their inputs, and the report."""
    lineage = Lineage(Project("sample"))
    jobs = automation.audits(lineage, NAMES, automation.command_op(lineage, NAMES))
    assert [job.name for job in jobs] == [f"audit_{study.name}" for study in lineage.project.studies]
    for job, study in zip(jobs, lineage.project.studies, strict=True):
        assert job.partitions_def is not None
        audits = [*zip(job.partitions_def.get_partition_keys(), lineage.keys(study.table), strict=True)]
        for name, key in (audits[0], audits[-1]):
            config = job.partitioned_config.get_run_config_for_partition_key(name)["ops"]["run_command"]["config"]
            chosen = selection(_parser().parse_args(["run", *automation.options(config)]))
            pairs = list(selected(lineage, chosen.resolved(lineage.project)))
            assert [audit_key for table, audit_key in pairs if table == study.table and audit_key == key] == [key]
            assert (study.report, {}) in pairs
            assert {lineage.study_of[asset] for asset, _ in pairs} == {study.name}
            others = [audit_key for table, audit_key in pairs if table == study.table and audit_key != key]
            bases = [lineage.part(study.table).base_of(key), *lineage.other_subjects(study.table, key)]
            assert all(audit_key in bases for audit_key in others), (name, others)


def test_the_job_brings_the_profile_up_to_date(made: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda p: p["dialogue_fairness"]["significance"].update(permutations=60))
    assert "dialogue_significance gender seq2seq" in planned()
    job = job_of("tiny")
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance)
        assert done.success
        assert planned() == []
        with open_instance(made) as workspace_instance:
            assert workspace_instance.get_runs(dg.RunsFilter(tags={"fairness_pipeline/called_by": done.run_id}))
        change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(dimensions=["nonsense"]))
        failed = job.execute_in_process(instance=instance, raise_on_error=False)
        assert not failed.success
        (event,) = [e for e in failed.all_events if e.is_step_failure]
        assert "unknown dimension 'nonsense'" in event.step_failure_data.user_failure_data.description


def test_each_run_is_kept_and_a_later_one_is_compared_with_it(made: Project, data: Path, told: list[dict]) -> None:
    change(
        made.path, lambda document: document.update(notify={"webhook_variable": TOLD_AT, "link": "https://ui.example/"})
    )
    (first,) = entries(made.workspace, DIALOGUE)
    kept = made.workspace / "history" / first
    report = made.workspace / "reports" / "dialogue_fairness_report.html"
    assert (kept / report.name).read_text() == report.read_text()
    run()
    assert entries(made.workspace, DIALOGUE) == [first]  # nothing was stale
    assert told == []

    change(data / "profiles" / "tiny.yaml", lambda profile: profile["dialogue_fairness"].update(significance={
        "margins": {kind: {"relative": 5.0} for kind in ("rates", "counts", "diversity")}, "permutations": 50, "jackknife_blocks": 10,
    }))  # fmt: skip
    Path(kept).rename(kept.with_name("2026-01-01T00-00-00Z"))
    done = run()
    changes = json.loads(command("results", "--against", "2026-01", "--format", "json").stdout)
    assert changes
    (message,) = told
    assert "SECRET" not in done.stdout + done.stderr
    assert (message["event"], message["link"]) == ("verdict", "https://ui.example/assets/dialogue_fairness_report")
    assert f"{number_of(len(changes), 'verdict')} turned since 2026-01-01" in message["title"]
    for row, line in zip(changes, message["lines"], strict=True):
        assert line.startswith(f"{row['dimension']} {row['model']} {row['measure']}: ")
        assert f" {row['verdict_then']} -> {row['verdict_now']}: " in line
    for row in changes:
        assert row["difference_then"] == row["difference_now"]
        assert row["verdict_then"] != row["verdict_now"]
        assert (
            "dialogue_significance gender seq2seq: settings.significance.margins" in row["why"]
            or row["dimension"] == "dialect"
        )
    assert "fair" in {row["verdict_now"] for row in changes}, changes
    assert json.loads(command("results", "--against", "previous", "--format", "json").stdout) == changes
    assert ",why" in command("results", "--against", "2026-01", "--format", "csv").stdout
    comparison = command("results", "--against", "previous")
    assert comparison.stderr == f"{number_of(len(changes), 'verdict')} turned since 2026-01-01T00-00-00Z\n"
    assert len(comparison.stdout.splitlines()) == 3 * len(changes)  # the verdicts, the gap, and why
    assert " -> fair (" in comparison.stdout
    for time in ("2026-13-45", "2026-02-30", "2026-01-01T25:00", "yesterday"):
        assert "expected a time such as 2026-11-20" in command("results", "--against", time).stderr
    wrong = command("results", "--against", "2025")
    assert wrong.returncode == 1
    assert "no such run is kept; kept: 2026-01-01T00-00-00Z" in wrong.stderr
    run("--force", "--select", "dialogue_fairness_report")
    assert len(entries(made.workspace, DIALOGUE)) == 2  # the tables are those of the last entry


def test_which_entry_is_meant(tiny: Project) -> None:
    def rows(difference: float) -> list[dict]:
        return [{"dimension": "gender", "model": "m", "measure": "diversity", "difference": difference}]

    for day in (1, 2, 3):
        folder = tiny.workspace / "history" / f"2026-11-0{day}T12-30-00Z"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows(day)), folder / "dialogue_significance.parquet")
    for requested, expected_day in (
        ("2026-11-02", 2), ("2026-11-02T13", 2), ("2026-11-02T12:30", 2), ("2026-11-02T12:29", 1), ("2026-11-02 13:00", 2),
        ("2026", 3), ("2027", 3), ("previous", 2),
    ):  # fmt: skip
        assert find_entry(tiny.workspace, DIALOGUE, requested, rows(3)) == f"2026-11-0{expected_day}T12-30-00Z", (
            requested
        )
    keep(tiny.workspace, DIALOGUE, rows(4), "r", datetime(2026, 11, 3, 12, 30, tzinfo=UTC))
    assert entries(tiny.workspace, DIALOGUE)[-2:] == ["2026-11-03T12-30-00Z", "2026-11-03T12-30-01Z"]  # in one second
    assert find_entry(tiny.workspace, DIALOGUE, "previous", rows(4)) == "2026-11-03T12-30-00Z"
    with pytest.raises(FairnessError, match="--against 2026-10: no such run is kept"):
        find_entry(tiny.workspace, DIALOGUE, "2026-10", [])
    for wrong in ("yesterday", "last", "2026-1", "20261101"):
        with pytest.raises(FairnessError, match=f"expected a time .* found '{wrong}'"):
            find_entry(tiny.workspace, DIALOGUE, wrong, [])
