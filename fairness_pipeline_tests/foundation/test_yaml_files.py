"""Keys that had another name are still read."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import load
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


def test_the_command_says_so_without_a_line_of_code(tiny: Project, data: Path) -> None:
    profile = yaml.safe_load(tiny.path.read_text(encoding="utf-8"))
    own = profile["dialogue_fairness"]
    own["alike"] = own.pop("max_identical_share")
    tiny.path.write_text(yaml.safe_dump(profile), encoding="utf-8")
    words = [sys.executable, "-m", "fairness_pipeline.cli", "run", "--dry-run", "--profile", tiny.name]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0
    said = f"fairness-pipeline: {tiny.path}: 'alike' is now called 'max_identical_share'; please rename it"
    assert done.stderr.splitlines() == [said]


def test_an_error_in_a_renamed_key_names_its_line(tmp_path: Path) -> None:
    path = section(tmp_path, alike=8)
    with pytest.warns(FutureWarning), pytest.raises(FairnessError, match=r"section.yaml, line 1: max_identical_share"):
        load(SentimentEquity, path)
