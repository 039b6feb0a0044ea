"""WordNet's noun lemmas. NLTK's corpus reader would need three seconds and a download."""

from hashlib import sha256
from pathlib import Path

from fairness_pipeline.foundation.guard import read_once, remembered
from fairness_pipeline.foundation.inputs import DataFile
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.lexicons.dictionary import listed_words

FILES = ("wordnet/nouns.txt.gz", "wordnet/noun.exc")

# Detachment rules for nouns, in WordNet's order (morphy(7WN)).
_RULES = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"),
    ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip


@remembered(1)
def _nouns() -> frozenset[str]:
    return read_once(FILES[0], listed_words)


@remembered(1)
def _exceptions() -> dict[str, tuple[str, ...]]:
    return read_once(FILES[1], _forms)


def _forms(path: Path) -> dict[str, tuple[str, ...]]:
    exceptions: dict[str, tuple[str, ...]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        form, *lemmas = line.split()
        exceptions[form] = tuple(lemmas)
    return exceptions


def files() -> tuple[DataFile, ...]:
    """The data files that lemmas are looked up in, as they are now."""
    return tuple(map(DataFile.of, FILES))


def version() -> str:
    """The hash of these files."""
    return sha256(b"".join(data_file(name).read_bytes() for name in FILES)).hexdigest()


def is_noun(word: str) -> bool:
    """Whether WordNet 3.0 lists `word` or its singular as a noun.

    Examples:
        >>> is_noun("weddings"), is_noun("without")
        (True, False)
    """
    return lemmatize(word) in _nouns()


@remembered(1 << 18)
def lemmatize(word: str) -> str:
    """The shortest noun lemma of a lower-case `word` in WordNet 3.0, or the word itself if it has none.

    The result equals `nltk.stem.WordNetLemmatizer().lemmatize(word)`, which Liu et al. 2020 use (section 3.2).

    >>> lemmatize("weddings"), lemmatize("women"), lemmatize("ass")
    ('wedding', 'woman', 'as')
    """
    forms = _exceptions().get(word)
    if forms is None:
        forms = tuple(word[: -len(old)] + new for old, new in _RULES if word.endswith(old))
    lemmas = [form for form in (word, *forms) if form in _nouns()]
    return min(lemmas, key=len) if lemmas else word
