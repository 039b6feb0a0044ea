"""Tells whether a word is an ordinary English one; any other may be a name that is on no list."""

import gzip
from pathlib import Path

from fairness_pipeline.foundation.guard import read_once, remembered
from fairness_pipeline.lexicons.stop_words import words_of_lines

FILES = ("wordnet/words.txt.gz", "lexicon/common_words.txt")
"""The data files that words are looked up in."""

_ENDINGS = (
    ("'s", ""), ("s'", "s"), ("ies", "y"), ("ied", "y"), ("ier", "y"), ("iest", "y"), ("ily", "y"), ("es", ""),
    ("s", ""), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"), ("in", "ing"), ("er", ""), ("er", "e"),
    ("est", ""), ("est", "e"), ("ly", ""), ("ness", ""), ("ish", ""), ("able", ""), ("less", ""),
)  # fmt: skip
"""Endings, and their replacements in the dictionary's form."""


@remembered(1)
def _words() -> frozenset[str]:
    return read_once(FILES[0], listed_words) | read_once(FILES[1], words_of_lines)


def listed_words(path: Path) -> frozenset[str]:
    """The words of a compressed list."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return frozenset(lines.read().split())


@remembered(1 << 17)
def is_word(word: str) -> bool:
    """Whether a folded word, or the form that it is inflected from, is in WordNet 3.0 or among the common words.

    Proper names of WordNet do not count. A word with a hyphen is one if its parts are.

    Examples:
        >>> is_word("stopped"), is_word("well-known"), is_word("keanu")
        (True, True, False)
    """
    words = _words()
    if word in words or not any(letter.isalpha() for letter in word):
        return True
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: len(word) - len(ending)] + replacement
            if stem in words or (stem[-1:] == stem[-2:-1] and stem[:-1] in words):
                return True
    return "-" in word and all(is_word(part) for part in word.split("-") if part)
