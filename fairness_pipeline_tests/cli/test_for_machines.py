"""Output for build servers: each verdict once, a failure where the gate closes, and no text that runs or fetches anything."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from fairness_pipeline.cli.for_machines import _clean, _plain
from fairness_pipeline.measures.dialogue.registry import is_part
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.commands import change, command


def test_verdicts_as_tests_and_as_markdown(made: Project, tmp_path: Path) -> None:
    junit, summary = tmp_path / "verdicts.xml", tmp_path / "verdicts.md"
    files = ("--junit", str(junit), "--summary", str(summary))
    assert command("run", *files).returncode == 0
    ungated = ET.parse(junit).getroot()
    assert not ungated.findall(".//failure")
    assert "gate" not in summary.read_text(encoding="utf-8")

    done = command("run", "--fail-on", "biased,inconclusive", *files)
    assert done.returncode == 3
    assert f"Written: {junit}, {summary}" in done.stdout
    (suite,) = ET.parse(junit).getroot()
    tests = {(test.get("classname"), test.get("name")): test for test in suite}
    rows = json.loads(command("results", "--format", "json").stdout)
    measures = {name for name in made.parts["dialogue_fairness"].measures() if not is_part(name)}
    expected = {
        (f"dialogue_fairness.{row['dimension']}.{row['model']}", row["measure"]): row["verdict"]
        for row in rows
        if row["measure"] in measures
    }
    assert {key for key in tests if key[1] != "audit"} == set(expected)
    failed = {key for key, test in tests.items() if test.find("failure") is not None}
    closing = done.stderr.splitlines()[-1].removeprefix("--fail-on biased,inconclusive: ").split(", ")
    assert len(failed) == len(closing) == int(suite.get("failures", "0"))
    assert {expected[key] for key in failed} <= {"biased", "inconclusive"}
    assert int(suite.get("tests", "0")) == len(suite)
    markdown = summary.read_text(encoding="utf-8")
    assert "**The gate (biased, inconclusive) is closed** by gender seq2seq" in markdown
    assert "| dimension | model |" in markdown


def test_what_was_not_measured_is_skipped(made: Project, tmp_path: Path) -> None:
    junit = tmp_path / "verdicts.xml"
    change(made.path, lambda profile: profile["dialogue_fairness"].update(max_identical_share=0.0001))
    assert command("run", "--junit", str(junit)).returncode == 0
    skipped = ET.parse(junit).getroot().findall(".//skipped")
    assert len(skipped) == 2
    assert all("%" in (element.get("message") or "") for element in skipped)


def test_options_are_checked_before_hours_of_work(tiny: Project, tmp_path: Path) -> None:
    refused = command("run", "--junit", str(tmp_path / "none" / "x.xml"))
    assert (refused.returncode, "--junit: there is no folder" in refused.stderr) == (1, True)
    refused = command("run", "--summary", str(tmp_path / "x.md"), "--select", "contexts")
    assert "--summary writes verdicts, but --select may produce none" in refused.stderr


def test_text_of_models_is_escaped() -> None:
    assert _plain("<img src=x> [a](http://x) **b** `c`\n# d | @octocat") == (
        "\\<img src=x\\> \\[a\\](http://x) \\*\\*b\\*\\* \\`c\\` \\# d \\| @\u200boctocat"
    )
    element = ET.Element("failure", message=_clean('a\x00b\x1b[31m \ud800 <&>"'))
    assert ET.fromstring(ET.tostring(element)).get("message") == 'a\ufffdb\ufffd[31m \ufffd <&>"'
