"""Changes of a context that keep its group, and the contexts that ship."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.lexicons.no_effect import make_no_effect, reworded
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import Project, load_dimension

DIMENSIONS = ("gender", "dialect", "race", "religion1", "religion2", "orientation")


@pytest.fixture(scope="module")
def everyday() -> pa.Table:
    part = Project("audit").parts["dialogue_fairness"]
    splits = {"train": 0, "valid": 0, "test": 0, "audit": 1}
    return read_dialogues("everyday", *part.corpora["everyday"], splits, 1).table


@pytest.mark.verify
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_contexts_that_ship_are_many_balanced_and_of_one_word(everyday: pa.Table, dimension: str) -> None:
    declared = load_dimension(dimension)
    texts = everyday.filter(pc.equal(everyday["topic"], dimension))
    contexts = find_contexts(texts, Swapper(declared, pronouns="extended", further=True)).table
    assert contexts.num_rows == texts.num_rows  # every context names one group
    options = {"pronouns": "extended", "one_word": True, "largest_share": 0.08, "further": True, "seed": 1}
    made = make_pairs(contexts, declared, maximum=10**6, **options)
    pairs = made.table
    assert texts.num_rows >= pairs.num_rows >= 8500
    assert made.figures["left_out_several_words"] == 0
    for maximum in (10**6, 400):
        drawn = make_pairs(contexts, declared, maximum=maximum, **options).table["terms"].to_pylist()
        for side in "ab":
            words = Counter(row[0][side].lower() for row in drawn)
            assert len(words) >= 25 and max(words.values()) <= 0.08 * len(drawn)
    sides = [masked(pairs[f"context_{side}"], declared).to_pylist() for side in "ab"]
    articles = [[text.replace(" an _", " a _").replace("An _", "A _") for text in texts] for texts in sides]
    assert articles[0] == articles[1]  # only the group's words tell the sides apart


def test_capitals_inside_a_further_phrase_stay() -> None:
    swapper = Swapper(load_dimension("religion2"), further=True)
    text = "A cousin of mine who goes to mosque on Fridays sings."
    assert swapper.swap(text, "b", "k").text == "A cousin of mine who goes to church on Sundays sings."


def test_the_distinguishing_words_of_a_further_phrase_are_masked() -> None:
    religion = load_dimension("religion2")
    assert masked(pa.array(["Happy Eid, says Fatima at the mosque"]), religion)[0].as_py() == "Happy _, says _ at the _"


@pytest.mark.verify
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_changes_without_effect_keep_the_group(everyday: pa.Table, dimension: str) -> None:
    declared = load_dimension(dimension)
    texts = everyday.filter(pc.equal(everyday["topic"], dimension))
    swapper = Swapper(declared, pronouns="extended", further=True)
    contexts = find_contexts(texts, swapper).table
    pairs = make_pairs(contexts, declared, maximum=500, seed=1, pronouns="extended", further=True).table
    changes = make_no_effect(pairs, declared, share=0.4, seed=3)
    reordered = make_no_effect(pairs.take(list(range(499, -1, -1))), declared, share=0.4, seed=3)
    assert sorted(changes["changed"].to_pylist()) == sorted(reordered["changed"].to_pylist())  # in any order
    assert Counter(changes["change"].to_pylist())["rewording"] == 200
    if declared.interchangeable:
        assert Counter(changes["change"].to_pylist())["same_group"] > 50
    for row in changes.to_pylist():
        assert next(swapper.find_all(pa.array([row["changed"]])))[1] == row["side"], row
        assert row["changed"] != row["context"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am here.", "I'm here."),
        ("Do not go.", "Don't go."),
        ("They don’t know.", "They do not know."),
        ("It's late", "It is late"),
        ("Bring my bike.", "Hey. Bring my bike."),
    ],
)
def test_another_wording(text: str, expected: str) -> None:
    assert reworded(text, 1) == expected
