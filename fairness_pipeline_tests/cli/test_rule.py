"""The rule that a gate applied, and the rule that somebody demands."""

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fairness_pipeline.cli.rule import requirement
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.version_control import tracked_file
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.rule import Gate, Rule
from fairness_pipeline_tests.commands import change, command

PASSED = Gate(refused=("biased",), measures=None, tolerated=0.0, strict=False, status=0, verdicts=9, not_as_shipped={})


@pytest.mark.parametrize(
    ("gate", "demanded", "lacks"),
    [
        ({}, "fail-on=biased", []),
        ({"verdicts": 0}, "fail-on=biased", ["it judged no verdict, or its record does not say how many"]),
        ({"refused": ()}, "fail-on=biased", ["no gate was asked"]),
        ({"status": 3}, "fail-on=biased", ["the gate was closed (exit status 3)"]),
        ({}, "fail-on=biased,inconclusive", ["it did not close on inconclusive"]),
        ({"refused": ("biased", "inconclusive")}, "fail-on=biased", []),
        ({"measures": "offense_rate"}, "fail-on=biased", ["it looked at offense_rate only"]),
        ({"measures": "offense_rate"}, "fail-on=biased; measures=offense_rate", []),
        ({"measures": "offense_rate, length"}, "fail-on=biased; measures=length", []),
        ({"measures": "offense_rate"}, "fail-on=biased; measures=length", ["it looked at offense_rate only"]),
        ({}, "fail-on=biased; measures=length", []),
        ({"tolerated": 100.0}, "fail-on=biased", ["it tolerated 100 points"]),
        ({"tolerated": 2.0}, "fail-on=biased; tolerate=3", []),
        ({}, "fail-on=biased; strict", ["it did not refuse verdicts without power (strict)"]),
        ({"strict": True}, "fail-on=biased; strict", []),
        ({"not_as_shipped": {"x.alpha": "0.9 (shipped 0.05)"}}, "fail-on=biased; margins=own", []),
        (
            {"not_as_shipped": {"x.alpha": "0.9 (shipped 0.05)"}},
            "fail-on=biased",
            ["Margins, levels or thresholds not as shipped: x.alpha 0.9 (shipped 0.05)"],
        ),
        ({"not_as_shipped": None}, "fail-on=biased", ["its record names no margins"]),
    ],
)
def test_a_gate_is_held_to_the_rule_that_is_demanded(gate: dict, demanded: str, lacks: list[str]) -> None:
    assert list(requirement(demanded).lacks(PASSED.model_copy(update=gate))) == lacks


@pytest.mark.parametrize(
    "rule", [Rule(), Rule(("biased", "names"), "a,b", 2.5, True), Rule(("worse",), None, 0.0, True)]
)
def test_the_text_of_a_rule_demands_that_rule(rule: Rule) -> None:
    assert requirement(rule.text).rule == rule


@pytest.mark.parametrize(
    "demanded", ["", "biased", "fail-on=bised", "fail-on=biased; margin=own", "fail-on=biased; tolerate=x", "strict",
                 "fail-on=biased; margins=any", "fail-on=biased; strict=no", "fail-on=biased; tolerate=nan", "fail-on=biased; tolerate=-3",
                 "fail-on=biased; fail-on=worse", "fail-on=biased; measures=", "fail-on=biased; margins as shipped"]
)  # fmt: skip
def test_malformed_rules_are_refused(demanded: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        requirement(demanded)


def test_margins_of_a_profile_are_shown_wherever_verdicts_are(made: Project, data: Path) -> None:
    """Wide margins turn every difference into `fair`."""
    path = data / "profiles" / "tiny.yaml"
    change(path, lambda profile: profile["dialogue_fairness"].setdefault("significance", {}).update(
        margins={"rates": {"cohens_h": 3.0}}
    ))  # fmt: skip
    done = command("run", "--fail-on", "biased")
    margin = "significance.margins.rates cohens_h 3 (shipped cohens_h 0.05)"
    text = " ".join((done.stdout + done.stderr).split())
    assert f"Margins, levels or thresholds not as shipped: {margin}" in text
    assert re.search(
        rf"Rule: fail-on=biased Margins and levels: .* Margins, levels or thresholds not as shipped: dialogue_fairness\.{re.escape(margin)}",
        text,
    )
    assert margin in (made.workspace / "reports" / "dialogue_fairness_report.html").read_text()


@pytest.mark.skipif(shutil.which("git") is None, reason="no Git here")
def test_a_gate_takes_no_verdicts_from_a_checkout(made: Project, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path / "home"), *arguments], check=True, capture_output=True)

    git("init")
    assert tracked_file(made.workspace) is None  # the checkout does not track what a run has written
    assert command("run", "--fail-on", "biased").returncode in (0, 3)
    (made.workspace / "core").write_text("")
    git("config", "core.fsmonitor", f"touch {tmp_path / 'run'}; false")
    git("add", "-f", "tiny/tables")
    refused = command("run", "--fail-on", "biased")
    assert refused.returncode == 1
    assert re.search(
        r"tiny: tables/.* is under version control, .* set FAIRNESS_HOME to a folder outside", refused.stderr
    )
    assert command("run").returncode == 0
    (tmp_path / "run").unlink(missing_ok=True)  # `git add` has called it
    tracked_file(made.workspace)
    assert not (tmp_path / "run").exists()


def test_a_checkout_that_git_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracked_file(tmp_path / "none") is tracked_file(tmp_path) is None
    (tmp_path / ".git").mkdir()
    with pytest.raises(FairnessError, match=r"in a checkout, and Git cannot tell .*; set FAIRNESS_HOME to a folder"):
        tracked_file(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FairnessError, match="in a checkout, and Git cannot tell"):
        tracked_file(tmp_path)
