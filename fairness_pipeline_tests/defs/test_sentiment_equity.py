"""Study 3 through the command line: systems, score files, and what a wrong one leaves alone."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fairness_pipeline.lake import Lake
from fairness_pipeline.project import Project
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.defs.commands import change, command, content, planned, run

STUDY = ("--study", "sentiment_equity")


@pytest.fixture
def audited(tiny: Project, data: Path) -> Project:
    """The tiny profile with VADER and a linear SVM, in gender and race."""
    change(
        data / "profiles" / "tiny.yaml",
        lambda profile: profile.update(dimensions=["gender", "race"], systems={"vader": {}, "linear_svm": {}}),
    )
    return Project("tiny")


def write_scores(path: Path, sentences: Path, shift: float) -> Path:
    """Scores that are higher by `shift` for women, in both sets of templates."""
    with sentences.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    female = {"she", "her", "woman", "girl", "sister", "daughter", "wife", "girlfriend", "mother", "aunt", "mom"}
    names = "Ebony Jasmine Lakisha Latisha Latoya Nichelle Shaniqua Shereen Tanisha Tia Amanda Betsy Courtney Ellen " \
        "Heather Katie Kristin Melanie Nancy Stephanie"  # fmt: skip
    female |= set(names.lower().split())
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sentence_id", "affect", "score"])
        for row in rows:
            words = set(row["sentence"].lower().rstrip(".").split())
            writer.writerow([row["sentence_id"], "joy", 0.4 + shift * bool(words & female)])
    return path


def significance(project: Project, system: str, dimension: str = "gender") -> dict[str, dict]:
    rows = Lake(project.workspace).read("equity_significance", {"dimension": dimension, "system": system}).to_pylist()
    return {row["templates"]: row for row in rows if row["subset"] == "all"}


def test_systems_and_score_files(audited: Project, tmp_path: Path) -> None:
    """One long story, because every chapter of it needs the lake that the one before left."""
    done = run(*STUDY)
    assert "0 not made" in done.stdout
    assert "Sentiment equity" in done.stdout
    report = audited.workspace / "reports" / "equity_report.html"
    assert f"Report: {report}" in done.stdout
    assert {path.name for path in (audited.workspace / "tables").iterdir()} == {
        "equity_sentences", "affect_tweets", "equity_scores", "equity_pairs", "equity_significance"
    }  # fmt: skip
    assert planned(*STUDY) == []
    before = content(audited.workspace)

    # A score file dropped into the folder is a partition: it is made, and the report; nothing else.
    exported = tmp_path / "sentences.csv"
    assert "17,280 sentences" in command("export-sentences", "--output", str(exported)).stdout
    dropped = write_scores(audited.workspace / "scores" / "Team 7.csv", exported, shift=0.1)
    made = {"equity_scores team_7", *(f"{t} {d} team_7" for d in ("gender", "race") for t in ("equity_pairs", "equity_significance")),
            "equity_report"}  # fmt: skip
    assert set(planned(*STUDY)) == made
    run("--model", "team_7")
    after = content(audited.workspace)
    assert {name for name in before if after[name] != before[name]} == {
        "reports/equity_report.html", "cards/equity_report/all.json"
    }  # fmt: skip
    for row in significance(audited, "team_7").values():
        assert (row["verdict"], row["affect"]) == ("biased", "joy")
        assert row["difference"] == pytest.approx(-0.1)
    assert {row["verdict"] for row in significance(audited, "team_7", "race").values()} == {"fair"}
    assert "team_7" in report.read_text(encoding="utf-8")
    assert command("run", "--fail-on", "biased", "--model", "team_7").returncode == 2
    assert command("run", "--fail-on", "biased", "--model", "vader").returncode == 0

    # Results as rows, and SQL.
    rows = json.loads(command("results", "--model", "team_7", "--format", "json").stdout)
    assert {(row["dimension"], row["subset"]) for row in rows} == {
        (d, s) for d in ("gender", "race") for s in ("all", "without emotion words")
    }  # fmt: skip
    counted = command("sql", "select count(*) as n from equity_scores where system = 'team_7'", "--format", "csv")
    assert counted.stdout.split() == ["n", "17280"]

    # A wrong file is refused with its line; the other systems stay, and the report says what is missing.
    text = dropped.read_text().splitlines()
    dropped.write_text("\n".join([*text[:41], "40,joy,much", *text[42:]]))
    done = command("run", *STUDY)
    assert done.returncode == 1
    assert "Team 7.csv, line 42: " in done.stderr
    assert "Traceback" not in done.stderr
    for name, kept in after.items():
        if "team_7" not in name and "report" not in name:
            assert content(audited.workspace)[name] == kept
    assert "<b>Stale:</b>" in report.read_text(encoding="utf-8")

    # The file gone, the system is gone too.
    dropped.unlink()
    run(*STUDY)
    assert "team_7" not in report.read_text(encoding="utf-8")


def test_scores_are_imported_by_command(audited: Project, tmp_path: Path) -> None:
    exported = tmp_path / "sentences.csv"
    command("export-sentences", "--output", str(exported))
    scores = write_scores(tmp_path / "mine.csv", exported, shift=0.0)
    done = command("import-scores", str(scores), "--system", "mine")
    assert done.returncode == 0, done.stderr
    assert "17,280 scores of 'mine'" in done.stdout
    run("--model", "mine")
    for dimension in ("gender", "race"):
        for row in significance(audited, "mine", dimension).values():
            assert row["t"] is None
            assert (row["difference"], row["p_paper"], row["p_person"], row["verdict"]) == (0.0, 1.0, 1.0, "fair")
    report = (audited.workspace / "reports" / "equity_report.html").read_text(encoding="utf-8")
    assert "no difference" in report
    assert ">nan<" not in report.lower()

    scores.write_text("sentence_id,score\n1,2\n")
    for name, reason in (("mine", "line 2: score"), ("vader", "has a system 'vader' already"), ("A b", "lower-case")):
        done = command("import-scores", str(scores), "--system", name)
        assert done.returncode == 1
        assert reason in done.stderr
    assert np.isfinite(significance(audited, "mine")["published"]["ci_low"])  # what was imported stands


def test_a_dry_run_counts_the_requests_of_an_endpoint(audited: Project, data: Path) -> None:
    (data / "systems").mkdir()
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    write_yaml(
        data / "systems" / "bot.yaml", {"architecture": "endpoint", "affects": ["joy", "fear"], "endpoint": endpoint}
    )
    assert "no request to an endpoint" in run("--dry-run", *STUDY).stdout
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["systems"].update(bot={}))
    assert f"; {2 * 17280:,} requests to endpoints" in run("--dry-run", *STUDY).stdout


def test_a_wrong_system_file_is_named(audited: Project, data: Path) -> None:
    (data / "systems").mkdir()
    write_yaml(data / "systems" / "mine.yaml", {"architecture": "cnn", "affects": ["hope"]})
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["systems"].update(mine={}))
    done = command("run", "--dry-run")
    assert done.returncode == 1
    assert "systems/mine.yaml, line 2: affects" in done.stderr
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(systems={"other": {}}))
    assert "unknown system 'other'; known: cnn, gru, linear_svm, mine, vader" in command("run", "--dry-run").stderr
