"""Words that are too common to show what a text is about."""

from fairness_pipeline.foundation.guard import remembered
from fairness_pipeline.foundation.paths import data_file

FILE = "stop_words/english.txt"


@remembered(1)
def stop_words() -> frozenset[str]:
    """The English stop words of NLTK, folded."""
    lines = data_file(FILE).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
