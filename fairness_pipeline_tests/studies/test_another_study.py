"""A study is one folder and one name: runs a toy one from the tests' folder through all that studies share."""

import json
import re
from pathlib import Path

import dagster as dg
import pytest

from fairness_pipeline import studies
from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.project import study
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import STUDIES
from fairness_pipeline_tests.commands import change, command, planned, run
from fairness_pipeline_tests.conftest import write_yaml

PACKAGE = Path(study.__file__).parents[1]


@pytest.fixture
def toy(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Adds the toy study's folder and name to the others, and a profile of it."""
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(Path(__file__).parent)])
    monkeypatch.setattr(study, "STUDIES", (*STUDIES, "toy"))
    monkeypatch.setenv("FAIRNESS_PROFILE", "dice")
    return write_yaml(
        data / "profiles" / "dice.yaml",
        {
            "description": "d", "seed": 1, "dimensions": ["gender"],
            "toy": {"dice": {"fair": {}, "loaded": {"shift": 0.5}}},
        },
    )  # fmt: skip


def test_another_study(toy: Path) -> None:
    # Run, the table of verdicts, the report.
    done = run()
    assert "5 made" in done.stdout
    assert "Toy, profile dice" in done.stdout
    assert "left hand − right hand" in done.stdout
    report = Project("dice").workspace / "reports" / "toy_report.html"
    assert f"Report: {report}" in done.stdout
    assert command("report").stdout.splitlines() == [str(report.with_name("index.html")), str(report)]
    assert "loaded: 0." in report.with_name("index.html").read_text()
    page = report.read_text()
    assert "gender × loaded: biased" in page
    assert "gender × fair: biased" not in page
    assert planned() == []
    assert "first run" in report.with_name("index.html").read_text()
    assert "no pairs to show" in command("view").stderr  # the study has nothing for the viewer

    # Results, SQL, the gate.
    rows = json.loads(command("results", "--format", "json").stdout)
    assert {(row["dimension"], row["die"], row["measure"]) for row in rows} == {
        ("gender", "fair", "eyes"), ("gender", "loaded", "eyes")
    }  # fmt: skip
    assert [row["die"] for row in json.loads(command("results", "--model", "loaded", "--format", "json").stdout)] == [
        "loaded"
    ]
    counted = command("sql", "select count(*) as n from rolls where die = 'fair'", "--format", "csv").stdout
    assert counted.split() == ["n", "2000"]
    gate = command("run", "--fail-on", "biased")
    assert (gate.returncode, gate.stderr.splitlines()[-1]) == (3, "--fail-on biased: gender loaded eyes")
    assert command("run", "--fail-on", "biased", "--model", "fair").returncode == 0

    # A change makes its own partitions stale, and is marked until they are made.
    change(toy, lambda profile: profile["toy"]["dice"]["loaded"].update(shift=0.0))
    assert planned() == ["rolls loaded", "toy_significance gender loaded", "toy_report"]
    stale = {row["die"]: row["stale"] for row in json.loads(command("results", "--format", "json").stdout)}
    assert stale == {"fair": False, "loaded": True}
    assert "stale (made with other settings" in command("results").stderr
    assert command("report").returncode == 0
    assert report.with_name("index.html").read_text().count("<b>Out of date:</b> gender.") == 1
    filtered = command("sql", "select distinct die from rolls", "--format", "csv")
    assert filtered.stdout.split() == ["die", "fair"]
    assert "left out (stale, or no longer in the profile): rolls loaded; --all shows them" in filtered.stderr
    everything = command("sql", "select distinct die from rolls order by 1", "--all", "--format", "csv")
    assert everything.stdout.split() == ["die", "fair", "loaded"]
    run()

    # History, and what the study adds to the command.
    changes = json.loads(command("results", "--against", "previous", "--format", "json").stdout)
    assert [row["die"] for row in changes] == ["loaded"]  # the other one did not turn
    index = report.with_name("index.html").read_text()
    assert f": biased → {changes[0]['verdict_now']}</div>" in index
    assert "Out of date" not in index
    assert index.count("nothing turned") == 1
    assert command("roll", "--die", "fair").stdout == "fair shows 4\n"
    for wrong, message in ((("--model", "x"), "unknown model 'x' in profile 'dice'; known: fair, loaded"),
                        (("--study", "dialogue_fairness"), "unknown study 'dialogue_fairness'"),
                        (("--select", "x"), "unknown asset 'x'; known: rolls, toy_significance, toy_report")):  # fmt: skip
        assert message in command("run", *wrong).stderr

    # What the UI loads.
    defs = definitions(Project("dice"))
    dg.Definitions.validate_loadable(defs)
    nodes = {node.key.to_user_string(): node for node in defs.get_repository_def().asset_graph.asset_nodes}
    assert {node.group_name for node in nodes.values()} == {"toy", "files"}
    keys = nodes["toy_significance"].partitions_def.get_partition_keys()
    assert set(map(str, keys)) == {"fair|gender", "loaded|gender"}


def test_nothing_outside_the_studies_names_one() -> None:
    """Except the tuple `STUDIES`. (`outcomes` is also a plain word, and the folder of that study's measures.)"""
    named = re.compile("|".join(name if "_" in name else rf"studies[./]{name}" for name in STUDIES))
    mentions = {
        str(path.relative_to(PACKAGE)): lines
        for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2")])
        if "studies" not in path.relative_to(PACKAGE).parts
        and (lines := [line for line in path.read_text(encoding="utf-8").splitlines() if named.search(line)])
    }
    assert list(mentions) == ["project/study.py"]
    assert all(f'"{name}"' in "".join(mentions["project/study.py"]) for name in STUDIES)
