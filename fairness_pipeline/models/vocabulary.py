"""Encodes words as integers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fairness_pipeline.lexicons.text import tokenize

PAD, UNKNOWN, START, END = range(4)
_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


VOCABULARY = "vocabulary.txt"
"""The file that holds the words of a trained model."""


class Vocabulary:
    """The words that a model knows; everything else is `UNKNOWN`. Their numbers start after the four special tokens."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = [*_SPECIAL, *words]
        self._index = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def build(cls, texts: Iterable[str], size: int) -> "Vocabulary":
        """Builds the vocabulary from the most frequent words of `texts`: `size` in all with the special tokens.

        Words with equal counts are in alphabetical order.
        """
        counts = Counter(word for text in texts for word in tokenize(text))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(word for word, _ in ranked[: size - len(_SPECIAL)])

    def number(self, word: str) -> int:
        """The number of a word in folded spelling."""
        return self._index.get(word, UNKNOWN)

    def encode(self, text: str, longest: int) -> list[int]:
        """The numbers of the first `longest` words of `text`."""
        return [self.number(word) for word in tokenize(text)[:longest]]

    def turns(self, texts: Iterable[str], longest: int) -> list[np.ndarray]:
        """The numbers of each text's words, as a network takes them. A text without words becomes an end mark."""
        return [np.array(self.encode(text, longest) or [END]) for text in texts]

    def rows(self, text: str) -> list[int]:
        """The numbers of all words of `text`; empty if one of them is unknown."""
        numbers = self.encode(text, len(text))
        return [] if UNKNOWN in numbers else numbers

    def decode(self, numbers: Sequence[int]) -> str:
        """The words with these `numbers`, separated by spaces as the papers' models print them."""
        return " ".join(self.words[number] for number in numbers)

    def save(self, path: Path) -> None:
        """Writes one word a line."""
        path.write_text("\n".join(self.words[len(_SPECIAL) :]) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Loads what `save` wrote."""
        return cls(path.read_text(encoding="utf-8").splitlines())
