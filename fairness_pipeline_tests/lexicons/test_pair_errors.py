"""The readers' labels of real pairs, and the counts of errors."""

import os
from collections import Counter
from pathlib import Path

import pytest

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.lexicons.pair_errors import (
    TURNS,
    Errors,
    Label,
    agreement,
    errors,
    implausible,
    labels,
    made_pairs,
)
from fairness_pipeline_tests.lexicons.pair_samples import taken

DIMENSIONS = ("gender", "dialect", "race", "religion1", "religion2", "orientation")
KINDS = {"sense", "name", "grammar", "half", "other_group", "meaning"}
MOST_WRONG = {"gender": 0.04, "dialect": 0.04, "race": 0.08, "religion1": 0.08, "religion2": 0.08, "orientation": 0.08}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_labels_are_complete(dimension: str) -> None:
    sets = {of: labels(dimension, of) for of in ("dev", "test", "after", "held_out")}
    assert Counter({of: len(labelled) for of, labelled in sets.items() if of != "held_out"}) in (
        {"dev": 120, "test": 300, "after": 300},
        {"dev": 120, "test": 299, "after": 300},
    )
    for label in (label for labelled in sets.values() for label in labelled.values()):
        assert label.label in ("right", "wrong", "unsure") and label.second in ("right", "wrong", "unsure", "")
        assert (label.kind in KINDS) == (label.label == "wrong"), label
    assert all(label.plausible in ("yes", "no") for label in sets["held_out"].values())
    assert sum(label.second != "" for label in sets["after"].values()) >= 100
    assert not set(sets["dev"]) & set(sets["after"])  # the author of the rules has seen `dev`
    seen = {name[1] for of in ("dev", "test", "after") for name in sets[of]}
    assert not seen & {name[1] for name in sets["held_out"]}  # the author of today's rules has seen all three sets


@pytest.mark.verify  # a minute
@pytest.mark.skipif("FAIRNESS_CORPORA" not in os.environ, reason="FAIRNESS_CORPORA is not set: there is no real text")
def test_few_right_pairs_of_gender_are_lost() -> None:
    made = made_pairs(Project("real"), "gender")
    for of in ("dev", "test"):
        counts = errors(labels("gender", of), made)
        assert counts.lost / counts.right < 0.34
        assert counts.wrong / counts.made < 0.04


@pytest.mark.verify  # a minute
@pytest.mark.skipif("FAIRNESS_CORPORA" not in os.environ, reason="FAIRNESS_CORPORA is not set: there is no real text")
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_few_pairs_of_real_text_are_wrong(dimension: str) -> None:
    counts = errors(labels(dimension, "held_out"), made_pairs(Project("real"), dimension, turns=TURNS))
    assert counts.made >= 50
    assert counts.wrong / counts.made <= MOST_WRONG[dimension]


def test_errors_and_lost_pairs_are_counted() -> None:
    names = [("c", str(number), "x") for number in range(5)]
    given = ("right", "right", "wrong", "wrong", "unsure")
    labelled = {name: Label(label, "") for name, label in zip(names, given, strict=True)}
    made = {names[0], names[2], names[4]}
    assert errors(labelled, made) == Errors(made=2, wrong=1, lost=1, right=2)
    assert errors(labelled, {*made, ("c", "1", "other words")}).lost == 0


def test_implausible_pairs_are_counted_among_the_right_ones() -> None:
    given = [("right", "yes"), ("right", "no"), ("wrong", "no"), ("right", ""), ("right", "no")]
    labelled = {("c", str(n), "x"): Label(label, "", "", plausible) for n, (label, plausible) in enumerate(given)}
    assert implausible(labelled, {name for name in labelled if name[1] != "4"}) == (1, 2)


def test_readers_labels_are_taken_without_the_texts(tmp_path: Path) -> None:
    pair = "reddit_real,d{n},h{n},a,he left,she left,he -> she"
    sample = ["n,corpus,dialogue_id,exchanged,source_side,original,exchanged_text,terms"]
    (tmp_path / "x.csv").write_text("\n".join([*sample, *(f"{n},{pair.format(n=n)}" for n in (1, 2))]) + "\n")
    first = tmp_path / "x.reader1.csv"
    first.write_text("n,label,kind,plausible\n1,right,,yes\n2,wrong,half,no\n")
    (tmp_path / "x.reader2.csv").write_text("n,label,kind,plausible\n2,right,,yes\n")
    assert [list(row.values()) for row in taken(tmp_path, "x")] == [
        ["reddit_real", "d1", "h1", "held_out", "right", "", "", "yes"],
        ["reddit_real", "d2", "h2", "held_out", "wrong", "half", "right", "no"],
    ]
    first.write_text("n,label,kind,plausible\n1,right,,yes\n")
    with pytest.raises(ValueError, match="x.reader1.csv: no label for 2"):
        taken(tmp_path, "x")
    first.write_text("n,label,kind,plausible\n1,right,half,yes\n")
    with pytest.raises(ValueError, match="x.reader1.csv: 1: labelled twice, or a kind"):
        taken(tmp_path, "x")


def test_agreement_leaves_out_the_unsure() -> None:
    given = [("right", "right"), ("wrong", "right"), ("unsure", "right"), ("right", "")]
    assert agreement({("c", str(n), "x"): Label(a, "", b) for n, (a, b) in enumerate(given)}) == (1, 2)


def test_every_dimension_of_the_profile_has_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRNESS_CORPORA", "/not/read")
    assert set(Project("real").dimensions) == set(DIMENSIONS)
