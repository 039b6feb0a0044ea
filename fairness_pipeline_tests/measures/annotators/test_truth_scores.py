"""Scores of inferred labels: scikit-learn's numbers, intervals that hold, calibration by hand."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from fairness_pipeline.measures.annotators.truth_scores import PREDICTION, TRUTH, calibration, scores, truth_scores


def test_accuracy_and_f1_are_scikit_learns() -> None:
    draw = np.random.default_rng(1)
    said = [draw.integers(0, 2, 80) for _ in range(3)]
    truth = [draw.integers(0, 2, 80) for _ in range(3)]
    rows = {str(row["metric"]): row for row in scores(TRUTH, said, truth, "draws")}
    pairs = list(zip(truth, said, strict=True))
    assert rows["truth_inference_accuracy"]["values"] == pytest.approx([accuracy_score(*own) for own in pairs])
    assert rows["truth_inference_f1"]["values"] == pytest.approx([f1_score(*own) for own in pairs])
    macro = [f1_score(*own, average="macro") for own in pairs]
    assert rows["truth_inference_macro_f1"]["values"] == pytest.approx(macro)
    values = np.array(rows["truth_inference_f1"]["values"])
    reach = 4.303 * values.std(ddof=1) / np.sqrt(3)  # Student's t of two degrees of freedom
    assert rows["truth_inference_f1"]["ci_low"] == pytest.approx(values.mean() - reach, abs=1e-3)
    table = truth_scores(list(rows.values()), {"truth_inference_f1": 0.9})
    assert table["published_value"].to_pylist() == [None, 0.9, None]


def test_the_interval_over_items_holds() -> None:
    held = []
    for seed in range(200):
        draw = np.random.default_rng(seed)
        truth = (draw.random(150) < 0.4).astype(int)
        said = np.where(draw.random(150) < 0.85, truth, 1 - truth)
        (accuracy, f1, _) = scores(PREDICTION, [said], [truth], "seeds")
        assert accuracy["over"] == "items"
        held.append([accuracy["ci_low"] <= 0.85 <= accuracy["ci_high"], f1["ci_low"] <= 0.8193 <= f1["ci_high"]])
    assert (np.mean(held, axis=0) > 0.9).all() and (np.mean(held, axis=0) < 0.985).all()


def test_three_of_three_right_is_no_certainty() -> None:
    (accuracy, f1, _) = scores(TRUTH, [np.array([1, 1, 0])], [np.array([1, 1, 0])], "draws")
    assert accuracy["value"] == 1 and 0.4 < accuracy["ci_low"] < 0.5  # Wilson's
    assert f1["ci_high"] == 1


def test_nothing_to_score_and_calibration() -> None:
    assert scores(TRUTH, [np.array([], dtype=int)], [np.array([], dtype=int)], "draws") == []
    found = calibration(np.array([0.0, 0.1, 0.9, 1.0, 1.0]), np.array([0, 1, 1, 1, 0]))
    assert found == [(pytest.approx(0.05), 0.5, 2), (pytest.approx(2.9 / 3), pytest.approx(2 / 3), 3)]
