"""AUC by group against scikit-learn, its intervals in simulations, thresholds and calibration by hand."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from fairness_pipeline.measures.classifiers.probabilities_by_group import describe_probabilities
from fairness_pipeline_tests.measures.classifiers.test_group_rates import table


def drawn(seed: int, shift: float = 0.0, authors: int = 60, each: int = 8) -> tuple[np.ndarray, ...]:
    """Probabilities of texts by authors who share a style: those of group b are told apart less well by `shift`."""
    draw = np.random.default_rng(seed)
    count = authors * each
    author, groups = np.repeat(np.arange(authors), each), np.repeat(np.arange(authors) % 2, each)
    labels = draw.integers(0, 2, count)
    style = draw.normal(0, 0.7, authors)[author]
    score = (1.2 - shift * groups) * (2 * labels - 1) / 2 + style + draw.normal(0, 1, count)
    return (1 / (1 + np.exp(-score)))[None], labels, groups, author


def test_areas_are_scikit_learns() -> None:
    draw = np.random.default_rng(1)
    p = np.round(draw.random((2, 300)), 2)  # with ties
    labels, groups = draw.integers(0, 2, 300), draw.integers(0, 2, 300)
    rows = {
        (r["measure"], r["side"]): r["value"]
        for r in describe_probabilities(table(p, labels, groups)).to_pylist()
        if r["at"] is None
    }
    for group, side in enumerate("ab"):
        own = groups == group
        expected = np.mean([roc_auc_score(labels[own], each[own]) for each in p])
        assert rows["auc", side] == pytest.approx(expected)
        crossed = (own & (labels == 1)) | (~own & (labels == 0))
        expected = np.mean([roc_auc_score(labels[crossed], each[crossed]) for each in p])
        assert rows["auc_crossed", side] == pytest.approx(expected)
    assert rows["auc", "difference"] == pytest.approx(rows["auc", "a"] - rows["auc", "b"])


def test_intervals_hold_where_authors_have_a_style_and_a_real_difference_is_found() -> None:
    """300 draws without a difference: about 5 in 100 intervals leave it out. With one, most do."""
    outside = {0.0: 0, 1.2: 0}
    for shift in outside:
        for seed in range(300 if not shift else 60):
            rows = describe_probabilities(table(*drawn(seed, shift))).to_pylist()
            (own,) = [r for r in rows if r["measure"] == "auc" and r["side"] == "difference"]
            outside[shift] += not own["ci_low"] <= 0 <= own["ci_high"]
    assert 3 <= outside[0.0] <= 24
    assert outside[1.2] >= 50


def test_thresholds_and_calibration_by_hand() -> None:
    p = np.array([[0.1, 0.6, 0.4, 0.9, 0.3, 0.3]])
    labels, groups = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    rows = describe_probabilities(table(p, labels, groups)).to_pylist()
    at = {(r["measure"], r["side"], r["at"]): r["value"] for r in rows}
    assert (at["fp_rate", "a", 0.5], at["fn_rate", "a", 0.5], at["dp_rate", "a", 0.5]) == (0.5, 0.5, 0.5)
    assert (at["fp_rate", "a", 0.05], at["fn_rate", "a", 0.95], at["fp_rate", "b", 0.3]) == (1.0, 1.0, 1.0)
    (own,) = [r for r in rows if r["measure"] == "calibration" and r["side"] == "b"]
    assert (own["at"], own["value"], own["texts"]) == (pytest.approx(0.3), 0.5, 2)


def test_labels_alone_say_nothing_of_thresholds_and_perfect_ranking_is_no_certainty() -> None:
    labels, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    assert describe_probabilities(table(labels[None].astype(float), labels, groups)).num_rows == 0
    p, twice = np.array([[0.1, 0.9, 0.2, 0.8]]), [0, 1, 0, 1, 2, 3, 2, 3]
    rows = describe_probabilities(table(np.tile(p, 2), labels[np.array(twice) % 4], groups[twice])).to_pylist()
    (own,) = [r for r in rows if r["measure"] == "auc" and r["side"] == "a"]
    assert own["value"] == 1 and own["ci_low"] < 0.6
    rows = describe_probabilities(table(p, labels, groups)).to_pylist()  # one author a cell: nothing is known
    assert {r["ci_low"] for r in rows if r["measure"] == "auc"} == {None}


@pytest.mark.parametrize("sizes", [[80, 20, *[5] * 10], [50] * 4, [30] * 6])
def test_few_or_uneven_authors_make_intervals_wide_enough(sizes: list[int]) -> None:
    """Authors of a style of their own, 150 draws: at most about 5 in 100 intervals leave the true area out."""
    who = np.repeat(np.arange(2 * len(sizes)), sizes * 2)
    groups = (who >= len(sizes)).astype(np.int64)
    true = norm.cdf(1.2 / np.sqrt(2 * (1 + 1)))  # normal scores 1.2 apart; styles and texts of variance 1
    outside = dict.fromkeys(("a", "b", "difference"), 0)
    for seed in range(150):
        draw = np.random.default_rng(seed)
        labels = who % 2 if len(sizes) == 4 else draw.integers(0, 2, len(who))  # of few authors each has one label
        score = 0.6 * (2 * labels - 1) + draw.normal(0, 1, 2 * len(sizes))[who] + draw.normal(0, 1, len(who))
        for row in describe_probabilities(table(1 / (1 + np.exp(-score))[None], labels, groups, who)).to_pylist():
            if row["measure"] == "auc_crossed":
                expected = 0 if row["side"] == "difference" else true
                outside[row["side"]] += not row["ci_low"] <= expected <= row["ci_high"]
    assert max(outside.values()) <= 17
