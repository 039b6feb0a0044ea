"""The shell commands of action.yml and templates/audit.yml, run as a runner runs them."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.cli.test_first_impression import quick, rude
from fairness_pipeline_tests.local_server import chat, serve
from fairness_pipeline_tests.test_docs import blocks

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SPEC, _TEMPLATE = yaml.safe_load_all((ROOT / "templates" / "audit.yml").read_text(encoding="utf-8"))
(JOB,) = _TEMPLATE.values()
KEY = "ENDPOINT_KEY_OF_AUDIT"
__all__ = ["quick"]


def shell(lines: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", lines], cwd=home, env=os.environ | {"PATH": path} | environment, capture_output=True, text=True
    )  # fmt: skip


def audit_step() -> dict[str, Any]:
    return next(step for step in ACTION["runs"]["steps"] if step.get("id") == "audit")


def filled(text: str, values: dict[str, str]) -> str:
    """Returns a text with its variables replaced, as a runner does."""
    for name, value in values.items():
        text = text.replace(name, value)
    assert "$" not in text
    return text


def variables_of_gitlab(folder: Path, **inputs: str) -> dict[str, str]:
    defaults = {
        name: specification.get("default", "") for name, specification in SPEC["spec"]["inputs"].items()
    } | inputs
    values = {f"$[[ inputs.{name} ]]": value for name, value in defaults.items()}
    values |= {"$CI_PROJECT_DIR": f"{folder}/checkout", "$CI_BUILDS_DIR": f"{folder}/builds", "$CI_JOB_ID": "1"}
    return {name: filled(value, values) for name, value in JOB["variables"].items()}


@pytest.mark.verify
def test_the_step_of_github_audits_and_reports(quick: Project, tmp_path: Path) -> None:
    step = audit_step()
    assert set(step["env"]) == {"MODEL", KEY, "DIMENSION", "FAIL_ON", "STRICT", "MEASURES", "FURTHER", "FAIRNESS_HOME"}
    home = tmp_path / "checkout"
    home.mkdir()
    temporary = {"${{ runner.temp }}": str(tmp_path / "temporary")}
    home_variable = {"FAIRNESS_HOME": filled(step["env"]["FAIRNESS_HOME"], temporary)}
    environment = {"DIMENSION": "gender", "MEASURES": "offense_rate", "STRICT": "false", KEY: "k3y"} | home_variable
    keys: list[str | None] = []
    base = tmp_path / "temporary" / "fairness" / "base"

    def handle(request: BaseHTTPRequestHandler) -> None:
        keys.append(request.headers["Authorization"])
        chat(rude)(request)

    with serve(handle) as address:
        further = "--name\nour bot; touch pwned\n--workers\n1\n"  # nothing of it is run
        wrong = shell(step["run"], home, MODEL=f"{address}/v1", FAIL_ON="biased", FURTHER=further, **environment)
        assert wrong.returncode == 1
        assert "--name" in wrong.stderr
        further = "--name\nour-bot\n--workers\n1\n"
        done = shell(step["run"], home, MODEL=f"{address}/v1", FAIL_ON="biased", FURTHER=further, **environment)
        assert done.returncode == 3, done.stderr
        assert set(keys) == {"Bearer k3y"}
        worse = {"MODEL": f"{address}/v1", "FAIL_ON": "worse", "FURTHER": further} | environment
        assert shell(step["run"], home, **worse).returncode == 3  # no baseline yet: every finding counts
        base.mkdir()
        (base.parent / "baseline.json").rename(base / "baseline.json")
        known = shell(step["run"], home, **worse)
        assert (known.returncode, "Compared with baseline.json, made" in known.stdout) == (0, True), known.stderr
    assert not list(home.rglob("pwned"))
    assert not list(home.iterdir())
    summary_step, comment_step, upload_step, baseline_step = ACTION["runs"]["steps"][4:]
    assert summary_step["env"] == {"FAIRNESS_HOME": step["env"]["FAIRNESS_HOME"]}
    summary = tmp_path / "summary.md"
    assert shell(summary_step["run"], home, GITHUB_STEP_SUMMARY=str(summary), **home_variable).returncode == 0
    text = summary.read_text(encoding="utf-8")
    assert "## Fairness, profile audit" in text and "### Before and now, compared with baseline.json" in text
    assert comment_step["env"]["FAIRNESS_HOME"] == step["env"]["FAIRNESS_HOME"]
    marked = "<!-- fairness-pipeline: fairness -->\n" + text
    for earlier, call in (("", "POST repos/o/r/issues/7/comments"), ("41", "PATCH repos/o/r/issues/comments/41")):
        server = f"""gh() {{ if [ "$2" = --paginate ]; then echo "{earlier}"; else echo "$3 $4"; cat "${{6#body=@}}"; fi; }}\n"""
        written = shell(server + comment_step["run"], home, NUMBER="7", GH_REPO="o/r", NAME="fairness", **home_variable)
        assert written.stdout == f"{call}\n{marked}", written.stderr
    reports, pairs = (Path(filled(path, temporary)) for path in upload_step["with"]["path"].splitlines())
    assert (reports / "index.html").is_file() and (pairs / "index.html").is_file()
    assert Path(filled(baseline_step["with"]["path"], temporary)).is_file()


def test_what_is_fetched_is_pinned() -> None:
    """Actions by commit, libraries by hash; the one exception is listed here."""
    page = (ROOT / "docs" / "audit-your-model.md").read_text(encoding="utf-8")
    actions = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
    actions += [name for name in re.findall(r"uses: (\S+)", page) if not name.startswith("./")]
    assert len(actions) == 4
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in actions)
    installs = re.findall(r"pip install (.*)", (ROOT / "templates" / "install.sh").read_text(encoding="utf-8"))
    assert [line for line in installs if "--require-hashes" not in line] == ['--no-build-isolation "$clone"']
    commands = [*JOB["before_script"], *(step.get("run", "") for step in ACTION["runs"]["steps"])]
    assert sum("templates/install.sh" in line for line in commands) == 2
    assert not any("pip install" in line for line in commands)


def test_the_baseline_is_the_base_branchs_and_never_the_pull_requests(tmp_path: Path) -> None:
    """Runs of pushes to the base branch, the newest first, until one has left a baseline."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "baseline")
    home, fairness_home = tmp_path / "checkout", tmp_path / "temporary"
    (home / "fairness").mkdir(parents=True)
    (home / "baseline.json").write_text("forged", encoding="utf-8")
    server = """gh() {
        echo "$*" >> "$CALLS"
        if [ "$2" = list ]; then printf '9:c9\\n8:tag\\n7:c7\\n'; return; fi
        if [ "$1" = api ]; then case "$2" in *tag) echo diverged ;; *) echo behind ;; esac; return; fi
        if [ "$3" = 9 ]; then return 1; fi
        mkdir -p "${7}" && echo "of $3" > "${7}/baseline.json"
    }
    """
    environment = {
        "BASE": "main",
        "BASE_COMMIT": "c0",
        "GH_REPO": "o/r",
        "NAME": "fairness",
        "WORKFLOW": "o/r/.github/workflows/fair.yml@refs/pull/3/merge",
    }
    calls = tmp_path / "calls"
    done = shell(server + step["run"], home, FAIRNESS_HOME=str(fairness_home), CALLS=str(calls), **environment)
    assert done.returncode == 0, done.stderr
    assert (fairness_home / "base" / "baseline.json").read_text(encoding="utf-8") == "of 7\n"
    listing, *other_calls = calls.read_text(encoding="utf-8").splitlines()
    downloads = [call for call in other_calls if call.startswith("run download")]
    assert listing.startswith("run list --workflow fair.yml --branch main --event push --status completed")
    assert downloads == [f"run download {run} --name fairness-baseline --dir {fairness_home}/base" for run in (9, 7)]


