"""The shipped noun index gives the same lemmas as NLTK, word for word."""

import shutil
import warnings
from pathlib import Path

import pytest

from fairness_pipeline.lexicons.lemmas import _nouns, is_noun, lemmatize

DEBIAN = Path("/usr/share/wordnet")
_LEXNAMES = [f"{i:02d}\tname{i}\t1" for i in range(45)]  # NLTK reads the file's form only


@pytest.fixture(scope="module")
def nltk_lemmatize(tmp_path_factory: pytest.TempPathFactory):
    if not DEBIAN.is_dir():
        pytest.skip("Debian's wordnet-base is not installed: nothing to compare the noun index with")
    import nltk
    from nltk.corpus import wordnet
    from nltk.stem import WordNetLemmatizer

    data = tmp_path_factory.mktemp("nltk_data")
    root = data / "corpora" / "wordnet"
    root.mkdir(parents=True)
    for file in DEBIAN.glob("*.*"):
        shutil.copy(file, root)
    nltk.data.path.append(str(data))  # NLTK reads from its data folders only
    (root / "lexnames").write_text("\n".join(_LEXNAMES) + "\n")
    (root / "index.sense").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wordnet.ensure_loaded()
    yield WordNetLemmatizer().lemmatize
    nltk.data.path.remove(str(data))


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.verify)])
def test_identical_lemmas(nltk_lemmatize, every: int) -> None:
    words = sorted(_nouns())[::every]
    plurals = [word + ending for word in words for ending in ("s", "es", "ing")]
    irregular = ["men", "women", "children", "feet", "wives", "geese", "mice", "ass", "us", "was", "series", "axes"]
    for word in [*words, *plurals, *irregular, "xyzzy", "", "don't", "step-sons"]:
        assert lemmatize(word) == nltk_lemmatize(word), word


def test_by_hand() -> None:
    assert lemmatize("weddings") == "wedding"
    assert lemmatize("wives") == "wife"
    assert lemmatize("ass") == "as"  # therefore the attribute measure looks at the word itself, too
    assert lemmatize("qwxz") == "qwxz"
    assert is_noun("dogs")
    assert not is_noun("running's")
