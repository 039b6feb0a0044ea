"""Renamed keys are still read; files that would fill the memory are refused."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import load, read_yaml
from fairness_pipeline.project.project import Project
from fairness_pipeline.studies.sentiment_equity.profile import SentimentEquity


def section(tmp_path: Path, **keys: object) -> Path:
    path = tmp_path / "section.yaml"
    path.write_text(yaml.safe_dump({"systems": {"vader": {}}, **keys}), encoding="utf-8")
    return path


def test_an_older_name_is_read_and_the_new_one_is_named(tmp_path: Path) -> None:
    path = section(tmp_path, alike=0.8)
    with pytest.warns(FutureWarning, match=f"{path}: 'alike' is now called 'max_identical_share'; please rename it"):
        assert load(SentimentEquity, path).max_identical_share == 0.8
    with pytest.raises(FairnessError, match="unknown key 'alike'"):
        load(SentimentEquity, section(tmp_path, alike=0.8, max_identical_share=0.9))  # which of the two is meant?


def test_the_command_warns_of_an_older_name_without_a_line_of_code(tiny: Project, data: Path) -> None:
    profile = yaml.safe_load(tiny.path.read_text(encoding="utf-8"))
    settings = profile["dialogue_fairness"]
    settings["alike"] = settings.pop("max_identical_share")
    tiny.path.write_text(yaml.safe_dump(profile), encoding="utf-8")
    arguments = [sys.executable, "-m", "fairness_pipeline.cli", "run", "--dry-run", "--profile", tiny.name]
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert result.returncode == 0
    warning = f"fairness-pipeline: {tiny.path}: 'alike' is now called 'max_identical_share'; please rename it"
    assert result.stderr.splitlines() == [warning]


def test_an_error_in_a_renamed_key_names_its_line(tmp_path: Path) -> None:
    path = section(tmp_path, alike=8)
    with pytest.warns(FutureWarning), pytest.raises(FairnessError, match=r"section.yaml, line 1: max_identical_share"):
        load(SentimentEquity, path)


@pytest.mark.parametrize("form", ["[*{0}, *{0}, *{0}, *{0}]", "{{<<: [*{0}, *{0}, *{0}, *{0}], k{1}: *{0}}}"])
def test_aliases_that_expand_to_more_than_any_file_holds_are_refused(tmp_path: Path, form: str) -> None:
    names = [f"a{number}" for number in range(30)]
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"{name}: &{name} " + form.format(previous, name) for previous, name in itertools.pairwise(names)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(FairnessError, match=r"bomb.yaml.*line \d+: its aliases expand to more than 100,000 values"):
        read_yaml(path)


def test_aliases_within_reason_are_read(tmp_path: Path) -> None:
    path = tmp_path / "fine.yaml"
    path.write_text("a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n", encoding="utf-8")
    assert read_yaml(path) == {"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}], "c": {"x": 1, "y": 2}}