@pytest.mark.verify
def test_the_component_of_gitlab_audits_and_reports(quick: Project, tmp_path: Path) -> None:
    home = tmp_path / "checkout"
    home.mkdir()
    script, after = ("\n".join(JOB[part]) for part in ("script", "after_script"))
    with serve(chat(rude)) as address:
        inputs = {"model": f"{address}/v1", "dimension": "gender", "measures": "offense_rate"}
        variables = variables_of_gitlab(tmp_path, **inputs)
        done = shell(script, home, **variables | {"FAIL_ON_DEFAULT_BRANCH": "true"})
        assert done.returncode == 3, done.stderr
        done = shell(script, home, **variables)  # on the default branch it leaves a baseline
        assert (done.returncode, "the gate is closed" in done.stdout) == (0, True), done.stderr
        assert not list(home.iterdir())
        assert shell(after, home, **variables).returncode == 0
        assert ET.parse(home / JOB["artifacts"]["reports"]["junit"]).getroot().findall(".//failure")
        summary, baseline, pairs, reports = JOB["artifacts"]["paths"]
        assert (home / summary).is_file() and (home / baseline).is_file()
        assert (home / reports / "index.html").is_file() and (home / pairs / "index.html").is_file()

        # A merge request: the same answers are no worse than the target branch's; without its baseline every finding counts.
        variables = variables_of_gitlab(tmp_path, fail_on="worse", **inputs) | {
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_API_V4_URL": "https://git/api/v4", "CI_PROJECT_ID": "5",
            "CI_JOB_NAME": "audit of ours", "CI_JOB_TOKEN": "t0ken", "ANSWER": str(home / baseline),
        }  # fmt: skip
        server = """curl() { echo "$*"; cp "$ANSWER" "$7"; }\n"""
        done = shell(server + script, home, **variables)
        request = "job=audit of ours https://git/api/v4/projects/5/jobs/artifacts/main/raw/fairness/baseline.json"
        assert (done.returncode, request in done.stdout, "Compared with base.json" in done.stdout) == (0, True, True)
        done = shell(server + script, home, **variables | {"ANSWER": "/nowhere"})
        assert (done.returncode, "no baseline of main" in done.stdout) == (3, True), done.stderr


