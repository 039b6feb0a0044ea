"""Words that are too common to show what a text is about."""

from pathlib import Path

from fairness_pipeline.foundation.guard import read_once

FILE = "stop_words/english.txt"


def stop_words() -> frozenset[str]:
    """The English stop words of NLTK, folded."""
    return read_once(FILE, words_of_lines)


def words_of_lines(path: Path) -> frozenset[str]:
    """The words of a file, without the lines that begin with `#`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
