"""Words that are too common to show what a text is about."""

from functools import lru_cache

from fairness_pipeline.foundation.paths import data_file


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """The English stop words of NLTK, folded."""
    lines = data_file("stop_words/english.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
