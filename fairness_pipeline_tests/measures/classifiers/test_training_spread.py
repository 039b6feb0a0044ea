"""Spread of gaps between trainings: one training that leans far, and trainings that agree."""

import numpy as np
import pytest

from fairness_pipeline.measures.classifiers.group_rates import FN, Predictions
from fairness_pipeline.measures.classifiers.training_spread import TrainingSpread, training_spread


def spread_of(seed: int, gaps: tuple[float, ...], count: int = 2) -> TrainingSpread | None:
    """The spread on texts of 200 authors, all positive; each training misses more of the last group's, by its gap."""
    random = np.random.default_rng(seed)
    authors = np.repeat(np.arange(200), 4)
    groups = authors % count
    hard, last = random.beta(2, 8, 200)[authors], groups == count - 1
    missed = np.stack([random.random(len(authors)) < np.clip(hard + gap * last, 0, 1) for gap in gaps])
    return training_spread(Predictions(1 - missed.astype(int), np.ones(len(authors), int), groups, authors), FN)


def test_one_training_that_leans_far_is_detected() -> None:
    for seed in range(10):
        spread = spread_of(seed, (0.0, 0.0, 0.4))
        assert spread and spread.p < 0.01 and spread.typical > 0.15
        assert spread.gaps[2] == pytest.approx(-0.4, abs=0.1) and spread.describe(("a", "b")).endswith(" points")


def test_the_group_that_a_training_favours_is_named() -> None:
    for seed in range(10):
        spread = spread_of(seed, (0.0, 0.0, 0.5), 4)
        assert spread and spread.p < 0.01 and spread.pair[1] == 3
        assert f" between {'abc'[spread.pair[0]]} and d are " in spread.describe("abcd")


@pytest.mark.parametrize(("gap", "count"), [(0.0, 2), (0.2, 2), (0.2, 4)])
@pytest.mark.verify
def test_trainings_that_agree_are_no_finding(gap: float, count: int) -> None:
    spreads = [spread_of(seed, (gap,) * 5, count) for seed in range(100)]
    assert np.mean([spread.p <= 0.05 for spread in spreads if spread]) <= 0.12
    shown_small = np.mean([spread.upper < 0.15 for spread in spreads if spread])
    assert shown_small == 1 if count == 2 else shown_small >= 0.8


def test_one_training_or_one_author_per_group_gives_no_spread() -> None:
    assert spread_of(0, (0.4,)) is None
    predictions = np.tile([[1, 0]], (3, 4))
    assert (
        training_spread(Predictions(predictions, np.ones(8, int), np.tile([0, 1], 4), np.tile([0, 1], 4)), FN) is None
    )
