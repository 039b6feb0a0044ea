import random
from functools import cache

import pytest

from fairness_pipeline.corpora.dialogue.grammar import Grammar
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.measures.dialogue.sentiment import SentimentScorer
from fairness_pipeline.project.project import load_dimension

import pyarrow as pa  # isort: skip

GRAMMAR = Grammar.load("grammars/twitter_sample.yaml")
DIALOGUES = list(GRAMMAR.generate(2000, seed=1))


@cache
def known_words() -> frozenset[str]:
    """The words that a model meets in training, and `an`, which only swaps need."""
    return frozenset({word for d in GRAMMAR.generate(40_000, seed=3) for word in tokenize(d.context)} | {"an"})


def sides(swapper: Swapper, texts: list[str]) -> list[str | None]:
    """The group that each text names; one call for all texts is faster."""
    return [side for _, side in swapper.find_all(pa.array(texts))]


def test_same_seed_same_corpus() -> None:
    assert DIALOGUES[:50] == list(GRAMMAR.generate(50, seed=1))
    assert DIALOGUES[:50] != list(GRAMMAR.generate(50, seed=2))


@pytest.mark.parametrize("name", sorted(GRAMMAR.dimensions))
def test_each_tweet_names_one_side_of_its_own_dimension(name: str) -> None:
    """No tweet names groups of two dimensions, except of the two religions, which share side a."""
    swapper = Swapper(load_dimension(name))
    shared = {"religion1": "religion2", "religion2": "religion1"}
    for dialogue, side in zip(DIALOGUES, sides(swapper, [d.context for d in DIALOGUES]), strict=True):
        scene = dialogue.scene
        if scene.dimension == name:
            assert side == scene.side, dialogue.context
        elif scene.dimension == shared.get(name) and scene.side == "a":
            assert side == "a"
        else:
            assert side is None, dialogue.context


@pytest.mark.parametrize("name", sorted(GRAMMAR.dimensions))
def test_a_swapped_tweet_is_one_that_the_grammar_could_have_made(name: str) -> None:
    """Otherwise the audit would hold words that a model never met in training."""
    swapper = Swapper(load_dimension(name))
    planted = [(i, dialogue) for i, dialogue in enumerate(DIALOGUES) if dialogue.scene.dimension == name]
    swapped = [swapper.swap(dialogue.context, dialogue.scene.side, str(i)).text for i, dialogue in planted]
    assert sides(swapper, swapped) == ["b" if dialogue.scene.side == "a" else "a" for _, dialogue in planted]
    for text in swapped:
        assert set(tokenize(text)) <= known_words(), text


def test_the_religions_plant_the_same_on_their_shared_side() -> None:
    first, second = GRAMMAR.dimensions["religion1"].modes, GRAMMAR.dimensions["religion2"].modes
    for topic in GRAMMAR.topics:
        neutral = ("neutral", "neutral")
        assert first.get(topic, neutral)[0] == second.get(topic, neutral)[0]


def test_each_kind_of_reply_is_classified_as_such() -> None:
    """By the classifiers that measure: exactly the offensive replies are offensive; the same for sentiment."""
    kinds = [
        (kind, wording.format(object="tennis", named="that man"))
        for kind, wordings in GRAMMAR.replies.items()
        for wording in wordings
    ]
    texts = pa.table({"text": [text for _, text in kinds]})
    offensive = PolitenessScorer()(texts)["offensive"].to_pylist()
    sentiment = SentimentScorer()(texts)
    positive, negative = sentiment["positive"].to_pylist(), sentiment["negative"].to_pylist()
    for (kind, text), is_offensive, is_positive, is_negative in zip(kinds, offensive, positive, negative, strict=True):
        assert is_offensive == (kind == "offensive"), text
        assert is_positive == (kind == "positive"), text
        assert is_negative == (kind == "negative"), text


def test_the_majority_reply_is_the_most_frequent_one() -> None:
    draw = random.Random(0)
    for name in GRAMMAR.dimensions:
        for topic in GRAMMAR.topics:
            scene = next(d.scene for d in DIALOGUES if (d.scene.dimension, d.scene.topic) == (name, topic))
            replies = [GRAMMAR.reply(scene, draw) for _ in range(300)]
            assert max(set(replies), key=replies.count) == GRAMMAR.majority_reply(scene)
