"""The command line over the whole lineage, on a small profile."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from fairness_pipeline.defs import assets
from fairness_pipeline.defs.lake_io_manager import RESOURCE, LakeIOManager
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.foundation import checks
from fairness_pipeline.lineage.assets import Assets, Result
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Selection
from fairness_pipeline.measures.dialogue.sentiment import SENTIMENT
from fairness_pipeline.project.project import Project
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, content, planned, process, run
from fairness_pipeline_tests.conftest import Once


def test_a_dry_run_makes_nothing(tiny: Project) -> None:
    assert "not made yet" in run("--dry-run").stdout
    assert not tiny.workspace.exists() or not content(tiny.workspace)


@pytest.mark.usefixtures("made")
def test_from_corpus_to_report(
    tiny: Project, made_once: Once, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long test, because each part needs the lake that the one before left."""
    assert "36 made, 0 up to date, 0 not made" in made_once.said
    report = tiny.workspace / "reports" / "dialogue_fairness_report.html"
    assert f"Report: {made_once.workspace / report.relative_to(tiny.workspace)}" in made_once.said
    assert command("report").stdout.splitlines() == [str(report.with_name("index.html")), str(report)]
    before = content(tiny.workspace)
    assert not list(tiny.workspace.rglob("*.part"))

    # A second run has nothing to do, and says so.
    assert "0 made, 36 up to date, 0 not made" in run().stdout
    assert "0 of 36 partitions would run" in run("--dry-run").stdout

    # Runs are recorded in the workspace's Dagster instance, with checks.
    monkeypatch.setenv("DAGSTER_HOME", str(tiny.workspace / "dagster"))
    with dg.DagsterInstance.get() as instance:
        runs = instance.get_runs()
        # corpus; model; its quality; report; for each dimension pairs with instruments, and answers to verdicts
        assert len(runs) == 8
        assert all(run_record.is_success for run_record in runs)
        event = instance.get_latest_materialization_event(dg.AssetKey("dialogue_significance"))
        metadata = event.asset_materialization.metadata
        assert {"significance", "differences", "verdicts", "dagster/row_count"} <= set(metadata)
        assert metadata["differences"].value.startswith("![differences](data:image/png;base64,")

    # A change makes its dependents stale, and nothing else.
    profile = data / "profiles" / "tiny.yaml"
    change(profile, lambda document: document["dialogue_fairness"]["significance"].update(permutations=60))
    assert planned() == [
        "dialogue_significance gender seq2seq",
        "dialogue_significance dialect seq2seq",
        "dialogue_fairness_report",
    ]
    assert "settings.significance.permutations: 50 -> 60" in run("--dry-run").stdout
    change(profile, lambda document: document["dialogue_fairness"]["significance"].update(permutations=50))
    assert planned() == []
    words = data / "dimensions" / "gender.yaml"
    words.write_text(
        Path("data/dimensions/gender.yaml")
        .resolve()
        .read_text(encoding="utf-8")
        .replace("  - [headmaster, headmistress]\n", "")
    )
    assert {line.split()[0] for line in planned()} >= {"contexts", "context_pairs", "responses"}
    assert not [line for line in planned() if "dialect" in line or line.startswith("dialogue_models")]
    words.unlink()
    change(profile, lambda document: document["models"]["seq2seq"]["seq2seq"].update(hidden=12))
    assert not [line for line in planned() if line.startswith("context")]
    assert "dialogue_models seq2seq" in planned()
    change(profile, lambda document: document["models"]["seq2seq"]["seq2seq"].update(hidden=16))

    # A damaged table is made again.
    sentiment = Lake(tiny.workspace).table_path("sentiment", {"dimension": "gender", "model": "seq2seq"})
    sentiment.write_bytes(sentiment.read_bytes()[:100])
    assert planned()[0] == "sentiment gender seq2seq"
    run()
    assert content(tiny.workspace) == before

    # Deleted results are made again: a report, a checkpoint (its card alone proves nothing).
    report.unlink()
    assert planned() == ["dialogue_fairness_report"]
    shutil.rmtree(tiny.workspace / "checkpoints")
    assert "dialogue_models seq2seq" in planned()
    run()
    assert content(tiny.workspace) == before

    # Results, in three forms.
    rows = json.loads(command("results", "--dimension", "gender", "--format", "json").stdout)
    assert len(rows) == 22  # nine measures, each also with words masked; refusals, no answer, any difference, names
    assert {row["measure"] for row in rows} >= {"diversity", "offense_rate", "career_words", "family_words"}
    csv_lines = command("results", "--format", "csv").stdout.splitlines()
    assert csv_lines[0].startswith("dimension,model,measure,unit,n,value_a")
    assert len(csv_lines) == 1 + 22 + 21  # the words of dialect name nobody
    table = command("results").stdout
    assert "further rows (parts, other readings), all columns" in table
    assert "Offence rate" in table and "What to do now" in table
    assert "What to do now" not in command("results", "--format", "csv").stdout
    query = "select count(*) as n, min(dimension) as d from dialogue_significance"
    assert json.loads(command("sql", query, "--format", "json").stdout) == [{"n": 43, "d": "dialect"}]
    duplicates = command("sql", "select 1 as x, 2 as x, 3 as y", "--format", "csv").stdout.splitlines()
    assert duplicates == ["x,x_2,y", "1,2,3"]
    empty = command("sql", "select measure from dialogue_significance where false", "--format", "csv").stdout
    assert empty.splitlines() == ["measure"]

    # The release gate.
    verdicts = {row["verdict"] for row in json.loads(command("results", "--format", "json").stdout)}
    assert command("run", "--fail-on", "biased").returncode == (3 if "biased" in verdicts else 0)


