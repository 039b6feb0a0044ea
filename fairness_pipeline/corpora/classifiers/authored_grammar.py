"""A small grammar of texts. The spelling reveals the author's group, and the words reveal most labels."""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from fairness_pipeline.corpora.specification import DataFile, Share

_WORD = re.compile(r"\w+")


class GeneratedText(NamedTuple):
    """A text, its label and its author's group."""

    text: str
    label: int
    group: str


class AuthoredGrammarFile(DataFile):
    """A grammar file of `data/grammars` for text classifiers; the shipped file explains its keys."""

    clear: Share
    styled: Share
    spellings: tuple[tuple[str, str], ...]
    templates: tuple[str, ...]
    things: tuple[str, ...]
    places: tuple[str, ...]
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    neutral: tuple[str, ...]

    def texts(self, count: int, seed: int) -> Iterator[GeneratedText]:
        """`count` independent draws. Labels and groups are equally likely, and the same seed gives the same draws."""
        draw = random.Random(seed)
        spellings = dict(self.spellings)
        for _ in range(count):
            label, group = draw.randrange(2), draw.choice("ab")
            qualities = (self.negative, self.positive)[label] if draw.random() < self.clear else self.neutral
            text = draw.choice(self.templates).format(
                thing=draw.choice(self.things), place=draw.choice(self.places), quality=draw.choice(qualities)
            )
            if (group == "b") == (draw.random() < self.styled):
                text = _WORD.sub(lambda match: spellings.get(match[0], match[0]), text)
            yield GeneratedText(text, label, group)
