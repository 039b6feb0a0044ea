"""Takes a table through the doctor, `audit`, the report, the gate, evidence, the viewer and another run."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.viewer.bundle import build
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, planned, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.measures.outcomes.planted import sample_table

COLUMNS = ("item=request", "cluster=topic", "group=town", "condition=prompt", "draw=draw")
WORDS = [word for column in COLUMNS for word in ("--column", column)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The sample's table, without the ages."""
    path = tmp_path / "decisions.csv.gz"
    rows = [line.split(",") for line in sample_table().splitlines()]
    text = "".join(",".join(row[:3] + row[4:]) + "\n" for row in rows if row[3] in ("age", "younger"))
    path.write_bytes(gzip.compress(text.encode()))
    return path


def _audit(table: Path, *more: str) -> Any:
    return command("audit", str(table), "--profile", "mine", "--workers", "1", *WORDS, *more)


def test_from_the_doctor_to_the_evidence(
    mine: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = command("doctor", str(table), *WORDS, "--outcome", "approved=yes_no").stdout
    assert "item       request (48: " in output and "cluster    topic (24: " in output
    assert "approved by town: 3 groups, 24 clusters: finds a gap of about " in output
    assert "Not sure" not in output
    spelled = output.splitlines()[-1]
    assert spelled.startswith("fairness-pipeline audit ") and "--column item=request" in spelled

    # Where it is not sure, it asks; in CI it refuses, and prints the command.
    unsure = command("doctor", str(table), "--column", "item=request", "--column", "group=town").stdout
    assert "cluster    topic" in unsure
    monkeypatch.setenv("CI", "true")
    blind = tmp_path / "blind.csv"
    pd.read_csv(table).rename(columns={"prompt": "p", "draw": "d"}).to_csv(blind, index=False)
    refused = command("audit", str(blind), "--profile", "mine", "--column", "item=request", "--column", "group=town")
    assert refused.returncode == 1
    assert "not sure what its columns are: condition: p, d: varies within an item and a group" in refused.stderr
    assert "--column item=request" in refused.stderr and "--column 'condition=?'" in refused.stderr

    # The audit, spelled out.
    done = _audit(table, "--outcome", "approved=yes_no", "--baseline-condition", "plain")
    assert done.returncode == 0, done.stderr
    assert "Outcomes by group: decisions × plain: 1 biased" in done.stdout
    workspace = Project("mine").workspace
    report = (workspace / "reports" / "outcomes_report.html").read_text()
    for text in (
        "approved by town",
        "Changes since plain",
        "Rates of all rows",
        "below 4/5 shown",
        "No gate looks at this table",
    ):
        assert text in report
    assert report.count("<img") + report.count("data:image/png") >= 3
    rows = json.loads(command("results", "--profile", "mine", "--format", "json").stdout)
    biased = [row for row in rows if row["contrast"] == "any group" and row["condition"] == "plain"]
    assert [(row["verdict"], row["against"]) for row in biased] == [("biased", "Easttown")]
    counted = command("sql", "select count(*) as n from outcome_cells", "--profile", "mine", "--format", "csv").stdout
    assert counted.split() == ["n", str(48 * 3 * 2)]
    assert planned("--profile", "mine") == []

    # The gate closes; a change of the margin makes verdicts again, and nothing else.
    gate = command("run", "--profile", "mine", "--fail-on", "biased")
    assert gate.returncode == 3 and gate.stderr.splitlines()[-1] == "--fail-on biased: decisions plain approved by town"
    stored = workspace / "trials" / "decisions" / "table.yaml"
    change(stored, lambda document: document["outcomes"]["approved"].update(margin={"absolute": 60}))
    assert planned("--profile", "mine")
    assert command("run", "--profile", "mine", "--fail-on", "biased").returncode == 0

    # The evidence pack and the viewer.
    folder = tmp_path / "pack"
    assert command("evidence", "--profile", "mine", "--output", str(folder)).returncode == 0
    evidence = json.loads((folder / "evidence.json").read_text())
    assert {row["group"] for row in evidence["rates"]} == {"Northtown", "Southtown", "Easttown", "all groups"}
    assert "below 4/5 shown" in (folder / "evidence.html").read_text()
    assert evidence["imports"][0]["file"] == "decisions.csv.gz"
    build(Lineage(Project("mine")), Lake(workspace), tmp_path / "view")
    viewer_data = "".join(path.read_text(errors="replace") for path in (tmp_path / "view").rglob("*.js*"))
    assert "rent-1: Easttown" in viewer_data

    # A second table under the same name replaces the first; an exchanged file is refused; it can be forgotten.
    (workspace / "trials" / "decisions" / "decisions.csv.gz").write_bytes(gzip.compress(b"x\n1\n"))
    assert "not what was imported" in command("run", "--profile", "mine").stderr
    assert command("forget", "decisions", "--profile", "mine").returncode == 0
    assert not (workspace / "trials" / "decisions").exists()


def test_the_doctor_names_the_study_that_audits_a_file(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    rows = [
        f"i{item},r{rater},{'ab'[rater % 2]},{'yes' if item % 3 else 'no'}" for item in range(9) for rater in range(6)
    ]
    labels.write_text("item,rater,sex,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    output = command("doctor", str(labels)).stdout
    assert f"the study of annotator group bias:\nfairness-pipeline audit {labels}\n" in output
    assert "Audit it as a table of outcomes" in output


def test_the_doctor_asks_where_it_is_not_sure(
    mine: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = tmp_path / "blind.csv"
    pd.read_csv(table).rename(columns={"prompt": "p", "draw": "d"}).to_csv(blind, index=False)
    questions: list[str] = []

    def answer(question: str) -> str:
        questions.append(question)
        return "condition=p, draw=d"

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", answer)
    words = ("--column", "item=request", "--column", "group=town", "--outcome", "approved=yes_no")
    done = command("audit", str(blind), "--profile", "mine", "--workers", "1", *words)
    assert done.returncode == 0, done.stderr
    assert len(questions) == 1 and "As ROLE=COLUMN" in questions[0]
    assert "Not sure about the condition: p, d: varies within an item and a group" in done.stdout
    assert "blind × instructed" in done.stdout

    # The same table a month later, with a larger gap: the change is tested over the same items.
    monkeypatch.setenv("CI", "true")
    later = pd.read_csv(blind)
    later.loc[(later.town == "Easttown") & (later.p == "instructed"), "approved"] = 0
    later.to_csv(blind, index=False)
    words = (*words, "--column", "condition=p", "--column", "draw=d")
    done = command("audit", str(blind), "--profile", "mine", "--workers", "1", *words, "--baseline", "previous")
    assert "blind × instructed approved by town: inconclusive -> biased; the gap grew by" in done.stdout, done.stdout


def test_a_table_of_a_profile(mine: Path, data: Path, table: Path) -> None:
    (data / "tables").mkdir()
    declared = {
        "file": {"path": str(table)}, "item": "request", "cluster": "topic", "group": ["town"], "draw": "draw",
        "where": {"prompt": "plain"}, "outcomes": {"approved": {"kind": "yes_no"}},
    }  # fmt: skip
    write_yaml(data / "tables" / "mine.yaml", declared)
    change(mine, lambda profile: profile.update(outcomes={"tables": {"mine": {"reference": {"town": "Northtown"}}}}))
    run("--profile", "mine")
    rows = json.loads(command("results", "--profile", "mine", "--format", "json").stdout)
    assert {row["against"] for row in rows if row["contrast"] == "reference"} == {"Northtown"}
    assert {row["condition"] for row in rows} == {"all"}
    # Another file is another table.
    table.write_bytes(gzip.compress(gzip.decompress(table.read_bytes()).replace(b"Easttown", b"Westtown")))
    assert any(line.startswith("outcome_cells mine all") for line in planned("--profile", "mine"))
    for wrong, message in (
        ({"item": "nothing"}, "item: there is no column 'nothing'"),
        ({"group": []}, "'group' is missing"),
    ):
        write_yaml(data / "tables" / "mine.yaml", {**declared, **wrong})
        change(mine, lambda profile: profile.update(outcomes={"tables": {"mine": {}}}))
        failed = command("run", "--profile", "mine")
        assert failed.returncode == 1 and message in failed.stderr + failed.stdout


def test_decisions_without_items_have_rates_alone(mine: Path, tmp_path: Path) -> None:
    path = tmp_path / "hires.csv"
    rows = [("man", n < 585) for n in range(1000)] + [("woman", n < 251) for n in range(1000)]
    path.write_text("sex,hired\n" + "".join(f"{sex},{int(hired)}\n" for sex, hired in rows))
    done = command("audit", str(path), "--profile", "mine", "--column", "group=sex", "--outcome", "hired=yes_no")
    assert done.returncode == 0, done.stderr
    report = (Project("mine").workspace / "reports" / "outcomes_report.html").read_text()
    assert "25.1%" in report and "0.43" in report and "below 4/5 shown" in report
