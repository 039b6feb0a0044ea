"""The readers' labels of real pairs, and what is counted of them."""

from collections import Counter

import pytest

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.lexicons.pair_errors import Errors, Label, errors, labels

DIMENSIONS = ("gender", "dialect", "race", "religion1", "religion2", "orientation")
KINDS = {"sense", "name", "grammar", "half", "other_group", "meaning"}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_labels_are_whole(dimension: str) -> None:
    own = labels(dimension)
    assert Counter(label.set for label in own.values()) in ({"dev": 120, "test": 300}, {"dev": 120, "test": 299})
    for label in own.values():
        assert label.label in ("right", "wrong", "unsure")
        assert (label.kind in KINDS) == (label.label == "wrong"), label


def test_what_is_counted() -> None:
    names = [("c", str(number), "x") for number in range(5)]
    said = ("right", "right", "wrong", "wrong", "unsure")
    labelled = {name: Label("test", label, "") for name, label in zip(names, said, strict=True)}
    labelled["c", "6", "x"] = Label("dev", "wrong", "sense")
    assert errors(labelled, {names[0], names[2], names[4]}, "test") == Errors(made=2, wrong=1, lost=1, right=2)


def test_every_dimension_of_the_profile_has_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRNESS_CORPORA", "/not/read")
    assert set(Project("real").dimensions) == set(DIMENSIONS)
