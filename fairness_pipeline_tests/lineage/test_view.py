"""An asset receives the object that is hashed, its declared tables, and nothing else."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pyarrow as pa
import pytest

from fairness_pipeline.annotation.inference import INFERRED
from fairness_pipeline.defs.assets import Log
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import UndeclaredRead
from fairness_pipeline.foundation.inputs import DataFile, canonical
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.lexicons.dimensions import ExchangedWords
from fairness_pipeline.lineage.assets import Asset, Result
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.making import make
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.state import State
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.project.project import Project
from fairness_pipeline.studies.annotator_bias.lineage import Inference, truth_inference
from fairness_pipeline.workspace.lake import Card, Lake, fingerprint
from fairness_pipeline_tests.commands import change, planned, run
from fairness_pipeline_tests.lineage import contents

KEY = {"dimension": "gender", "model": "seq2seq"}
OF_CORPUS = {"corpus": "tiny", "dimension": "gender"}


def override(data: Path, name: str) -> Path:
    """Copies a data file that ships to the folder that overrides it."""
    file = data / name
    file.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(data_file(name), file))


def reasons() -> dict[str, str]:
    """The reasons of partitions whose own inputs have changed, without reports."""
    lines = (
        line.split(": ", 1)
        for line in run("--dry-run").stdout.split(" partitions would run")[0].splitlines()
        if ": " in line
    )
    return {label: why for label, why in lines if "is made again" not in why and not label.endswith("_report")}


def test_a_verdict_follows_the_words_that_are_masked(made: Project, data: Path) -> None:
    """Two more pairs change how answers are masked, and therefore offence; its table once stayed the same."""
    change(override(data, "dimensions/gender.yaml"), lambda document: document["pairs"].extend([["gnome", "gnomess"]]))
    changed = reasons()
    for table in ("contexts tiny gender", "politeness gender seq2seq", "dialogue_significance gender seq2seq"):
        assert "gender.yaml: pairs changed" in changed[table]
    assert not [label for label in changed if "dialect" in label or label.startswith(("dialogue_models", "refusal"))]


def test_contexts_follow_the_words_of_the_dictionary(made: Project, data: Path) -> None:
    file = override(data, "lexicon/common_words.txt")
    file.write_text("\n".join(file.read_text(encoding="utf-8").splitlines()[:-1]), encoding="utf-8")
    changed = "lexicon/common_words.txt changed"
    assert reasons() == {"contexts tiny gender": changed, "named_groups gender seq2seq": changed}


def test_a_further_column_makes_a_table_stale(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    lineage = Lineage(made)
    state = State(lineage, Lake(made.workspace))
    assert state.changes("responses", KEY) == []
    asset = lineage.assets["responses"]
    lineage.assets["responses"] = replace(asset, schema=asset.schema.append(pa.field("tone", pa.string())))
    assert State(lineage, Lake(made.workspace)).changes("responses", KEY) == ["schema.tone: None -> string"]
    described = asset.schema.set(0, asset.schema.field(0).with_metadata({"text": "in other words"}))
    lineage.assets["responses"] = replace(asset, schema=described)
    assert State(lineage, Lake(made.workspace)).changes("responses", KEY) == []


def test_each_measure_has_its_own_version(made: Project) -> None:
    (length,) = (measure for measure in measures() if measure.table == "length")
    before = {measure.table: canonical(_scoring(measure, made)) for measure in measures()}
    object.__setattr__(length, "version", "another")
    try:
        after = {measure.table: canonical(_scoring(measure, made)) for measure in measures()}
        assert [table for table in before if before[table] != after[table]] == ["length"]
        assert {label.split()[0] for label in reasons()} == {
            "length",
            "instrument_check",
            "parrot_check",
        }  # both checks score texts with it
    finally:
        object.__setattr__(length, "version", type(length).version)


def _scoring(measure: Any, project: Project) -> object:
    part = project.parts["dialogue_fairness"]
    return measure.scoring(part.settings.measures, part.dimensions["gender"])


def test_force_makes_the_selected_asset_alone(made: Project) -> None:
    assert "2 made" in run("--select", "length", "--force").stdout  # in both dimensions
    assert planned() == []


def test_cards_of_earlier_versions_are_taken_over(made: Project) -> None:
    """They name no schema, and keys that no longer count: answers that were paid for are not asked for again."""
    state = State(Lineage(made), Lake(made.workspace))
    current = state.described("responses", KEY, state.given("responses", KEY))
    earlier = {name: value for name, value in current.items() if name != "schema"}
    earlier["settings"] = {**current["settings"], "since_removed": None}
    assert state.made_from("responses", KEY, Card(fingerprint(earlier), earlier), current)
    with_round = {**earlier, "settings": {**earlier["settings"], "round": "yesterday"}}
    assert not state.made_from("responses", KEY, Card(fingerprint(with_round), with_round), current)


class _Made:
    """Makes one asset of the tiny profile with changed attributes."""

    def __init__(self, project: Project, name: str, **changes: Any) -> None:
        self.lineage = Lineage(project)
        self.lineage.assets[name] = replace(self.lineage.assets[name], **changes)
        self._name = name

    def __call__(self, key: dict[str, str]) -> Any:
        return make(self.lineage, self._name, key, Log())


def test_a_file_that_is_no_input_is_refused(made: Project) -> None:
    asset = Lineage(made).assets["contexts"]

    def without_dictionary(part: Any, key: dict[str, str]) -> Any:
        search = asset.inputs(part, key)
        kept = tuple(file for file in search.words.files if "common_words" not in file.name)
        return replace(search, words=replace(search.words, files=kept))

    before = Lake(made.workspace).card("contexts", OF_CORPUS).content
    with pytest.raises(UndeclaredRead, match="lexicon/common_words.txt is read but is not an input of the asset"):
        _Made(made, "contexts", inputs=without_dictionary)(OF_CORPUS)
    assert Lake(made.workspace).card("contexts", OF_CORPUS).content == before


def test_a_function_that_changes_its_inputs_is_refused(made: Project) -> None:
    part = Lineage(made).part("length")
    settings = {"least": 1}

    def careless(inputs: dict[str, int], answers: pa.Table, run: Run) -> Result:
        inputs["least"] = 2
        return Result(answers)

    assert part is not None
    with pytest.raises(FairnessError, match="its inputs changed while it was made"):
        _Made(made, "length", inputs=lambda part, key: settings, function=careless)(KEY)


def test_a_report_cannot_read_undeclared_tables(made: Project) -> None:
    asset = Lineage(made).assets["dialogue_fairness_report"]
    fewer = {name: read for name, read in asset.reads.items() if name != "dialogue_breakdown"}
    with pytest.raises(UndeclaredRead, match="reads dialogue_breakdown, and does not declare it"):
        _Made(made, "dialogue_fairness_report", reads=fewer)({})


def test_arguments_must_match_the_declared_tables() -> None:
    from fairness_pipeline.studies.annotator_bias.lineage import annotations, asset

    with pytest.raises(TypeError, match="takes labels, who, and reads labels"):

        @asset(inputs=lambda part, key: 1, code_version="1", reads={"labels": annotations})
        def careless(inputs: int, labels: pa.Table, who: pa.Table) -> Result: ...


def test_an_asset_is_a_function() -> None:
    """It works in a notebook, without a profile and without a lake."""
    labels = pa.table(
        {"draw": [1] * 6, "item_id": list("aabbcc"), "annotator_id": list("xyxyxy"), "label": [1, 1, 0, 0, 1, 0]}
    )
    annotators = pa.table(
        {"draw": [1, 1], "annotator_id": ["x", "y"], "category": ["g", "g"], "group": ["a", "b"], "place": [0, 1]}
    )
    result = truth_inference(Inference("mv", {}, (), 2), labels, annotators, Run())
    assert result.content.select(INFERRED.names)["item_id"].to_pylist() == ["a", "b", "c"]
    assert result.content["label"].to_pylist()[:2] == [1, 0]


# One run of a small profile: what the assets of all studies read of their inputs, and which libraries they use.


class Watched:
    """What the watched functions of all assets declared, read and used.

    Attributes:
        declared: The hashed fields of the inputs, as (class, field).
        read: The fields that the functions read.
        used: The libraries of `DECIDING` that the functions' code refers to, by asset.
        named: The libraries whose versions are among the inputs, by asset.
        contents: The version and the hash of each asset's tables.
    """

    def __init__(self) -> None:
        self.declared: set[tuple[str, str]] = set()
        self.read: set[tuple[str, str]] = set()
        self.used: dict[str, set[str]] = {}
        self.named: dict[str, set[str]] = {}
        self.contents: dict[str, dict[str, str]] = {}


DECIDING = {
    "scipy": "scipy",
    "krippendorff": "krippendorff",
    "sacrebleu": "sacrebleu",
    "vaderSentiment": "vaderSentiment",
    "profanity_check": "alt-profanity-check",
}
"""The modules of libraries whose versions decide numbers, with the libraries' names."""


