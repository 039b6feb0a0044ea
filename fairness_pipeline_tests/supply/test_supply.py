"""Pins, hashes, licences, and advisories that could not be looked up."""

import json
import re
import subprocess
import tomllib
import venv
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fairness_pipeline_tests.supply.advisories import FINE, UNKNOWN, WEAK, judged
from fairness_pipeline_tests.supply.lock import ROOT, locked

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def name_of(text: str) -> str:
    """A name in the form in which PyPI compares names."""
    return re.sub(r"[-_.]+", "-", text).lower()


def pins(text: str) -> dict[str, str]:
    matches = re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)
    return {name_of(name): pin for name, pin in matches}


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-run.txt"])
def test_every_pin_is_locked_with_hashes(name: str) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    locked_pins = pins(lock)
    if name == "requirements.txt":
        assert constraints.items() <= locked_pins.items(), constraints.items() - locked_pins.items()
    else:
        assert {
            package: pin for package, pin in locked_pins.items() if package in constraints
        }.items() <= constraints.items()
        assert {"hatchling", "cryptography", "ray", "dagster-k8s", "torch"} <= locked_pins.keys()
        assert not {"pytest", "mypy", "mkdocs"} & locked_pins.keys()
    for entry in re.split(r"\n(?=[\w#])", lock):
        assert entry.startswith("#") or re.search(r"--hash=sha256:[0-9a-f]{64}(\s|$)", entry), entry[:80]
    assert "nvidia" not in lock


def test_what_is_installed_is_what_is_locked() -> None:
    lock = pins((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    extras = [line for name, extra in EXTRAS.items() if name != "kubernetes" for line in extra]
    for requirement in map(Requirement, extras):
        if name_of(requirement.name) != "fairness-pipeline":
            assert version(requirement.name).split("+")[0] == lock[name_of(requirement.name)], requirement


def test_cuda_is_left_out() -> None:
    compiled = (
        "numpy==2.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via torch\n"
        "nvidia-cublas==13 ; sys_platform == 'linux' \\\n    --hash=sha256:cc\n"
        "torch==2.13.0 \\\n    --hash=sha256:dd\n"
        "triton==3 \\\n    --hash=sha256:ee\n"
    )
    numpy, torch = locked(compiled, "for a test").split("\n", 1)[1].split("torch")
    assert numpy == "numpy==2.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
    assert torch == "==2.13.0 \\\n    --hash=sha256:dd\n"


def report(*dependencies: dict[str, object]) -> str:
    """A report as pip-audit 2.10 writes it."""
    return json.dumps({"dependencies": list(dependencies), "fixes": []})


def test_what_could_not_be_looked_up_is_no_pass() -> None:
    sound = {"name": "a", "version": "1", "vulns": []}
    weak = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"], "aliases": []}]}
    unseen = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (1)"}
    assert judged(report(sound), "") == (FINE, ["1 of 1 packages looked up, 0 weaknesses known"])
    status, lines = judged(report(sound, weak, unseen), "")
    assert status == WEAK
    assert lines == [
        "b 2: PYSEC-1, mended in 3",
        "2 of 3 packages looked up, 1 weaknesses known",
        "not known for 1, such as c: is this machine offline?",
    ]
    assert judged(report(sound, unseen), "")[0] == UNKNOWN
    assert judged(report(), "")[0] == UNKNOWN
    status, lines = judged("", "ERROR: x\nConnectionError: no route")
    assert status == UNKNOWN and "offline? (ConnectionError: no route)" in lines[0]


def test_each_folder_of_data_says_whose_it_is() -> None:
    licences = (ROOT / "data" / "LICENCES.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in licences.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w]+)`", row[1])}
    tracked = subprocess.run(["git", "ls-files", "data"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert named == {file.split("/")[1] for file in tracked if file.count("/") > 1}
    assert all(len(row) == 6 and all(cell.strip() for cell in row[1:5]) for row in rows)


@pytest.mark.verify
@pytest.mark.parametrize("extra", [None, *sorted(set(EXTRAS) - {"dev"})])
def test_each_extra_installs_alone(tmp_path: Path, extra: str | None) -> None:
    """With the pins, in an empty environment; the tests themselves run with `dev`, which has all extras."""
    venv.create(tmp_path / "own", with_pip=True)
    python = tmp_path / "own" / "bin" / "python"
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    words = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", target]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for check in (["-m", "pip", "check"], ["-m", "fairness_pipeline.cli", "--version"]):
        done = subprocess.run([python, *check], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
