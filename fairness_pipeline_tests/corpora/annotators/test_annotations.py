"""Labels of several people: tables and exports as users have them, and what is refused, by file and line."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus, AnnotationLabels, Simulated
from fairness_pipeline.corpora.annotators.annotations import read_annotated
from fairness_pipeline.corpora.annotators.simulated_annotations import simulate, true_contrast
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load

LABELS = [("t1", "ann", "yes"), ("t1", "bob", "no"), ("t2", "ann", "yes"), ("t2", "bob", "yes"), ("t2", "cy", "no")]
PEOPLE = [("ann", "f", "31"), ("bob", "m", "24"), ("cy", "", "19")]
ITEMS = [("t1", "first", "yes", "train"), ("t2", "second", "", "test")]


def write(path: Path, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Path:
    """Writes a table in the format that the file's ending names."""
    records = [dict(zip(names, row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        with path.open("w", newline="") as stream:
            csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([names, *rows])
    return path


def declared(folder: Path, form: str = ".csv", **changes: Any) -> AnnotatedCorpus:
    """A corpus of a user's three tables, with the user's column names."""
    labels, people, items = (
        changes.pop(name, default) for name, default in (("rows", LABELS), ("people", PEOPLE), ("of", ITEMS))
    )
    files = {
        "annotations": [
            {
                "path": str(write(folder / f"labels{form}", ("id", "who", "said"), labels)),
                "columns": {"item": "id", "annotator": "who", "label": "said"},
            }
        ],
        "annotators": {"path": str(write(folder / f"people{form}", ("who", "sex", "years"), people)), "annotator": "who"},
        "items": {
            "path": str(write(folder / f"items{form}", ("id", "words", "truth", "part"), items)),
            "columns": {"item": "id", "text": "words", "gold": "truth", "split": "part"},
        },
        "categories": {
            "gender": {"column": "sex", "a": {"name": "women", "values": ["f"]}, "b": {"name": "men", "values": ["m"]}},
            "age": {"column": "years", "a": {"name": "young", "between": [0, 25]}, "b": {"name": "old", "between": [26, 99]}},
        },
    }  # fmt: skip
    required = {
        "task": "rude",
        "labels": {"positive": ["yes"], "negative": ["no"]},
        "licence": "ours",
        "citation": "us",
    }
    return AnnotatedCorpus.model_validate({**required, **files, **changes})


@pytest.mark.parametrize("form", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_three_tables_of_a_user(form: str, tmp_path: Path) -> None:
    annotated = read_annotated(declared(tmp_path, form), tmp_path)
    assert [tuple(row.values()) for row in annotated.annotations.to_pylist()] == [
        (1, "t1", "ann", 1), (1, "t1", "bob", 0), (1, "t2", "ann", 1), (1, "t2", "bob", 1), (1, "t2", "cy", 0)
    ]  # fmt: skip
    items = {row["item_id"]: (row["text"], row["split"], row["gold"]) for row in annotated.items.to_pylist()}
    assert items == {"t1": ("first", "train", 1), "t2": ("second", "test", None)}
    groups = {(row["annotator_id"], row["category"]): row["group"] for row in annotated.annotators.to_pylist()}
    assert groups == {
        ("ann", "gender"): "women", ("bob", "gender"): "men", ("cy", "gender"): None,
        ("ann", "age"): "old", ("bob", "age"): "young", ("cy", "age"): "young",
    }  # fmt: skip


def test_ratings_repeats_and_people_who_are_not_listed(tmp_path: Path) -> None:
    rated = [("t1", "ann", "4"), ("t1", "ann", "1"), ("t1", "bob", "2.5"), ("t2", "dee", "3.0"), ("t2", "bob", "")]
    corpus = declared(
        tmp_path, rows=rated, labels={"at_least": 3, "ignored": [""]}, repeated="first", unlisted="unknown",
        items=None,
    )  # fmt: skip
    annotated = read_annotated(corpus, tmp_path)
    assert annotated.annotations["label"].to_pylist() == [1, 0, 1]
    assert annotated.left_out == {"of an item again by the same annotator": 1, "of an ignored label": 1}
    assert {r["group"] for r in annotated.annotators.to_pylist() if r["annotator_id"] == "dee"} == {None}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rows": [*LABELS, ("t1", "ann", "maybe")]}, r"labels.csv, line 7: label 'maybe' is not mapped"),
    ({"rows": [*LABELS, ("t1", "ann", "no")]}, r"labels.csv, line 7: 'ann' labelled 't1' already \(line 2\)"),
    ({"rows": [*LABELS, ("t1", "dee", "no")]}, r"labels.csv, line 7: annotator 'dee' is not in .*people.csv"),
    ({"rows": [*LABELS, ("t9", "ann", "no")]}, r"labels.csv, line 7: item 't9' is not in .*items.csv"),
    ({"rows": [*LABELS, ("", "ann", "no")]}, r"labels.csv, line 7: column 'id' is empty"),
    ({"rows": []}, r"labels.csv: expected labels, found none"),
    ({"of": [*ITEMS, ("t3", "", "", "train")]}, r"items.csv, line 4: item 't3' has no label; 1 such items"),
    ({"of": [*ITEMS, ("t2", "", "", "train")]}, r"items.csv, line 4: item 't2' stands there already"),
    ({"of": [("t1", "", "so so", "train"), ITEMS[1]]}, r"items.csv, line 2: gold label 'so so' is of no class"),
    ({"people": [("ann", "x", "31"), *PEOPLE[1:]]}, r"people.csv, line 2: 'sex' is 'x', which is in no group"),
    ({"people": [*PEOPLE, ("ann", "m", "31")]}, r"line 5: annotator 'ann' is in another group of 'gender'"),
    ({"people": [("ann", "f", "31"), ("bob", "f", "24"), PEOPLE[2]]}, r"'gender' has one group only: .* 'men'"),
    ({"people": []}, r"people.csv: expected annotators, found none"),
    ({"people": [("zoe", "f", "3")], "unlisted": "unknown"}, r"people.csv: names nobody who labelled anything"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_errors_name_file_and_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FairnessError, match=message):
        read_annotated(declared(tmp_path, **changes), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"simulated": {"shape": "moon", "categories": {"x": {"sensitivity": [0, 1], "specificity": [0, 1]}}}}, "expected one of 'simulated' and 'annotations'"),
        ({"labels": {"at_least": 3, "positive": ["1"]}}, "use either 'at_least' or 'positive' and 'negative'"),
        ({"categories": {"x": {"column": "x", "a": {"name": "a", "between": [1, 4]}, "b": {"name": "b", "between": [4, 9]}}}}, "'a' and 'b' overlap"),
        ({"labels": {"positive": ["1"], "negative": ["1"]}}, "is in 'labels.positive' and in 'labels.negative'"),
        ({"labels": {"classes": {"b": ["1"], "a: b": ["2"], "c": ["3"]}}, "categories": {
            name: {"column": name, "a": {"name": "a", "values": ["a"]}, "b": {"name": "b", "values": ["b"]}} for name in ("x", "x: a")
        }}, "two pairs of a category and a class have the same name"),
        ({"categories": {"x": {"column": "x", "a": {"name": "a"}, "b": {"name": "b", "values": ["b"]}}}}, "expected a list of values, or 'between'"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        declared(tmp_path, **changes)


def exported(path: Path, form: str, **file: Any) -> AnnotatedCorpus:
    """A corpus of one exported file."""
    return AnnotatedCorpus.model_validate(
        {
            "task": "rude", "annotations": [{"path": str(path), "form": form, **file}], "licence": "l", "citation": "c",
            "labels": {"positive": ["rude", "accept"], "negative": ["fine", "reject"]},
        }
    )  # fmt: skip


def answer(annotator: Any, choice: str, name: str = "q", **more: Any) -> dict[str, Any]:
    """An annotation as Label Studio exports it."""
    return {
        "completed_by": annotator, "result": [{"from_name": name, "type": "choices", "value": {"choices": [choice]}}], **more
    }  # fmt: skip


def test_label_studios_export(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    tasks: list[dict[str, Any]] = [
        {"id": 7, "data": {"text": "hey"}, "annotations": [answer(1, "rude"), answer({"id": 2, "email": "x"}, "fine")]},
        {
            "id": 8, "data": {"text": "ho"},
            "annotations": [answer(1, "fine"), answer(2, "rude", was_cancelled=True), {"completed_by": 3, "result": []}],
        },
    ]  # fmt: skip
    path.write_text(json.dumps(tasks))
    annotated = read_annotated(exported(path, "label_studio"), tmp_path)
    rows = [(r["item_id"], r["annotator_id"], r["label"]) for r in annotated.annotations.to_pylist()]
    assert rows == [("7", "1", 1), ("7", "2", 0), ("8", "1", 0)]
    assert {row["item_id"]: row["text"] for row in annotated.items.to_pylist()} == {"7": "hey", "8": "ho"}
    assert annotated.left_out == {"skipped by the annotator": 1, "without an answer": 1}
    tasks[0]["annotations"].append(answer(3, "fine", name="other"))
    tasks[0]["annotations"][2]["result"] += answer(3, "rude")["result"]
    path.write_text(json.dumps(tasks))
    with pytest.raises(FairnessError, match=r"export.json, object 1: asks other, q; say which: question: NAME"):
        read_annotated(exported(path, "label_studio"), tmp_path)
    assert read_annotated(exported(path, "label_studio", question="q"), tmp_path).annotations.num_rows == 4
    rated = [
        {
            "id": 1,
            "data": {"text": "a"},
            "annotations": [{"completed_by": 4, "result": [{"type": "rating", "value": {"rating": 4}}]}],
        }
    ]
    path.write_text(json.dumps([*rated, {"id": 2, "data": {}, "annotations": []}]))
    annotated = read_annotated(
        exported(path, "label_studio").model_copy(update={"labels": AnnotationLabels(at_least=3)}), tmp_path
    )
    assert annotated.annotations["label"].to_pylist() == [1] and annotated.left_out == {
        "tasks that nobody annotated": 1
    }
    rated[0]["annotations"][0]["result"][0] = {"type": "brush", "value": {"rle": []}}
    path.write_text(json.dumps(rated))
    with pytest.raises(FairnessError, match="object 1: expected an answer of choices, rating, number, found brush"):
        read_annotated(exported(path, "label_studio"), tmp_path)
    path.write_text(json.dumps([{"id": 1, "text": "JSON-MIN"}]))
    with pytest.raises(FairnessError, match=r"object 1: expected a task of Label Studio's JSON export"):
        read_annotated(exported(path, "label_studio"), tmp_path)


def test_prodigys_export(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    examples: list[dict[str, Any]] = [
        {"text": "hey", "_input_hash": -5, "answer": "accept", "_annotator_id": "set-ann"},
        {"text": "hey", "_input_hash": -5, "answer": "reject", "_session_id": "set-bob"},
        {"text": "ho", "_input_hash": 6, "answer": "ignore", "_annotator_id": "set-ann"},
        {"text": "ho", "_input_hash": 6, "answer": "accept", "accept": ["fine"], "_annotator_id": "set-bob"},
    ]
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    annotated = read_annotated(exported(path, "prodigy"), tmp_path)
    rows = [(r["item_id"], r["annotator_id"], r["label"]) for r in annotated.annotations.to_pylist()]
    assert rows == [("-5", "set-ann", 1), ("-5", "set-bob", 0), ("6", "set-bob", 0)]
    assert annotated.left_out == {"ignored by the annotator": 1}
    path.write_text(json.dumps({"text": "hey", "answer": "accept"}) + "\n")
    with pytest.raises(FairnessError, match=r"export.jsonl, line 1: expected an example of Prodigy's"):
        read_annotated(exported(path, "prodigy"), tmp_path)


def test_wikipedia_detox_as_it_was_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers as the release has them: floats for labels, comments with marks for line ends, people without answers."""
    monkeypatch.setenv("WIKIPEDIA_DETOX", str(tmp_path))
    write(
        tmp_path / "attack_annotations.tsv",
        ("rev_id", "worker_id", "quoting_attack", "attack"),
        [("37675", "1362", "0.0", "0.0"), ("37675", "2408", "0.0", "1.0"), ("44816", "2408", "0.0", "1.0")],
    )
    write(
        tmp_path / "attack_annotated_comments.tsv",
        ("rev_id", "comment", "year", "split"),
        [("37675", "`-NEWLINE_TOKENThis", "2002", "train"), ("44816", "`NEWLINE_TOKEN", "2002", "test")],
    )
    write(
        tmp_path / "attack_worker_demographics.tsv",
        ("worker_id", "gender", "english_first_language", "age_group", "education"),
        [("2408", "male", "0", "30-45", "hs"), ("5", "female", "1", "Under 18", "none"), ("1362", "female", "1", "", "some")],
    )  # fmt: skip
    corpus = load(AnnotatedCorpus, data_file("corpora/detox_attack.yaml"))
    with pytest.raises(
        FairnessError, match="category 'age' has one group only: nobody who labelled is in 'under 30'; look"
    ):
        read_annotated(corpus, tmp_path)
    with (tmp_path / "attack_worker_demographics.tsv").open("a") as stream:
        stream.write("9\tfemale\t1\t18-30\tmasters\n")
    with (tmp_path / "attack_annotations.tsv").open("a") as stream:
        stream.write("44816\t9\t0.0\t0.0\n44816\t10\t0.0\t0.0\n")
    annotated = read_annotated(corpus, tmp_path)
    assert annotated.annotations["label"].to_pylist() == [0, 1, 1, 0, 0]
    assert annotated.items["split"].to_pylist() == ["train", "test"]
    unknown = [r["annotator_id"] for r in annotated.annotators.to_pylist() if r["group"] is None]
    assert sorted(unknown) == ["10", "10", "10", "10", "1362"]


def test_simulated_labels_are_as_biased_as_declared() -> None:
    settings = load(AnnotatedCorpus, data_file("corpora/circle.yaml")).simulated
    assert settings is not None
    simulated = simulate(settings.model_copy(update={"instances": 20_000, "labels": 10}), 1)
    assert len(simulated.points) == 60_000 and np.array_equal(np.unique(simulated.truth), [0, 1])
    truth = simulated.truth[:40_000, None].repeat(10, axis=1)
    for value, goal, rates in ((1, 1, simulated.sensitivity), (0, 0, simulated.specificity)):
        mask = truth == value
        observed = np.bincount(simulated.annotator[mask], simulated.label[mask] == goal) / np.bincount(
            simulated.annotator[mask]
        )
        assert np.abs(observed - rates).max() < 0.03
    for column, (name, effects) in enumerate(settings.categories.items()):
        assert effects.sensitivity in ((0.7, 0.5), (0.9, 0.4)), name
        assert set(simulated.groups[:, column]) == {0, 1}
    totals = -0.3 + np.array([0.7, 0.5])[simulated.groups[:, 0]] + np.array([0.9, 0.4])[simulated.groups[:, 1]]
    inside = (totals > 0.3) & (totals < 0.7)
    assert np.abs((simulated.sensitivity - totals)[inside].mean()) < 0.1
    assert simulated.sensitivity.max() == 0.98 and not np.array_equal(simulated.label, simulate(settings, 2).label)


def test_the_real_corpora(corpora: Path) -> None:
    counts = {
        "popquorn_offensiveness": (13_036, 1500, 262),
        "social_bias_frames": (11_224, 4577, 197),
        "duck_identification": (4212, 108, 39),
        "product_matching": (24_945, 8315, 176),
        "snow_rte": (8000, 800, 164),
        "snow_temporal": (4620, 462, 76),
    }
    for name, expected in counts.items():
        path = data_file(f"corpora/{name}.yaml")
        annotated = read_annotated(load(AnnotatedCorpus, path), path.parent)
        people = len(set(annotated.annotators["annotator_id"].to_pylist()))
        assert (annotated.annotations.num_rows, annotated.items.num_rows, people) == expected
    with gzip.open(corpora / "crowdsourcing" / "social_bias_frames_v2_dev.csv.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["offensiveYN"] in ("0.0", "1.0")]
    assert len({(row["post"], row["WorkerId"]) for row in rows}) == 11_224


def test_two_levels_of_u() -> None:
    """Specificities are 0.3 above sensitivities, as u is; the groups' clipped probabilities differ by less than their sums."""
    settings = Simulated.model_validate(
        {"shape": "circle", "level": [-0.4, -0.1], "annotators": 400, "labels": 4, "individual_sd": 0.05,
         "categories": {"one": {"sensitivity": [0.9, 0.9], "specificity": [0.9, 0.9]}}}
    )  # fmt: skip
    simulated = simulate(settings, 1)
    assert simulated.specificity.mean() - simulated.sensitivity.mean() == pytest.approx(0.3, abs=0.01)
    beyond = settings.model_copy(
        update={
            "level": 0.0,
            "categories": {"one": settings.categories["one"].model_copy(update={"sensitivity": (1.2, 0.9)})},
        }
    )
    groups = np.arange(400)[:, None] % 2
    assert true_contrast(beyond, groups, "one", "sensitivity") == pytest.approx(0.98 - 0.9, abs=0.002)