@pytest.mark.verify
def test_another_order_makes_the_same_bytes(tiny: Project, made_once: Once) -> None:
    run("--dimension", "dialect")
    run("--select", "responses")
    run("--dimension", "gender", "--model", "seq2seq")
    run()
    assert content(tiny.workspace) == content(made_once.workspace)
    run("--force")
    assert content(tiny.workspace) == content(made_once.workspace)


def test_a_failed_partition_stops_only_its_dependents(tiny: Project, data: Path) -> None:
    """A dimension whose words never occur fails; the other is measured, and the report lists what is missing."""
    (data / "dimensions" / "gender.yaml").write_text(
        "label: Gender\ngroups: {a: a, b: b}\npairs: [[xyzzy, plugh]]\nattribute_words: {x: [y]}\nsources: [none]\n"
    )
    result = command("run")
    assert result.returncode == 1
    assert "failed: contexts tiny gender: of " in result.stderr
    assert "none has a context with a word of 'gender' that no model trained on; give it a larger" in result.stderr
    (skipped,) = [
        line for line in result.stderr.splitlines() if line.startswith("skipped because a step that they need failed: ")
    ]
    assert "context_pairs tiny gender, parrot_check tiny gender, responses gender seq2seq " in skipped
    assert skipped.endswith("and 11 more")
    assert (
        result.stdout.count("none has a context") + result.stderr.count("none has a context") == 1
    )  # one cause, reported once
    assert "dialect" not in result.stderr
    assert "Traceback" not in result.stderr
    assert not Lake(tiny.workspace).table_path("contexts", {"corpus": "tiny", "dimension": "gender"}).exists()
    assert Lake(tiny.workspace).card("dialogue_significance", {"dimension": "dialect", "model": "seq2seq"})
    report = (tiny.workspace / "reports" / "dialogue_fairness_report.html").read_text(encoding="utf-8")
    assert re.search(r"Not measured:</b> gender × seq2seq", report)
    rows = json.loads(command("results", "--format", "json").stdout)
    assert {
        "dimension": "gender",
        "model": "seq2seq",
        "measure": None,
        "verdict": "not measured",
        "stale": False,
    } in rows

    # Once the cause is mended, a run brings everything up to date.
    (data / "dimensions" / "gender.yaml").unlink()
    assert run().returncode == 0


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b"", "expected dialogues in format 'tsv', found none"),
        (b"context\tresponse\nonly one column\n", "line 2: expected 2 columns"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_bad_corpus_is_named_and_nothing_is_written(
    tiny: Project, data: Path, bad: bytes | None, expected: str
) -> None:
    corpus = {"platform": "twitter", "format": "tsv", "files": [{"path": "bad.tsv"}], "licence": "", "citation": ""}
    (data / "corpora" / "tiny.yaml").write_text(yaml.safe_dump(corpus))
    if bad is not None:
        (data / "corpora" / "bad.tsv").write_bytes(bad)
    result = command("run")
    assert result.returncode == 1
    assert "bad.tsv" in result.stderr
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert not list((tiny.workspace / "tables").rglob("*")) if (tiny.workspace / "tables").exists() else True


@pytest.mark.verify
def test_two_runs_at_once_make_each_partition_once(tiny: Project) -> None:
    runs = [process("run") for _ in range(2)]
    outputs = [run_process.communicate()[0] for run_process in runs]
    assert [run_process.returncode for run_process in runs] == [0, 0], outputs
    assert any("waiting for process" in output for output in outputs)
    os.environ["DAGSTER_HOME"] = str(tiny.workspace / "dagster")
    try:
        with dg.DagsterInstance.get() as instance:
            events = instance.fetch_materializations(dg.AssetKey("dialogue_models"), limit=10).records
            shared = ["left_alone" in record.asset_materialization.metadata for record in events]
        assert sorted(shared) in ([False], [False, True])
    finally:
        del os.environ["DAGSTER_HOME"]
    steps = Plan(Lineage(tiny), Selection()).steps
    assert f"0 of {len(steps)} partitions would run" in run("--dry-run").stdout


@pytest.mark.parametrize("name", ["run", "ui"])
def test_a_home_that_cannot_be_made_is_named(
    tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "file"))
    result = command(name)
    assert result.returncode == 1
    assert "FAIRNESS_HOME: expected a folder, or one that can be made; " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.verify
