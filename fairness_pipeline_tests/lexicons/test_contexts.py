import pyarrow as pa
import pytest

from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import load_dimension

GENDER = load_dimension("gender")


def dialogues(*rows: tuple[str, str]) -> pa.Table:
    return pa.table(
        {
            "dialogue_id": [f"d{i}" for i in range(len(rows))],
            "context": [context for context, _ in rows],
            "split": [split for _, split in rows],
        }
    )


def contexts(*texts: str) -> pa.Table:
    return find_contexts(dialogues(*((text, "audit") for text in texts)), Swapper(GENDER)).table


def test_contexts_come_from_the_audit_split_and_from_no_other() -> None:
    table = dialogues(
        ("he is here", "train"), ("he is here", "audit"), ("she left", "audit"), ("she left", "audit"),
        ("the theory", "audit"), ("he met her", "audit"), ("a queen", "test"),
    )  # fmt: skip
    result = find_contexts(table, Swapper(GENDER))
    assert result.table.select(["context", "side", "matches"]).to_pylist() == [
        {"context": "she left", "side": "b", "matches": [{"start": 0, "end": 3, "term": "she"}]},
        {
            "context": "he met her",
            "side": "both",
            "matches": [{"start": 0, "end": 2, "term": "he"}, {"start": 7, "end": 10, "term": "her"}],
        },
    ]
    assert result.figures == {
        "audit_dialogues": 5,
        "left_out_also_in_training": 1,
        "left_out_same_context_again": 1,
        "left_out_no_listed_word": 1,
        "left_out_by_rules": 0,
        "left_out_no_word_in_a_use": 0,
    }


def test_pairs_and_their_quality() -> None:
    pairs = make_pairs(
        contexts("my dad called", "my mom called", "he met her", "I love him and his dog", "a queen"),
        GENDER,
        maximum=10,
        seed=1,
    )
    assert [(row["context_a"], row["context_b"], row["source_side"]) for row in pairs.table.to_pylist()] == [
        ("my dad called", "my mom called", "a"),
        ("I love him and his dog", "I love him and her dog", "a"),
        ("a king", "a queen", "b"),
    ]
    assert pairs.table["pair_id"].to_pylist() == [0, 1, 2]
    assert pairs.table["terms"][0].as_py() == [{"a": "dad", "b": "mom"}]
    figures = pairs.figures
    assert figures["left_out_both_groups"] == 1
    assert figures["left_out_same_pair_again"] == 1  # "my mom called" is the other side of the first pair
    assert figures["holds_unlisted_pronoun"] == 1
    assert figures["round_trip_rate"] == 1.0
    assert figures["contexts_by_word"] == {"dad": 1, "his": 1, "queen": 1}


def test_both_sides_can_be_swapped() -> None:
    pairs = make_pairs(contexts("he met her"), GENDER, maximum=10, seed=1, both_sides="swap")
    (row,) = pairs.table.to_pylist()
    assert (row["context_a"], row["context_b"]) == ("he met her", "she met his")
    assert row["terms"] == [{"a": "he", "b": "she"}, {"a": "his", "b": "her"}]


def test_extended_pronouns() -> None:
    table = find_contexts(dialogues(("I love him and his dog", "audit")), Swapper(GENDER, pronouns="extended")).table
    pairs = make_pairs(table, GENDER, maximum=10, seed=1, pronouns="extended")
    assert pairs.table["context_b"].to_pylist() == ["I love her and her dog"]
    assert pairs.figures["holds_unlisted_pronoun"] == 0


def test_which_pairs_are_kept_depends_on_ids_and_seed_alone() -> None:
    texts = [f"he number {i}" for i in range(40)]
    table = contexts(*texts)
    kept = make_pairs(table, GENDER, maximum=10, seed=1).table
    backwards = make_pairs(table.take(list(range(39, -1, -1))), GENDER, maximum=10, seed=1).table
    assert kept.num_rows == 10
    assert sorted(kept["context_a"].to_pylist()) == sorted(backwards["context_a"].to_pylist())
    reseeded = make_pairs(table, GENDER, maximum=10, seed=2)
    assert set(reseeded.table["context_a"].to_pylist()) != set(kept["context_a"].to_pylist())
    assert reseeded.figures["left_out_beyond_maximum"] == 30


@pytest.mark.parametrize("name", ["gender", "dialect", "race", "religion1", "religion2", "orientation"])
def test_no_match_no_pairs(name: str) -> None:
    dimension = load_dimension(name)
    unmatched = find_contexts(dialogues(("xyzzy", "audit")), Swapper(dimension)).table
    pairs = make_pairs(unmatched, dimension, maximum=5, seed=1)
    assert pairs.table.num_rows == 0
    assert pairs.figures["round_trip_rate"] is None
