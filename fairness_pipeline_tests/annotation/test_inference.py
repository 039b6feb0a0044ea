"""Classifiers that learn from inferred labels and resume after a kill, and labels as a file."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairness_pipeline.annotation import inference
from fairness_pipeline.annotation.bias_estimates import of_model
from fairness_pipeline.annotation.inference import beside_gold, gold_of, inferred, predicted
from fairness_pipeline.annotation.item_classifiers import ItemClassifierSettings, PointClassifier, TextClassifier
from fairness_pipeline.annotation.label_files import write_labels
from fairness_pipeline.annotation.truth_inference.registry import METHODS, method, settings_of
from fairness_pipeline.corpora.annotators.annotations import ANNOTATIONS, ANNOTATORS, ITEMS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline_tests.annotation.test_group_anno import CIRCLE, drawn

SMALL = ItemClassifierSettings(embedding=8, hidden=8, epochs=4, learning_rate=0.02, batch=16, vocabulary=50)


def texts_of_two_words(items: int = 160) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Items whose text tells their truth, labelled by five people of two groups."""
    draw = np.random.default_rng(1)
    truth = draw.integers(0, 2, items)
    words = [f"a {'fine' if t else 'foul'} thing {draw.integers(9)}" for t in truth]
    rows = [
        {"item_id": f"t{i}", "text": words[i], "features": [], "split": "test" if i % 4 == 0 else "train", "gold": None}
        for i in range(items)
    ]
    labels = [
        {"item_id": f"t{i}", "annotator_id": f"r{r}", "label": int(truth[i] if draw.random() < 0.85 else 1 - truth[i])}
        for i in range(items)
        for r in range(5)
    ]
    annotators = [
        {"annotator_id": f"r{r}", "category": "age", "group": ("young", "old")[r % 2], "place": r % 2} for r in range(5)
    ]
    tables = ((labels, ANNOTATIONS), (annotators, ANNOTATORS), (rows, ITEMS))
    return tuple(
        pa.Table.from_pylist([{"draw": 1, **row} for row in records], schema=schema) for records, schema in tables
    )  # type: ignore[return-value]


@pytest.mark.parametrize("name", ["mv", "group_anno", "lfc_binary"])
def test_a_classifier_of_texts_learns_from_labels(name: str, tmp_path: Path) -> None:
    labels, annotators, items = texts_of_two_words()
    predictions = predicted(name, {}, labels, annotators, items, SMALL, 2, 7, tmp_path, None)
    gold = gold_of(items, labels, 0.7)
    assert 100 < len(gold) < 160  # items on which more than 70% agree
    guesses, truths = beside_gold(predictions, gold, "seed")
    assert len(guesses) == 2 and all((a == b).mean() > 0.9 for a, b in zip(guesses, truths, strict=True))
    assert predictions.num_rows == 80


@pytest.mark.parametrize("name", ["dawid_skene", "group_anno"])
def test_a_classifier_of_points_learns_once_from_each_draw(name: str, tmp_path: Path) -> None:
    annotated = drawn(draws=2, instances=150)
    predictions = predicted(
        name, {}, annotated.annotations, annotated.annotators, annotated.items, SMALL, 5, 7, tmp_path, None
    )
    assert sorted(set(zip(predictions["seed"].to_pylist(), predictions["draw"].to_pylist(), strict=True))) == [
        (1, 1),
        (2, 2),
    ]
    guesses, truths = beside_gold(predictions, gold_of(annotated.items, annotated.annotations, 0.8), "seed")
    assert np.mean([(a == b).mean() for a, b in zip(guesses, truths, strict=True)]) > 0.65


def test_a_killed_training_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, annotators, items = texts_of_two_words(60)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    whole = predicted("mv", {}, labels, annotators, items, SMALL, 3, 7, tmp_path / "whole", None)
    learned, calls = inference._learned, []

    def dies(*arguments: object) -> np.ndarray:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return learned(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inference, "_learned", dies)
    with pytest.raises(KeyboardInterrupt):
        predicted("mv", {}, labels, annotators, items, SMALL, 3, 7, tmp_path / "cut", None)
    again = predicted("mv", {}, labels, annotators, items, SMALL, 3, 7, tmp_path / "cut", None)
    assert again.equals(whole) and len(calls) == 4
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["seed-1.npy", "seed-2.npy", "seed-3.npy"]


