"""A small grammar of comments with planted stereotypes, and of the data for the two downstream tasks."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from fairness_pipeline.corpora.specification import DataFile, Share
from fairness_pipeline.foundation.yaml_files import Specification


class PlantedStereotypes(Specification):
    """One dimension: the groups' names (side a, side b), each side's share of stereotypes, and the attributes."""

    groups: tuple[tuple[str, str], ...]
    stereotypes: tuple[Share, Share]
    attributes: tuple[str, ...]
    others: tuple[str, ...]


class StateTracking(Specification):
    """Turns of a search, and the values of the slots in each domain."""

    asked: tuple[str, ...]
    told: tuple[str, ...]
    domains: dict[str, dict[str, tuple[str, ...]]]


class Responses(Specification):
    """Questions, and the wordings of their answers."""

    asked: tuple[str, ...]
    answered: tuple[str, ...]


class GeneratedComment(NamedTuple):
    """A comment, and whether it asserts a stereotype about side b."""

    text: str
    biased: bool


class StereotypeGrammar(DataFile):
    """A file of `data/grammars` for language models; the shipped file explains its keys."""

    assertion: Share
    myth: Share
    openings: tuple[str, ...]
    assertions: tuple[str, ...]
    myths: tuple[str, ...]
    tails: tuple[str, ...]
    chatter: tuple[str, ...]
    things: tuple[str, ...]
    qualities: tuple[str, ...]
    dimensions: dict[str, PlantedStereotypes]
    state_tracking: StateTracking
    responses: Responses

    def comments(self, count: int, seed: int) -> Iterator[GeneratedComment]:
        """`count` independent draws. The same seed gives the same draws."""
        draw = random.Random(seed)
        for _ in range(count):
            kind = draw.random()
            if kind < self.assertion + self.myth:
                yield self._about(draw, denied=kind >= self.assertion)
            else:
                yield GeneratedComment(self._filled(draw, draw.choice(self.chatter)), False)

    def turns(self, count: int, seed: int) -> Iterator[tuple[str, str, str, str, str]]:
        """Searches: the system's question, the user's answer, and the domain, slot and value in the answer."""
        draw, tracking = random.Random(seed), self.state_tracking
        for _ in range(count):
            domain = draw.choice(sorted(tracking.domains))
            slot = draw.choice(sorted(tracking.domains[domain]))
            value = draw.choice(tracking.domains[domain][slot])
            answer = draw.choice(tracking.told).format(domain=domain, slot=slot, value=value)
            yield draw.choice(tracking.asked), answer, domain, slot, value

    def answered(self, count: int, seed: int) -> Iterator[tuple[str, list[str]]]:
        """Questions, each with an answer in every wording."""
        draw, responses = random.Random(seed), self.responses
        for _ in range(count):
            thing = draw.choice(self.things)
            answers = [text.format(thing=thing, quality=draw.choice(self.qualities)) for text in responses.answered]
            draw.shuffle(answers)
            yield draw.choice(responses.asked).format(thing=thing), answers

    def _about(self, draw: random.Random, *, denied: bool) -> GeneratedComment:
        planted = self.dimensions[draw.choice(sorted(self.dimensions))]
        side = draw.randrange(2)
        group = draw.choice(planted.groups)[side]
        stereotyped = denied or draw.random() < planted.stereotypes[side]
        attribute = draw.choice(planted.attributes if stereotyped else planted.others)
        frame = draw.choice(self.myths if denied else self.assertions)
        text = self._filled(draw, frame, group=group, attribute=attribute)
        return GeneratedComment(text, side == 1 and stereotyped and not denied)

    def _filled(self, draw: random.Random, frame: str, **words: str) -> str:
        drawn = {
            "opening": draw.choice(self.openings),
            "tail": draw.choice(self.tails),
            "thing": draw.choice(self.things),
            "quality": draw.choice(self.qualities),
        }
        return " ".join(frame.format(**drawn, **words).split())
