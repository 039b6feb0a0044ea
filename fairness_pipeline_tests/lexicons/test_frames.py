"""In contexts made of frames and persons only the person is exchanged; contexts that give no pair are named."""

from typing import Any

import pyarrow as pa
import pytest

from fairness_pipeline.corpora.cleaning import clean
from fairness_pipeline.corpora.dialogue.framed_contexts import FramedContexts
from fairness_pipeline.lexicons.contexts import Contexts, PairSettings, find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import describe_dropped


def contexts_and_pairs(
    contexts: FramedContexts, name: str, dimension: Dimension | None = None
) -> tuple[Contexts, list[dict[str, Any]]]:
    """The contexts of a dimension, and the pairs that the default profile makes of them."""
    declared = dimension or load_dimension(name)
    texts = [clean(text) for topic, _, text in contexts.texts() if topic == name]
    table = pa.table(
        {"dialogue_id": [str(i) for i in range(len(texts))], "context": texts, "split": ["audit"] * len(texts)}
    )
    swapper = Swapper(declared, pronouns="extended", senses=True, further=True)
    result = find_contexts(table, swapper, spans=contexts.spans(name, clean))
    settings = PairSettings(largest_share=1).model_dump(exclude={"no_effect"})
    return result, make_pairs(result.table, declared, seed=1, further=True, **settings).table.to_pylist()


def pairs(dimension: str, frame: str, *persons: str) -> list[tuple[str, str]]:
    """Both sides of each pair."""
    contexts = FramedContexts(frames=(frame,), dimensions={dimension: {"persons": persons}})
    return [(row["context_a"], row["context_b"]) for row in contexts_and_pairs(contexts, dimension)[1]]


@pytest.mark.parametrize(
    ("dimension", "frame", "person", "expected"),
    [
        ("orientation", "I'm {person}.", "a straight", None),
        ("orientation", "I'm {person}.", "a lesbian", ("I'm a straight woman.", "I'm a lesbian.")),
        ("orientation", "I'm {person}.", "gay", ("I'm straight.", "I'm gay.")),
        ("orientation", "{person} sang.", "a lesbian", ("A straight woman sang.", "A lesbian sang.")),
        ("religion2", "{person} asked me.", "an Islamic", None),
        ("religion2", "{person} asked me.", "a Christian", ("A Christian asked me.", "A Muslim asked me.")),
        ("religion1", "{person} asked me.", "a Christian", ("A Christian asked me.", "A Jew asked me.")),
        ("religion1", "{person} asked me.", "a Jewish nurse", ("A Christian nurse asked me.", "A Jewish nurse asked me.")),
        ("gender", "{person} asked my manager.", "my aunt", ("My uncle asked my manager.", "My aunt asked my manager.")),
        ("gender", "{person} asked me.", "my manager", None),
        ("gender", "{person} asked me.", "a plumber", None),
        ("gender", "{person} asked me.", "my aunt Karen", None),
        ("gender", "{person} asked me.", "Kevin", ("Kevin asked me.", "Lisa asked me.")),
        ("gender", "God, I hate Mondays, said {person}.", "my aunt", None),
        ("gender", "{person} lost her keys.", "my aunt", None),
        ("gender", "{person} met my brother.", "my aunt", None),
        ("gender", "{person} is pregnant.", "my aunt", None),
        ("gender", "Kevinette met {person} in Boston.", "my aunt",
         ("Kevinette met my uncle in Boston.", "Kevinette met my aunt in Boston.")),
        ("race", "{person} left.", "a Caucasian", None),
        ("race", "{person} left.", "a white supremacist", None),
        ("race", "At the parade {person} left.", "a white nurse",
         ("At the parade a white nurse left.", "At the parade a black nurse left.")),
    ],
)  # fmt: skip
def test_only_the_person_is_exchanged(
    dimension: str, frame: str, person: str, expected: tuple[str, str] | None
) -> None:
    assert pairs(dimension, frame, person) == ([expected] if expected else [])


def test_contexts_without_a_pair_are_named_with_the_reason() -> None:
    frames = ("{person} sang.", "{person} lost her keys.", "{person} asked my manager.")
    contexts = FramedContexts(frames=frames, dimensions={"gender": {"persons": ("my aunt", "a plumber", "my manager")}})
    result, rows = contexts_and_pairs(contexts, "gender")
    assert len(rows) == 2
    assert (result.figures["left_out_no_word_in_a_use"], result.figures["left_out_by_rules"]) == (6, 1)
    lines = describe_dropped(result.ruled.to_pylist())
    assert [line.partition(" (")[0] for line in lines] == [
        "the person 'a plumber' has no counterpart by the rules of sense",
        "the person 'my manager' has no counterpart by the rules of sense",
        "'her' beside the person may tell the group",
    ]
    assert "for example 'My aunt lost her keys.'" in lines[2]


def test_without_rules_only_the_person_is_exchanged_too() -> None:
    without_rules = load_dimension("gender").model_copy(update={"senses": None})
    contexts = FramedContexts(
        frames=("{person} called.", "{person} asked my manager."), dimensions={"gender": {"persons": ("my aunt",)}}
    )
    result, rows = contexts_and_pairs(contexts, "gender", without_rules)
    assert [row["context_a"] for row in rows] == ["My uncle called."]
    assert result.figures["left_out_by_rules"] == 1  # `manager` is a word of the list


def test_places_of_persons() -> None:
    contexts = FramedContexts(
        frames=("{person}  met {person}.", "Dear &amp; {person}"), dimensions={"gender": {"persons": ("my aunt",)}}
    )
    assert contexts.spans("gender", clean) == {"My aunt met my aunt.": [(0, 7), (12, 19)], "Dear & my aunt": [(7, 14)]}
    assert contexts.spans("race") == {}


@pytest.mark.parametrize(
    "dimension",
    ["gender", *(pytest.param(name, marks=pytest.mark.verify) for name in
                 ("dialect", "race", "religion1", "religion2", "orientation"))],
)  # fmt: skip
def test_every_context_that_ships_gives_a_pair(dimension: str) -> None:
    contexts = FramedContexts.load("contexts/everyday.yaml")
    result, rows = contexts_and_pairs(contexts, dimension)
    assert len(rows) == result.figures["audit_dialogues"] >= 10_080
    assert describe_dropped(result.ruled.to_pylist()) == []
    assert all(len(row["terms"]) == 1 for row in rows)
