"""Fixtures of the tests of studies."""

from pathlib import Path

import pytest

from fairness_pipeline_tests.conftest import write_yaml


@pytest.fixture
def mine(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The profile `mine`, which takes part in the study of outcomes alone."""
    monkeypatch.setenv("FAIRNESS_PROFILE", "mine")
    return write_yaml(data / "profiles" / "mine.yaml", {"description": "d", "seed": 1, "outcomes": {}})
