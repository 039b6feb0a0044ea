"""AUC by group against scikit-learn, its intervals in simulations, thresholds and calibration by hand."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from fairness_pipeline.measures.classifiers.probabilities_by_group import describe_probabilities
from fairness_pipeline_tests.measures.classifiers.test_group_rates import table


def drawn(seed: int, shift: float = 0.0, authors: int = 60, per_author: int = 8) -> tuple[np.ndarray, ...]:
    """Probabilities of texts; each author has a style, and labels of group b are told apart less well by `shift`."""
    random = np.random.default_rng(seed)
    count = authors * per_author
    author, groups = np.repeat(np.arange(authors), per_author), np.repeat(np.arange(authors) % 2, per_author)
    labels = random.integers(0, 2, count)
    style = random.normal(0, 0.7, authors)[author]
    score = (1.2 - shift * groups) * (2 * labels - 1) / 2 + style + random.normal(0, 1, count)
    return (1 / (1 + np.exp(-score)))[None], labels, groups, author


def test_areas_are_scikit_learns() -> None:
    random = np.random.default_rng(1)
    p = np.round(random.random((2, 300)), 2)  # with ties
    labels, groups = random.integers(0, 2, 300), random.integers(0, 2, 300)
    rows = {
        (row["measure"], row["side"]): row["value"]
        for row in describe_probabilities(table(p, labels, groups)).to_pylist()
        if row["at"] is None
    }
    for group, side in enumerate("ab"):
        in_group = groups == group
        expected = np.mean([roc_auc_score(labels[in_group], scores[in_group]) for scores in p])
        assert rows["auc", side] == pytest.approx(expected)
        crossed = (in_group & (labels == 1)) | (~in_group & (labels == 0))
        expected = np.mean([roc_auc_score(labels[crossed], scores[crossed]) for scores in p])
        assert rows["auc_crossed", side] == pytest.approx(expected)
    assert rows["auc", "difference"] == pytest.approx(rows["auc", "a"] - rows["auc", "b"])


def test_intervals_hold_where_authors_have_a_style_and_a_real_difference_is_found() -> None:
    """Without a difference about 5 in 100 intervals exclude 0, of 300 draws; with one most do."""
    outside = {0.0: 0, 1.2: 0}
    for shift in outside:
        for seed in range(300 if not shift else 60):
            rows = describe_probabilities(table(*drawn(seed, shift))).to_pylist()
            (auc,) = [row for row in rows if row["measure"] == "auc" and row["side"] == "difference"]
            outside[shift] += not auc["ci_low"] <= 0 <= auc["ci_high"]
    assert 3 <= outside[0.0] <= 24
    assert outside[1.2] >= 50


def test_thresholds_and_calibration_by_hand() -> None:
    p = np.array([[0.1, 0.6, 0.4, 0.9, 0.3, 0.3]])
    labels, groups = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    rows = describe_probabilities(table(p, labels, groups)).to_pylist()
    values = {(row["measure"], row["side"], row["at"]): row["value"] for row in rows}
    assert (values["fp_rate", "a", 0.5], values["fn_rate", "a", 0.5], values["dp_rate", "a", 0.5]) == (0.5, 0.5, 0.5)
    assert (values["fp_rate", "a", 0.05], values["fn_rate", "a", 0.95], values["fp_rate", "b", 0.3]) == (1.0, 1.0, 1.0)
    (calibration,) = [row for row in rows if row["measure"] == "calibration" and row["side"] == "b"]
    assert (calibration["at"], calibration["value"], calibration["texts"]) == (pytest.approx(0.3), 0.5, 2)


def test_labels_have_no_thresholds_and_a_perfect_ranking_has_a_wide_interval() -> None:
    labels, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    assert describe_probabilities(table(labels[None].astype(float), labels, groups)).num_rows == 0
    p, copies = np.array([[0.1, 0.9, 0.2, 0.8]]), [0, 1, 0, 1, 2, 3, 2, 3]
    rows = describe_probabilities(table(np.tile(p, 2), labels[np.array(copies) % 4], groups[copies])).to_pylist()
    (auc,) = [row for row in rows if row["measure"] == "auc" and row["side"] == "a"]
    assert auc["value"] == 1 and auc["ci_low"] < 0.6
    rows = describe_probabilities(table(p, labels, groups)).to_pylist()  # one author in each cell: nothing is known
    assert {row["ci_low"] for row in rows if row["measure"] == "auc"} == {None}


@pytest.mark.parametrize("sizes", [[80, 20, *[5] * 10], [50] * 4, [30] * 6])
def test_intervals_are_wide_enough_for_few_or_uneven_authors(sizes: list[int]) -> None:
    """Each author has a style; in 150 draws at most about 5 in 100 intervals exclude the true area."""
    authors = np.repeat(np.arange(2 * len(sizes)), sizes * 2)
    groups = (authors >= len(sizes)).astype(np.int64)
    true = norm.cdf(1.2 / np.sqrt(2 * (1 + 1)))  # normal scores 1.2 apart; styles and texts of variance 1
    outside = dict.fromkeys(("a", "b", "difference"), 0)
    for seed in range(150):
        random = np.random.default_rng(seed)
        labels = authors % 2 if len(sizes) == 4 else random.integers(0, 2, len(authors))  # one label for each author
        score = (
            0.6 * (2 * labels - 1) + random.normal(0, 1, 2 * len(sizes))[authors] + random.normal(0, 1, len(authors))
        )
        for row in describe_probabilities(table(1 / (1 + np.exp(-score))[None], labels, groups, authors)).to_pylist():
            if row["measure"] == "auc_crossed":
                expected = 0 if row["side"] == "difference" else true
                outside[row["side"]] += not row["ci_low"] <= expected <= row["ci_high"]
    assert max(outside.values()) <= 17
