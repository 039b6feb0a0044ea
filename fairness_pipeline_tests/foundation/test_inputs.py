"""Inputs are hashed as JSON, and reading a file that was not declared is refused."""

import gzip
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import UndeclaredRead, declared, freely, only, remembered
from fairness_pipeline.foundation.inputs import DataFile, File, canonical, files_of, optional, unhashed
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.side_by_side import allow_cores, in_processes, in_threads
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons import dictionary, lemmas
from fairness_pipeline.measures.dialogue.attribute_words import AttributeWordScorer
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.workspace.distinct import HERE, each_distinct

WORDS = dictionary.FILES[1]


class Sizes(Specification):
    width: int
    note: str | None = None
    seconds: float = 1.0
    unhashed = frozenset({"seconds"})


@dataclass(frozen=True)
class Narrow:
    width: int


@dataclass(frozen=True)
class Wide(Narrow):
    height: int
    place: str = unhashed("")
    later: str | None = optional()


def test_inputs_are_hashed_by_their_runtime_type() -> None:
    """A subclass's fields count where the base class is declared, too: pydantic would leave them out."""
    assert canonical((Wide(1, 2, "elsewhere"),)) == [{"width": 1, "height": 2}]
    assert canonical(Wide(1, 2, later="now")) == {"width": 1, "height": 2, "later": "now"}
    assert canonical({"sizes": Sizes(width=3, seconds=9)}) == {"sizes": {"width": 3}}
    assert canonical(File(Path("/x/labels.csv"), "2c26")) == "2c26"


@dataclass(frozen=True)
class Labels:
    classes: Mapping[str, int]


def test_the_order_of_a_mapping_counts() -> None:
    """It numbers the classes; an alphabetical mapping is hashed as in earlier versions."""
    assert canonical(Labels({"bad": 1, "good": 2})) == {"classes": {"bad": 1, "good": 2}}
    assert canonical(Labels({"bad": 1, "good": 2})) != canonical(Labels({"good": 2, "bad": 1}))


@pytest.mark.parametrize(
    "value", [{1, 2}, Path("x"), print, object(), lambda part: part], ids=lambda example: type(example).__name__
)
def test_values_that_cannot_be_hashed_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="is no input"):
        canonical({"of": [value]})


def test_a_dataclass_that_is_not_frozen_is_refused() -> None:
    @dataclass
    class Loose:
        width: int

    with pytest.raises(TypeError, match=r"Loose.*is no input"):
        canonical(Loose(1))


def test_a_value_that_inputs_share_is_turned_into_json_once() -> None:
    known: dict[int, tuple[object, Any]] = {}
    shared = Sizes(width=1)
    first, second = canonical({"a": shared}, known), canonical({"b": shared}, known)
    assert first["a"] is second["b"]


def test_files_are_found_at_any_depth_of_the_inputs(tmp_path: Path) -> None:
    file, data = File(tmp_path, "1"), DataFile(WORDS, "2")
    files = [*files_of({"a": (file, {"b": AttributeWordScorer({"x": ("y",)}, (data,))}), "c": PolitenessScorer()})]
    assert files == [file, data]


def test_a_scorer_is_pickled_without_its_loaded_lexicon() -> None:
    scorer = AttributeWordScorer({"family": ("wedding",)})
    assert scorer(pa.table({"text": ["two weddings"]}))["family"].to_pylist() == [1]
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy == scorer
    assert vars(copy).keys() < vars(scorer).keys()


def size_of(name: str) -> int:
    with gzip.open(data_file(name), "rb") if name.endswith("gz") else data_file(name).open("rb") as stream:
        return len(stream.read())


@pytest.fixture
def two_cores() -> Iterator[None]:
    allow_cores(lambda: 2)
    yield
    allow_cores(lambda: 1)


def test_a_file_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    with only([DataFile.of(WORDS)]):
        assert size_of(WORDS)
        (tmp_path / "own.txt").write_text("what lies elsewhere is nobody's data file")
    refused = pytest.raises(UndeclaredRead, match="wordnet/noun.exc is read but is not an input of the asset")
    with refused, only([DataFile.of(WORDS)]):
        size_of("wordnet/noun.exc")
    with refused, only([DataFile.of(WORDS)]), suppress(FairnessError):
        size_of("wordnet/noun.exc")  # refused even where the caller suppresses the error
    with only([DataFile.of(WORDS)]), freely():
        assert size_of("wordnet/noun.exc")
    with only([File(data_file(WORDS).parent, "a folder")]):
        assert size_of("lexicon/refusals.yaml")
    assert size_of("wordnet/noun.exc")
    assert declared() is None


def test_an_undeclared_file_is_refused_in_threads_and_processes_too(two_cores: None) -> None:
    names = [WORDS, "wordnet/noun.exc"]
    for read_all in (lambda: list(in_threads(size_of, iter(names))), lambda: list(in_processes(size_of, names))):
        assert all(read_all())
        with pytest.raises(UndeclaredRead, match="noun.exc"), only([DataFile.of(WORDS)]):
            read_all()


def test_a_warm_cache_hides_nothing() -> None:
    """A lexicon that one asset has loaded is refused to the next, which did not declare it."""
    assert dictionary.is_word("stopped")
    assert lemmas.lemmatize("weddings") == "wedding"
    for look_up in (partial(dictionary.is_word, "stopped"), partial(lemmas.lemmatize, "weddings")):
        with pytest.raises(UndeclaredRead, match="wordnet"), only([DataFile.of(WORDS)]):
            look_up()
    with only(lemmas.files()):
        assert lemmas.lemmatize("weddings") == "wedding"


def test_a_remembered_value_does_not_outlive_a_change() -> None:
    calls: list[int] = []

    @remembered(1)
    def loaded() -> int:
        calls.append(1)
        return len(calls)

    for sha256, expected in (("a", 1), ("a", 1), ("b", 2)):
        with only([DataFile(WORDS, sha256)]):
            assert loaded() == expected


def test_a_scorer_that_does_not_declare_its_lexicon_is_refused() -> None:
    texts = pa.array(["two weddings", "a car"])
    with pytest.raises(UndeclaredRead, match="wordnet"), only(()):
        each_distinct(texts, AttributeWordScorer({"family": ("wedding",)}), engine=HERE)
    scorer = AttributeWordScorer({"family": ("wedding",)})
    with only([*files_of(scorer)]):
        assert each_distinct(texts, scorer, engine=HERE)["family"].to_pylist() == [1, 0]


def test_a_data_file_holds_the_checksum_of_its_content() -> None:
    assert DataFile.of(WORDS).sha256 == checksum(data_file(WORDS))
