"""Defects that reviews found: each once gave a wrong answer or a traceback."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.sentiment.specification import EncoderSettings
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.results import NEVER_SEEN, audits_of, shown_verdict
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.distinct import each_distinct
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, planned, run
from fairness_pipeline_tests.conftest import write_yaml


def test_a_study_that_the_profile_has_no_part_in_is_refused(data: Path, tiny: Project) -> None:
    alone = {"description": "d", "seed": 1, "dimensions": ["gender"], "sentiment_equity": {"systems": {"vader": {}}}}
    write_yaml(data / "profiles" / "alone.yaml", alone)
    for name in ("results", "run"):
        done = command(name, "--profile", "alone", "--study", "dialogue_fairness")
        assert (done.returncode, done.stdout) == (1, "")
        assert "unknown study 'dialogue_fairness' in profile 'alone'; known: sentiment_equity" in done.stderr
    done = command("export", "pairs", "--profile", "alone", "--dimension", "gender", "--output", "x.csv")
    assert "profile 'alone' has no section dialogue_fairness" in done.stderr


def test_a_key_keeps_its_own_corpus(tiny: Project) -> None:
    part = tiny.parts["dialogue_fairness"]
    assert part.implied({"model": "seq2seq"}) == {"model": "seq2seq", "corpus": "tiny"}
    assert part.implied({"model": "seq2seq", "corpus": "other"})["corpus"] == "other"


def test_a_models_file_says_which_studies_audit_it(tiny: Project, data: Path) -> None:
    base = {
        "architecture": "endpoint",
        "corpus": "tiny",
        "endpoint": {"base_url": "http://127.0.0.1:9/v1", "model": "m"},
    }
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"].update(bot={}))
    write_yaml(data / "models" / "bot.yaml", base)
    assert "bot" in Project("tiny").parts["dialogue_fairness"].subjects  # by every study that can
    write_yaml(data / "models" / "bot.yaml", {**base, "studies": ["dialogue_fairness"]})
    assert "bot" in Project("tiny").parts["dialogue_fairness"].subjects
    write_yaml(data / "models" / "bot.yaml", {**base, "studies": ["sentiment_equity"]})
    with pytest.raises(FairnessError, match="models: 'bot' is audited by none of the profile's studies"):
        Project("tiny")
    write_yaml(data / "models" / "bot.yaml", {**base, "studies": ["age"]})
    with pytest.raises(FairnessError, match=r"bot\.yaml: studies: unknown study 'age'; known: dialogue_fairness, "):
        Project("tiny")


def test_a_loss_that_is_no_number_advises_existing_keys() -> None:
    """`lower the learning rate or the clipping`: whatever is trained has both."""
    for settings in (EncoderSettings, TrainingSettings):
        assert {"learning_rate", "clipping"} <= set(settings.model_fields)


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x10\x00")
    with pytest.raises(FairnessError, match=r"model\.safetensors: damaged or missing .*; delete it and run again"):
        load_weights(path)


@pytest.mark.verify
def test_junk_in_the_record_of_runs_and_in_the_history_is_named(tiny: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(dimensions=["gender"]))
    run()
    for table in (tiny.workspace / "history").glob("*/*.parquet"):
        table.write_bytes(b"junk")
    done = command("results", "--against", "2027")
    assert done.returncode == 1
    assert "dialogue_significance.parquet: damaged" in done.stderr
    for database in (tiny.workspace / "dagster").rglob("*.db"):
        database.write_bytes(b"junk" * 5000)
    for workers in ("1", "2"):
        done = command("run", "--force", "--workers", workers)
        assert done.returncode == 1
        assert "Dagster's record of runs cannot be" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_reports_headings_are_those_of_its_cells(made: Project) -> None:
    page = Lake(made.workspace).document_path(STUDY.report).read_text(encoding="utf-8")
    glance = page.partition('id="verdicts"')[2].partition("</table>")[0]
    headings = [cell.partition(">")[2] for cell in glance.partition("</tr>")[0].split("<th")[1:]]
    column_names = [heading.partition("<")[0] for heading in headings]
    rows = [row for audit in audits_of(STUDY, made.parts[STUDY.name], Lake(made.workspace)) for row in audit.rows]
    present = {STUDY.heading(row) for row in rows}
    with_column = {STUDY.heading(row) for row in rows if shown_verdict(row) != NEVER_SEEN} | {"Attribute words"}
    never = [heading for heading in STUDY.headings if heading in present - with_column]
    assert f"Never seen in either group, and left out: {', '.join(never)}." in page
    assert column_names == ["Dimension", "Model", *(heading for heading in STUDY.headings if heading in with_column)]
    assert present - {None} < set(STUDY.headings)  # what is measured on request has no column here
    first_row = glance.partition("</tr>")[2].partition("</tr>")[0]
    assert first_row.count("<td") == len(headings)


def test_results_mark_what_is_stale_and_sql_leaves_it_out(made: Project, data: Path) -> None:
    profile = data / "profiles" / "tiny.yaml"
    change(profile, lambda document: document["dialogue_fairness"]["significance"].update(permutations=60))
    rows = json.loads(command("results", "--format", "json").stdout)
    assert {row["stale"] for row in rows} == {True}
    run("--dimension", "gender")
    rows = json.loads(command("results", "--format", "json").stdout)
    assert {(row["dimension"], row["stale"]) for row in rows} == {("gender", False), ("dialect", True)}
    assert "stale" in command("results").stdout.splitlines()[0]
    query = "select distinct dimension from dialogue_significance order by 1"
    result = command("sql", query, "--format", "csv")
    assert result.stdout.split() == ["dimension", "gender"]
    assert "left out" in result.stderr
    assert command("sql", query, "--format", "csv", "--all").stdout.split() == ["dimension", "dialect", "gender"]

    # A model that the profile no longer lists.
    change(profile, lambda document: document["models"].update({"seq2seq-cda": {}}))
    run("--dimension", "gender")
    change(profile, lambda document: document["models"].pop("seq2seq-cda"))
    assert {row["model"] for row in json.loads(command("results", "--format", "json").stdout)} == {"seq2seq"}
    models = "select distinct model from dialogue_significance order by 1"
    assert command("sql", models, "--format", "csv").stdout.split() == ["model", "seq2seq"]
    assert command("sql", models, "--format", "csv", "--all").stdout.split() == ["model", "seq2seq", "seq2seq-cda"]
    assert planned("--dimension", "gender") in ([], ["dialogue_fairness_report"])


def test_a_damaged_chunk_of_unfinished_work_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "scored-000000.parquet").write_bytes(b"PAR1junk")
    table = each_distinct(pa.array(["b", "a", "b"]), lambda t: t.rename_columns(["same"]), folder=tmp_path)
    assert table["same"].to_pylist() == ["b", "a", "b"]
    again = each_distinct(pa.array(["b", "a", "b"]), lambda t: t.slice(0, 0), folder=tmp_path)  # nothing is asked
    assert again.equals(table)


@pytest.mark.verify
def test_a_damaged_history_still_takes_new_entries(tiny: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(dimensions=["gender"]))
    run()
    (kept,) = (tiny.workspace / "history").glob("*/dialogue_significance.parquet")
    kept.write_bytes(b"junk")
    kept.parent.rename(kept.parent.with_name("2026-01-01T00-00-00Z"))
    significance = {
        "margins": {kind: {"relative": 5.0} for kind in ("rates", "counts", "diversity")},
        "permutations": 50,
        "jackknife_blocks": 10,
    }
    change(data / "profiles" / "tiny.yaml", lambda d: d["dialogue_fairness"].update(significance=significance))
    run()
    assert len(list((tiny.workspace / "history").glob("*/dialogue_significance.parquet"))) == 2


def test_sql_whatever_the_case_and_whatever_else_is_damaged(made: Project) -> None:
    table = Lake(made.workspace).table_path("sentiment", {"dimension": "gender", "model": "seq2seq"})
    table.write_bytes(table.read_bytes()[:200])
    counted = command("sql", "select count(*) > 0 as some from contexts", "--format", "csv")
    assert counted.stdout.split() == ["some", "True"]
    result = command("sql", "select count(*) as n from Sentiment", "--format", "csv")
    assert "left out (stale, or no longer in the profile): sentiment gender seq2seq" in result.stderr
    alike = command("sql", "select count(*) as sentiments from contexts")
    assert alike.returncode == 0 and "left out" not in alike.stderr
    missing = command("sql", "select * from equity_scores")
    assert "attribute_words, " in missing.stderr


def test_a_classifiers_folder_is_looked_for_beside_the_profile(
    tiny: Project, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is hashed, so that a changed folder is noticed."""
    folder = data / "profiles" / "judge"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    change(
        data / "profiles" / "tiny.yaml",
        lambda d: d["dialogue_fairness"].update(measures={"offence_classifier": "judge"}),
    )
    monkeypatch.chdir(tmp_path)
    part = Project("tiny").parts["dialogue_fairness"]
    assert part.settings.measures.offence_classifier == str(folder.resolve())
    assert folder / "config.json" in Lineage(Project("tiny")).files()