def test_a_corpus_without_test_items_is_refused(tmp_path: Path) -> None:
    labels, annotators, items = texts_of_two_words(8)
    no_test_items = items.set_column(items.schema.get_field_index("split"), "split", pa.array(["train"] * 8))
    with pytest.raises(
        FairnessError, match="a classifier needs labelled items to learn from and others to test on: 40 labels, 0 test"
    ):
        predicted("mv", {}, labels, annotators, no_test_items, SMALL, 1, 7, tmp_path, None)


def test_soft_labels_weigh_as_much_as_they_say() -> None:
    """Soft labels teach their probabilities, to a classifier of points and to one of texts."""
    draw = np.random.default_rng(0)
    points = draw.normal(size=(400, 2))
    share = np.where(points[:, 0] > 0, 0.8, 0.3)
    classifier = PointClassifier(points, points, ItemClassifierSettings(gamma=0.2), 1)
    predictions = classifier(share)
    assert (
        abs(predictions[points[:, 0] > 0.5].mean() - 0.8) < 0.05
        and abs(predictions[points[:, 0] < -0.5].mean() - 0.3) < 0.05
    )
    texts = ["good"] * 100 + ["bad"] * 100
    text_classifier = TextClassifier(texts, ["good", "bad"], SMALL, 1)
    for _ in range(25):
        text_classifier(np.repeat([0.8, 0.3], 100))
    assert np.abs(text_classifier.predict() - [0.8, 0.3]).max() < 0.1


def test_labels_as_a_file(tmp_path: Path) -> None:
    annotated = drawn(draws=1)
    truths = inferred("group_anno", {}, annotated.annotations, annotated.annotators, None)
    estimates = of_model("group_anno", {}, annotated.annotations, annotated.annotators, CIRCLE, {}, None)
    for form in (".csv", ".jsonl", ".parquet"):
        path = tmp_path / f"labels{form}"
        tables = annotated.items, annotated.annotations, annotated.annotators
        assert write_labels(truths, estimates, *tables, CIRCLE, path).items == 800
    with (tmp_path / "labels.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == [
        "item_id", "text", "label", "probability", "said by category 0: group 0", "said by category 0: group 1",
        "said by category 1: group 0", "said by category 1: group 1", "labels", "share",
        "labels of category 0: group 0", "share of category 0: group 0", "labels of category 0: group 1",
        "share of category 0: group 1", "labels of category 1: group 0", "share of category 1: group 0",
        "labels of category 1: group 1", "share of category 1: group 1",
    ]  # fmt: skip
    first = [r for r in annotated.annotations.to_pylist() if r["item_id"] == rows[0]["item_id"]]
    assert int(rows[0]["labels"]) == len(first) == 4
    assert float(rows[0]["share"]) == np.mean([r["label"] for r in first])
    for row in rows:
        counts = [int(row[f"labels of category 0: group {g}"]) for g in (0, 1)]
        assert sum(counts) == 4 and [n == 0 for n in counts] == [
            not row[f"share of category 0: group {g}"] for g in (0, 1)
        ]
    with (tmp_path / "labels.jsonl").open(encoding="utf-8") as stream:
        assert [str(json.loads(line)["label"]) for line in stream] == [row["label"] for row in rows]
    assert pq.read_table(tmp_path / "labels.parquet").num_rows == 800
    mean = {name: np.mean([float(row[name]) for row in rows]) for name in list(rows[0])[4:8]}
    group_means = {}
    groups = {(r["annotator_id"], r["category"]): r["group"] for r in annotated.annotators.to_pylist()}
    for category in ("category 0", "category 1"):
        for group in ("group 0", "group 1"):
            labels = [
                r["label"] for r in annotated.annotations.to_pylist() if groups[r["annotator_id"], category] == group
            ]
            group_means[f"said by {category}: {group}"] = np.mean(labels)
    assert all(
        abs(mean[name] - group_means[name]) < 0.06 for name in mean
    )  # the group's estimated answers match its actual labels


def test_every_method_has_its_settings() -> None:
    groups = inference.people(drawn(draws=1).annotators)
    for name in METHODS:
        settings_of(name).model_validate({})
        assert type(method(name, {}, groups)) is METHODS[name].kind
    assert method("catd", {"alpha": 0.1}, groups).alpha == 0.1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="classifier"):
        settings_of("group_anno").model_validate({"classifier": None})