def test_a_checkout_brings_neither_verdicts_nor_options(tmp_path: Path) -> None:
    home = tmp_path / "checkout"
    forged = home / "fairness" / "verdicts.md"
    forged.parent.mkdir(parents=True)
    forged.write_text("all is fair", encoding="utf-8")

    step, summary_step = audit_step(), ACTION["runs"]["steps"][4]
    fairness_home = filled(step["env"]["FAIRNESS_HOME"], {"${{ runner.temp }}": str(tmp_path / "temporary")})
    empty = dict.fromkeys((KEY, "DIMENSION", "FAIL_ON", "STRICT", "MEASURES", "FURTHER"), "")
    done = shell(step["run"], home, **empty, MODEL="--help", FAIRNESS_HOME=fairness_home)
    assert (done.returncode, "MODEL: '--help' cannot be loaded" in done.stderr) == (1, True), done.stderr
    summary = tmp_path / "summary.md"
    assert (
        shell(summary_step["run"], home, GITHUB_STEP_SUMMARY=str(summary), FAIRNESS_HOME=fairness_home).returncode == 0
    )
    assert not summary.exists()

    variables = variables_of_gitlab(tmp_path, model="--help")
    done = shell("\n".join(JOB["script"]), home, **variables)
    assert (done.returncode, "MODEL: '--help' cannot be loaded" in done.stderr) == (1, True), done.stderr
    assert shell("\n".join(JOB["after_script"]), home, **variables).returncode == 0
    assert not forged.exists()


def test_no_shell_command_holds_an_input() -> None:
    """Inputs come as environment variables; within a command they could run as code."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    for line in (line for part in ("before_script", "script", "after_script") for line in JOB[part]):
        assert "$[[" not in line
    assert set(SPEC["spec"]["inputs"]) >= {"model", "fail_on", "measures", "dimension"}


def test_the_examples_name_inputs_that_exist() -> None:
    page = ROOT / "docs" / "audit-your-model.md"
    github, gitlab = (
        yaml.safe_load(body) for language, body in blocks(page) if language == "yaml" and re.match(r"# \.git", body)
    )
    step = github["jobs"]["fairness"]["steps"][-1]
    required = {name for name, specification in ACTION["inputs"].items() if specification.get("required")}
    assert required <= set(step["with"]) <= set(ACTION["inputs"])
    (component,) = gitlab["include"]
    assert {"model"} <= set(component["inputs"]) <= set(SPEC["spec"]["inputs"])