def test_ctrl_c_stops_the_whole_run(tiny: Project, data: Path) -> None:
    change(
        data / "profiles" / "tiny.yaml", lambda d: d["models"]["seq2seq"]["training"].update(epochs=400, patience=400)
    )
    stopped = process("run")
    deadline = time.monotonic() + 120
    while not list((tiny.workspace / "checkpoints" / "dialogue_models").rglob("training.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stopped.send_signal(signal.SIGINT)
    _, errors = stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert "stopped; run the same command again to go on from here" in errors
    assert "Traceback" not in errors
    assert not (tiny.workspace / "reports").exists()


def test_old_results_are_marked_stale_in_the_report(made: Project, data: Path) -> None:
    report = made.workspace / "reports" / "dialogue_fairness_report.html"
    assert "Stale:" not in report.read_text(encoding="utf-8")
    change(
        data / "profiles" / "tiny.yaml",
        lambda document: document["dialogue_fairness"]["significance"].update(permutations=60),
    )
    run("--dimension", "gender")
    assert report.read_text(encoding="utf-8").count("Stale:") == 1
    run()
    assert "Stale:" not in report.read_text(encoding="utf-8")


@pytest.mark.verify
def test_a_run_killed_during_training_is_resumed(
    tiny: Project, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a SIGKILL during training the next run resumes it, and everything is byte for byte as without a kill."""
    change(data / "profiles" / "tiny.yaml", lambda d: d["models"]["seq2seq"]["training"].update(epochs=12, patience=12))
    run()
    uninterrupted = content(tiny.workspace)
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "killed"))
    workspace = tmp_path / "killed" / "tiny"
    killed = process("run")
    deadline = time.monotonic() + 120
    while not list((workspace / "checkpoints" / "dialogue_models").rglob("training.safetensors")):
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert not list((workspace / "tables").rglob("responses"))
    run()
    assert content(workspace) == uninterrupted


def test_a_table_that_fails_its_check_does_not_take_effect(tiny: Project) -> None:
    """Run by Dagster itself: the run fails, the check is recorded as failed, and the lake has no such table."""

    @Assets(DialoguePart)(
        code_version="1", inputs=lambda part, key: None, schema=SENTIMENT,
        checks=(checks.both_sides_present, checks.compounds_in_range),
    )  # fmt: skip
    def broken(_: None) -> Result:
        """A score out of range."""
        columns = {"compound": [0.5, 1.5], "positive": [False, True], "negative": [False, False]}
        columns |= {f"{name}_masked": values for name, values in columns.items()}
        return Result(pa.table({"pair_id": [0, 0], "side": ["a", "b"], **columns}, schema=SENTIMENT))

    lineage = Lineage(tiny)
    lineage.assets["broken"], lineage.study_of["broken"] = broken, "dialogue_fairness"
    with dg.DagsterInstance.ephemeral() as instance:
        asset = assets.definition(Shown(lineage), broken, assets.Log())
        managers = {RESOURCE: LakeIOManager(profile="tiny")}
        result = dg.materialize([asset], instance=instance, raise_on_error=False, resources=managers)
        outcomes = {evaluation.check_name: evaluation.passed for evaluation in result.get_asset_check_evaluations()}
    assert not result.success
    assert outcomes == {"both_sides_present": True, "compounds_in_range": False}
    assert not result.asset_materializations_for_node("broken")
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "1 values of 'compound' are not in -1.0..1.0" in failure.step_failure_data.user_failure_data.description
    assert not list(tiny.workspace.rglob("*.parquet*"))


def test_checks_name_what_is_wrong() -> None:
    pairs = pa.table({"context_a": ["x", "y"], "context_b": ["x", "z"]})
    assert checks.sides_differ(pairs) == "1 pairs have the same context on both sides"
    assert checks.sides_differ(pairs.slice(1)) is None
    sides = pa.table({"side": ["a", "a", "b"], "response": ["x", " ", "y"]})
    assert "found {'a': 2, 'b': 1}" in checks.both_sides_present(sides)
    assert checks.both_sides_present(sides.slice(1)) is None
    assert checks.not_empty(sides.slice(0, 0)) == "expected rows, found none"
    shares = pa.table({name: [0.1, float("nan")] for name in ("distinct_1", "distinct_2", "diversity")})
    assert checks.shares_in_range(shares) == "1 values of 'distinct_1' are not in 0.0..1.0"
    assert "the corpus is too small" in checks.some_to_audit(pa.table({"split": ["train", "valid"]}))
    assert checks.some_to_audit(pa.table({"split": ["train", "audit"]})) is None


def test_parquet_schemas_are_the_contract(made: Project) -> None:
    lake = Lake(made.workspace)
    key = {"dimension": "gender", "model": "seq2seq"}
    schema = pq.read_schema(lake.table_path("politeness", key))
    assert [(field.name, str(field.type)) for field in schema] == [
        ("pair_id", "int64"), ("side", "string"), ("offensive_probability", "double"), ("offensive", "bool"),
        ("offensive_probability_masked", "double"), ("offensive_masked", "bool"),
    ]  # fmt: skip
    significance = pq.read_schema(lake.table_path("dialogue_significance", key)).names
    assert significance[:26] == [
        "measure", "unit", "n", "value_a", "value_b", "difference", "difference_percent", "ci_low", "ci_high", "test",
        "statistic", "p", "p_holm", "p_bh", "paired_test", "paired_statistic", "p_paired", "effect_size", "margin",
        "p_equivalence", "minimum_detectable", "verdict", "paper_verdict", "published_value_a", "published_value_b",
        "published_p",
    ]  # fmt: skip