@contextmanager
def _watching(seen: Watched) -> Iterator[None]:
    """Watches every asset's function in this process."""
    assets = _all_assets()
    originals = {asset: asset.function for asset in assets}
    classes: dict[type, Any] = {}
    inside = [False]

    def follow(asset: Asset) -> Callable[..., Result]:
        function = originals[asset]

        @wraps(function)
        def call(given: object, *arguments: Any, **named: Any) -> Result:
            for kind in _dataclasses(given):
                if kind not in classes:
                    classes[kind] = kind.__getattribute__
                    kind.__getattribute__ = _noting(kind, classes[kind], seen.read, inside)  # type: ignore[method-assign]
                seen.declared |= {
                    (kind.__name__, field.name) for field in fields(kind) if not field.metadata.get("unhashed")
                }
            seen.named.setdefault(asset.name, set()).update(asset.libraries, _versions(canonical(given)))
            codes: set[CodeType] = set()
            inside[0] = True
            sys.setprofile(lambda frame, event, argument: _note(codes, frames, frame) if event == "call" else None)
            try:
                return function(given, *arguments, **named)
            finally:
                sys.setprofile(None)
                inside[0] = False
                seen.used.setdefault(asset.name, set()).update(*(frames[code] for code in codes))

        return call

    frames: dict[CodeType, set[str]] = {}
    for asset in assets:
        object.__setattr__(asset, "function", follow(asset))
    try:
        yield
    finally:
        for asset in assets:
            object.__setattr__(asset, "function", originals[asset])
        for kind, original in classes.items():
            kind.__getattribute__ = original  # type: ignore[method-assign]


