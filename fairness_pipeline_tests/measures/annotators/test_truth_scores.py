"""Scores of inferred labels: scikit-learn's numbers, coverage of intervals, calibration by hand."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from fairness_pipeline.measures.annotators.truth_scores import PREDICTION, TRUTH, calibration, scores, truth_scores


def test_accuracy_and_f1_are_scikit_learns() -> None:
    random = np.random.default_rng(1)
    inferred = [random.integers(0, 2, 80) for _ in range(3)]
    truth = [random.integers(0, 2, 80) for _ in range(3)]
    rows = {str(row["metric"]): row for row in scores(TRUTH, inferred, truth, "draws")}
    pairs = list(zip(truth, inferred, strict=True))
    assert rows["truth_inference_accuracy"]["values"] == pytest.approx([accuracy_score(*pair) for pair in pairs])
    assert rows["truth_inference_f1"]["values"] == pytest.approx([f1_score(*pair) for pair in pairs])
    macro = [f1_score(*pair, average="macro") for pair in pairs]
    assert rows["truth_inference_macro_f1"]["values"] == pytest.approx(macro)
    values = np.array(rows["truth_inference_f1"]["values"])
    reach = 4.303 * values.std(ddof=1) / np.sqrt(3)  # Student's t of two degrees of freedom
    assert rows["truth_inference_f1"]["ci_low"] == pytest.approx(values.mean() - reach, abs=1e-3)
    table = truth_scores(list(rows.values()), {"truth_inference_f1": 0.9})
    assert table["published_value"].to_pylist() == [None, 0.9, None]


def test_the_interval_over_items_covers_the_true_value() -> None:
    covered = []
    for seed in range(200):
        random = np.random.default_rng(seed)
        truth = (random.random(150) < 0.4).astype(int)
        inferred = np.where(random.random(150) < 0.85, truth, 1 - truth)
        (accuracy, f1, _) = scores(PREDICTION, [inferred], [truth], "seeds")
        assert accuracy["over"] == "items"
        covered.append([accuracy["ci_low"] <= 0.85 <= accuracy["ci_high"], f1["ci_low"] <= 0.8193 <= f1["ci_high"]])
    assert (np.mean(covered, axis=0) > 0.9).all() and (np.mean(covered, axis=0) < 0.985).all()


def test_three_of_three_right_leave_a_wide_interval() -> None:
    (accuracy, f1, _) = scores(TRUTH, [np.array([1, 1, 0])], [np.array([1, 1, 0])], "draws")
    assert accuracy["value"] == 1 and 0.4 < accuracy["ci_low"] < 0.5  # Wilson's
    assert f1["ci_high"] == 1


def test_nothing_to_score_and_calibration() -> None:
    assert scores(TRUTH, [np.array([], dtype=int)], [np.array([], dtype=int)], "draws") == []
    bins = calibration(np.array([0.0, 0.1, 0.9, 1.0, 1.0]), np.array([0, 1, 1, 1, 0]))
    assert bins == [(pytest.approx(0.05), 0.5, 2), (pytest.approx(2.9 / 3), pytest.approx(2 / 3), 3)]
