"""Trainings whose gaps differ: one that leans far, and all alike."""

import numpy as np
import pytest

from fairness_pipeline.measures.classifiers.group_rates import FN, Predictions
from fairness_pipeline.measures.classifiers.training_spread import TrainingSpread, training_spread


def found(seed: int, gaps: tuple[float, ...]) -> TrainingSpread | None:
    """Positive texts of 200 authors; each training misses so much more of group b's."""
    random = np.random.default_rng(seed)
    authors = np.repeat(np.arange(200), 4)
    groups = authors % 2
    hard = random.beta(2, 8, 200)[authors]
    missed = np.stack([random.random(len(authors)) < np.clip(hard + gap * groups, 0, 1) for gap in gaps])
    return training_spread(Predictions(1 - missed.astype(int), np.ones(len(authors), int), groups, authors), FN)


def test_one_training_that_leans_far_is_found() -> None:
    for seed in range(10):
        own = found(seed, (0.0, 0.0, 0.4))
        assert own and own.p < 0.01 and own.typical > 0.15
        assert own.gaps[2] == pytest.approx(-0.4, abs=0.1) and own.said.endswith(" points")


@pytest.mark.parametrize("gap", [0.0, 0.2])
def test_trainings_that_agree_are_no_finding(gap: float) -> None:
    every = [found(seed, (gap,) * 5) for seed in range(100)]
    assert np.mean([own.p <= 0.05 for own in every if own]) <= 0.12
    assert all(own and own.upper < 0.15 for own in every)  # of three it is so in four of five draws


def test_one_training_or_one_author_a_group_tells_nothing() -> None:
    assert found(0, (0.4,)) is None
    said = np.tile([[1, 0]], (3, 4))
    assert training_spread(Predictions(said, np.ones(8, int), np.tile([0, 1], 4), np.tile([0, 1], 4)), FN) is None
