"""The readers' labels of real pairs, and what is counted of them."""

import os
from collections import Counter

import pytest

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.lexicons.pair_errors import Errors, Label, agreement, errors, labels, made_pairs

DIMENSIONS = ("gender", "dialect", "race", "religion1", "religion2", "orientation")
KINDS = {"sense", "name", "grammar", "half", "other_group", "meaning"}
MOST_WRONG = {"gender": 0.04, "dialect": 0.04, "race": 0.08, "religion1": 0.08, "religion2": 0.08, "orientation": 0.08}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_labels_are_whole(dimension: str) -> None:
    own = {of: labels(dimension, of) for of in ("dev", "test", "after")}
    assert Counter({of: len(found) for of, found in own.items()}) in (
        {"dev": 120, "test": 300, "after": 300},
        {"dev": 120, "test": 299, "after": 300},
    )
    for label in (label for found in own.values() for label in found.values()):
        assert label.label in ("right", "wrong", "unsure") and label.second in ("right", "wrong", "unsure", "")
        assert (label.kind in KINDS) == (label.label == "wrong"), label
    assert sum(label.second != "" for label in own["after"].values()) >= 100
    assert not set(own["dev"]) & set(own["after"])  # who wrote the rules has seen `dev`


@pytest.mark.kills  # a minute
@pytest.mark.skipif("FAIRNESS_CORPORA" not in os.environ, reason="FAIRNESS_CORPORA is not set: there is no real text")
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_few_pairs_of_real_text_are_wrong(dimension: str) -> None:
    found = errors(labels(dimension, "after"), made_pairs(Project("real"), dimension))
    assert found.made >= 280
    assert found.wrong / found.made <= MOST_WRONG[dimension]


def test_what_is_counted() -> None:
    names = [("c", str(number), "x") for number in range(5)]
    said = ("right", "right", "wrong", "wrong", "unsure")
    labelled = {name: Label(label, "") for name, label in zip(names, said, strict=True)}
    made = {names[0], names[2], names[4]}
    assert errors(labelled, made) == Errors(made=2, wrong=1, lost=1, right=2)
    assert errors(labelled, {*made, ("c", "1", "other words")}).lost == 0


def test_agreement_leaves_out_the_unsure() -> None:
    said = [("right", "right"), ("wrong", "right"), ("unsure", "right"), ("right", "")]
    assert agreement({("c", str(n), "x"): Label(own, "", other) for n, (own, other) in enumerate(said)}) == (1, 2)


def test_every_dimension_of_the_profile_has_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRNESS_CORPORA", "/not/read")
    assert set(Project("real").dimensions) == set(DIMENSIONS)
