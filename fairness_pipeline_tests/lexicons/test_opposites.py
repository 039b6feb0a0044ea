"""The opposites of stereotypes' terms are complete, and agree with the authors' phrases where these are available."""

import csv
import os
from pathlib import Path

import pytest

from fairness_pipeline.lexicons.stereotypes import Lexicon, stereotypes_of
from fairness_pipeline.project.project import load_dimension

DIMENSIONS = ("religion1", "religion2", "race", "gender", "orientation")
AGREE = {"religion1": 390, "religion2": 345, "race": 405, "gender": 415, "orientation": 400}
"""The least number of phrases, of the authors' 475 to 506, with the authors' opposite word for word
(docs/language-models.md)."""


@pytest.mark.parametrize("name", DIMENSIONS)
def test_opposites_are_of_the_stereotype_and_enough_for_a_verdict(name: str) -> None:
    dimension = load_dimension(name)
    lexicon, opposites = Lexicon(stereotypes_of(dimension)), stereotypes_of(dimension).opposites
    assert len(opposites) >= 10
    for term, opposite in opposites:
        assert lexicon.holds_attribute(term), term
        swapped = lexicon.opposite(f"they are {term} here", "1")
        assert (swapped.text, swapped.terms[0].b) == (f"they are {opposite} here", term)
    assert lexicon.opposite("nothing listed", "1").terms == []


def test_articles_follow_the_opposite() -> None:
    assert Lexicon(stereotypes_of(load_dimension("religion1"))).opposite("an evil jew", "1").text == "a good jew"


@pytest.mark.parametrize("name", DIMENSIONS)
def test_most_are_the_authors_own(name: str) -> None:
    if "FAIRNESS_CORPORA" not in os.environ:
        pytest.skip("FAIRNESS_CORPORA is not set: RedditBias is read from there")
    folder = Path(os.environ["FAIRNESS_CORPORA"]) / "redditbias" / "data" / name
    (file,) = folder.glob("*pos_attr_reduced.csv")
    lexicon, same = Lexicon(stereotypes_of(load_dimension(name))), 0
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        for row in csv.DictReader(lines):
            same += (
                lexicon.opposite(row["comments"].strip().lower(), "1").text == row["comments_processed"].strip().lower()
            )
    assert same >= AGREE[name]