def _all_assets() -> list[Asset]:
    from fairness_pipeline.lineage.assets import declared_in
    from fairness_pipeline.project.study import studies

    return [asset for study in studies() for asset in declared_in(study.load("lineage")) if asset.kind == "table"]


def _dataclasses(value: object) -> Iterator[type]:
    """The classes of the dataclasses among the inputs."""
    if is_dataclass(value):
        yield type(value)
        for field in fields(value):
            yield from _dataclasses(getattr(value, field.name))
    elif isinstance(value, dict):
        for part in value.values():
            yield from _dataclasses(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _dataclasses(part)


def _noting(kind: type, original: Any, read: set[tuple[str, str]], inside: list[bool]) -> Any:
    names = {field.name for field in fields(kind)}

    def get(self: object, name: str) -> Any:
        if inside[0] and name in {*names, "__dict__"}:
            read.update((type(self).__name__, field) for field in (names if name == "__dict__" else [name]))
        return original(self, name)

    return get


def _versions(inputs: Any) -> set[str]:
    """The libraries whose versions are among the inputs."""
    if isinstance(inputs, dict):
        versions = set(inputs.get("versions") or ())
        return versions.union(*map(_versions, inputs.values()))
    return set().union(*map(_versions, inputs)) if isinstance(inputs, list) else set()


def _note(codes: set[CodeType], frames: dict[CodeType, set[str]], frame: FrameType) -> None:
    """Notes the libraries that a function of this project refers to."""
    code = frame.f_code
    if code in codes or code.co_name == "<module>" or "/fairness_pipeline/" not in code.co_filename:
        return
    codes.add(code)
    if code not in frames:
        frames[code] = {library for name in code.co_names if (library := _library(name, frame.f_globals))}


def _library(name: str, scope: dict[str, Any]) -> str | None:
    value = scope.get(name)
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or name
    return DECIDING.get(str(module).partition(".")[0])


HASHED_ONLY = {
    "version",
    "versions",
    "files",
    "grammar",
    "folder",
    "round",
    "trained_in",
    "decoding",
    "name",
    "sha256",
    "max_tokens",
}
"""Fields that no function reads by design: they identify code, libraries, files, rounds of questions, and values that
are read from the model next to them."""
ELSEWHERE = {
    ("Annotating", "dimension"), ("Search", "dimension"),  # for an error message
    ("Annotating", "source"), ("Splitting", "source"),  # read only for a corpus of files
    ("Answering", "model"), ("Perplexities", "model"), ("Perplexities", "logprobs"), ("Predicting", "settings"),
    ("Estimated", "published"), ("Scored", "agreement"),  # read by methods that model groups, or learn
    ("PolitenessScorer", "revision"), ("PolitenessScorer", "label"), ("PolitenessScorer", "labelled"),
}  # fmt: skip
"""Fields that are read in other profiles than the small one."""


def _declared_fields_are_read(watched: Watched) -> None:
    """A field that nothing reads makes partitions stale for no reason."""
    unread = {field for field in watched.declared - watched.read - ELSEWHERE if field[1] not in HASHED_ONLY}
    assert len(watched.read) > 60
    assert not unread, sorted(unread)


def _libraries_that_decide_numbers_are_named(watched: Watched) -> None:
    # An interval that is a closed formula, and a matrix that holds counts; naming the library would ask and score again.
    closed = {"classifier_predictions": {"scipy"}, "politeness": {"scipy"}}
    missing = {
        name: lacking
        for name, used in watched.used.items()
        if (lacking := used - watched.named[name] - closed.get(name, set()))
    }
    assert len([name for name, used in watched.used.items() if used]) > 8
    assert not missing, missing


def _other_contents_have_another_version(watched: Watched) -> None:
    """After a change of an asset's tables raise its `code_version` (or a measure's `version`), and write the list."""
    listed = json.loads(contents.LISTED.read_text(encoding="utf-8"))
    write = "python -m fairness_pipeline_tests.lineage.contents"
    same = {name for name in listed if watched.contents.get(name, {}).get("version") == listed[name]["version"]}
    changed = [name for name in sorted(same) if watched.contents[name] != listed[name]]
    assert not changed, f"{', '.join(changed)}: other contents under the same code_version; raise it, then: {write}"
    assert watched.contents == listed, f"the list is of other versions; write it: {write}"


def test_all_studies_use_what_they_declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run of a small profile: its tables, the fields that its functions read, and the libraries that they use."""
    seen = Watched()
    with _watching(seen):
        seen.contents = contents.contents(contents.make(tmp_path, monkeypatch))
    _other_contents_have_another_version(seen)
    _declared_fields_are_read(seen)
    _libraries_that_decide_numbers_are_named(seen)


def test_an_unchanged_part_of_a_dimension_is_the_same(made: Project) -> None:
    gender = made.parts["dialogue_fairness"].dimensions["gender"]
    with_caveat = gender.model_copy(update={"caveats": ("another",)})
    assert canonical(gender.exchanged(senses=True)) == canonical(with_caveat.exchanged(senses=True))
    assert canonical(gender.masked) == canonical(with_caveat.masked)
    assert isinstance(gender.exchanged(), ExchangedWords)
    assert DataFile.of("lexicon/word_classes.yaml") in gender.exchanged(senses=True).files
