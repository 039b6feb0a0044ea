"""action.yml and templates/audit.yml: their shell commands, run by a shell as a runner runs them."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.cli.test_first_impression import bot, quick, rude
from fairness_pipeline_tests.local_server import serve
from fairness_pipeline_tests.test_docs import blocks

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SPEC, TEMPLATE = yaml.safe_load_all((ROOT / "templates" / "audit.yml").read_text(encoding="utf-8"))
__all__ = ["quick"]


def shell(lines: str, home: Path, **given: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", lines], cwd=home, env=os.environ | {"PATH": path} | given, capture_output=True, text=True
    )  # fmt: skip


def audit_step() -> dict[str, Any]:
    return next(step for step in ACTION["runs"]["steps"] if step.get("id") == "audit")


@pytest.mark.kills
def test_the_step_of_github_audits_and_tells(quick: Project, tmp_path: Path) -> None:
    step = audit_step()
    assert set(step["env"]) == {"MODEL", "DIMENSION", "FAIL_ON", "MEASURES", "FURTHER", "FAIRNESS_HOME"}
    home = tmp_path / "checkout"
    home.mkdir()
    given = {"DIMENSION": "gender", "MEASURES": "offense_rate", "FAIRNESS_HOME": str(home / "fairness")}
    with serve(bot(rude)) as address:
        further = "--name\nour bot; touch pwned\n--workers\n1\n"  # words stay words
        wrong = shell(step["run"], home, MODEL=f"{address}/v1", FAIL_ON="biased", FURTHER=further, **given)
        assert wrong.returncode == 1
        assert "--name" in wrong.stderr
        further = "--name\nour-bot\n--workers\n1\n"
        done = shell(step["run"], home, MODEL=f"{address}/v1", FAIL_ON="biased", FURTHER=further, **given)
        assert done.returncode == 3, done.stderr
        again = shell(
            step["run"], home, MODEL=f"{address}/v1", FAIL_ON="", FURTHER=further, **(given | {"MEASURES": ""})
        )
        assert again.returncode == 0, again.stderr
    assert not list(home.rglob("pwned"))
    told = ACTION["runs"]["steps"][3]["run"]
    summary = tmp_path / "summary.md"
    assert shell(told, home, GITHUB_STEP_SUMMARY=str(summary)).returncode == 0
    assert "## Fairness, profile audit" in summary.read_text(encoding="utf-8")
    kept = ACTION["runs"]["steps"][-1]["with"]["path"]
    assert (home / kept / "index.html").is_file()


@pytest.mark.kills
def test_the_component_of_gitlab_audits_and_tells(quick: Project, tmp_path: Path) -> None:
    home = tmp_path / "checkout"
    home.mkdir()
    job = TEMPLATE["fairness"]
    inputs = {name: own.get("default", "") for name, own in SPEC["spec"]["inputs"].items()}
    with serve(bot(rude)) as address:
        inputs |= {"model": f"{address}/v1", "dimension": "gender", "measures": "offense_rate"}
        variables = {
            name: re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: inputs[found[1]], value).replace(
                "$CI_PROJECT_DIR", str(home)
            )
            for name, value in job["variables"].items()
        }
        done = shell("\n".join(job["script"]), home, **variables)
    assert done.returncode == 3, done.stderr
    assert ET.parse(home / job["artifacts"]["reports"]["junit"]).getroot().findall(".//failure")
    summary, reports = job["artifacts"]["paths"]
    assert (home / summary).is_file()
    assert (home / reports / "index.html").is_file()


def test_no_input_stands_in_a_shell_command() -> None:
    """An input in a command would be run as a command; they come as variables of the environment."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    for line in (*TEMPLATE["fairness"]["script"], *TEMPLATE["fairness"]["before_script"]):
        assert "$[[" not in line
    assert set(SPEC["spec"]["inputs"]) >= {"model", "fail_on", "measures", "dimension"}


def test_the_examples_name_inputs_that_are_there() -> None:
    page = ROOT / "docs" / "audit-your-model.md"
    github, gitlab = (
        yaml.safe_load(body) for language, body in blocks(page) if language == "yaml" and re.match(r"# \.git", body)
    )
    step = github["jobs"]["fairness"]["steps"][-1]
    required = {name for name, own in ACTION["inputs"].items() if own.get("required")}
    assert required <= set(step["with"]) <= set(ACTION["inputs"])
    (component,) = gitlab["include"]
    assert {"model"} <= set(component["inputs"]) <= set(SPEC["spec"]["inputs"])
