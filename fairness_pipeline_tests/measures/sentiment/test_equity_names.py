"""Names and units: corrections by brute force, and findings by name; the line-up tests whole systems."""

import numpy as np
import pytest

from fairness_pipeline.measures.sentiment.equity_names import Names, _min_p, cells_of_names, outliers
from fairness_pipeline_tests.lineup.equity import _verdicts, corpus


def names_of(scores: np.ndarray) -> Names:
    cells = np.repeat(np.arange(4), 10)
    return Names(scores, [f"n{i}" for i in range(40)], cells, ["a", "b", "c", "d"], cells // 2)


def test_the_smallest_p_of_several_columns_by_brute_force() -> None:
    """Westfall and Young: how often the smallest p of a draw, over all columns, is at most a column's p."""
    random = np.random.default_rng(1)
    drawn, observed = random.random((99, 3)), np.array([0.99, 0.5, 0.2])
    all_rows = np.vstack([observed, drawn])
    p = np.array([[(all_rows[:, c] >= all_rows[r, c]).mean() for c in range(3)] for r in range(100)])
    expected = [(np.sum(p[1:].min(axis=1) <= p[0, c]) + 1) / 100 for c in range(3)]
    assert _min_p(observed, drawn) == pytest.approx(expected)


def test_half_of_a_cells_names_are_detected_and_named() -> None:
    random = np.random.default_rng(2)
    scores = random.normal(0.5, 0.01, (40, 2))
    scores[30:35, 0] += 0.1
    first, second = cells_of_names(names_of(scores))
    assert first.p_holm < 0.01 and first.cell == "d" and set(first.members) == {f"n{i}" for i in range(30, 35)}
    assert first.difference == pytest.approx(0.05, abs=0.01) and first.highest in first.members
    assert second.p_holm > 0.05


def test_one_name_is_a_finding_and_no_bias() -> None:
    random = np.random.default_rng(3)
    scores = random.normal(0.5, 0.01, (40, 1))
    scores[7] += 0.4
    (outlier,) = outliers(names_of(scores), 0, 0.01)
    assert (outlier.name, outlier.difference) == ("n7", pytest.approx(0.4, abs=0.03))
    assert cells_of_names(names_of(scores))[0].p_holm > 0.05
    assert not outliers(names_of(np.full((40, 1), 0.5)), 0, 0.01)


def test_names_that_score_alike_are_fair_and_equal_scores_leave_no_error() -> None:
    sentences = corpus()
    scores = np.where(sentences.emotion == "joy", 0.8, 0.3)[:, None]
    verdicts = _verdicts(sentences, scores, ("joy",))
    assert set(verdicts) == {"gender, joy", "race, joy", "names, joy"} and set(verdicts.values()) == {"fair"}
