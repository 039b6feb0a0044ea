"""A small grammar of tweets and replies with a planted bias of known strength."""

import random
from collections.abc import Iterator
from typing import NamedTuple, Self

import pydantic

from fairness_pipeline.corpora.specification import DataFile, Share
from fairness_pipeline.foundation.yaml_files import Specification


class Topic(Specification):
    """The topic of a tweet: an action with a `{person}` and an `{object}`."""

    action: str
    objects: tuple[str, ...]


class PlantedDimension(Specification):
    """The words for persons of each side in tweets and (`named`) replies; the usual kind of reply by topic and side."""

    named: tuple[str, str]
    a: tuple[str, ...]
    b: tuple[str, ...]
    modes: dict[str, tuple[str, str]]


class Scene(NamedTuple):
    """What a generated tweet is made from. With the other side in `side` it gives the tweet's counterfactual."""

    dimension: str
    side: str
    topic: str
    object: str


class GeneratedDialogue(NamedTuple):
    """A tweet, its reply, and the scene they are made from."""

    context: str
    response: str
    scene: Scene


class Grammar(DataFile):
    """A file of `data/grammars`; the shipped file explains its keys."""

    majority: Share
    first_variant: Share
    openings: tuple[str, ...]
    tails: tuple[str, ...]
    roles: tuple[str, ...]
    topics: dict[str, Topic]
    replies: dict[str, tuple[str, ...]]
    dimensions: dict[str, PlantedDimension]

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        for name, dimension in self.dimensions.items():
            for topic, kinds in dimension.modes.items():
                if topic not in self.topics:
                    raise ValueError(f"dimensions.{name}.modes: unknown topic '{topic}'")
                for kind in kinds:
                    if kind not in self.replies:
                        raise ValueError(f"dimensions.{name}.modes.{topic}: unknown kind of reply '{kind}'")
        return self

    def generate(self, dialogues: int, seed: int) -> Iterator[GeneratedDialogue]:
        """`dialogues` draws, even over dimensions, sides, topics and wordings. The same seed gives the same draws."""
        draw = random.Random(seed)
        for _ in range(dialogues):
            dimension = draw.choice(sorted(self.dimensions))
            side = draw.choice("ab")
            topic = draw.choice(sorted(self.topics))
            scene = Scene(dimension, side, topic, draw.choice(self.topics[topic].objects))
            yield GeneratedDialogue(self._tweet(scene, draw), self.reply(scene, draw), scene)

    def kind(self, scene: Scene) -> str:
        """The kind of reply that most tweets of this scene get; this is the planted bias."""
        a, b = self.dimensions[scene.dimension].modes.get(scene.topic, ("neutral", "neutral"))
        return a if scene.side == "a" else b

    def majority_reply(self, scene: Scene) -> str:
        """The most frequent reply to this scene: the answer of a model that learned the grammar perfectly."""
        return self._worded(self.replies[self.kind(scene)][0], scene)

    def reply(self, scene: Scene, draw: random.Random) -> str:
        """Draws one reply to this scene, independent of all others."""
        kind = self.kind(scene) if draw.random() < self.majority else draw.choice(sorted(self.replies))
        first, *others = self.replies[kind]
        wording = first if draw.random() < self.first_variant or not others else draw.choice(others)
        return self._worded(wording, scene)

    def _worded(self, wording: str, scene: Scene) -> str:
        a, b = self.dimensions[scene.dimension].named
        return wording.format(object=scene.object, named=a if scene.side == "a" else b)

    def _tweet(self, scene: Scene, draw: random.Random) -> str:
        planted = self.dimensions[scene.dimension]
        person = draw.choice(planted.a if scene.side == "a" else planted.b).format(role=draw.choice(self.roles))
        action = self.topics[scene.topic].action.format(person=person, object=scene.object)
        return " ".join(part for part in (draw.choice(self.openings), action, draw.choice(self.tails)) if part)
