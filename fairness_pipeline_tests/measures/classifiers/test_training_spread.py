"""Trainings whose gaps differ: one that leans far, and all alike."""

import numpy as np
import pytest

from fairness_pipeline.measures.classifiers.group_rates import FN, Predictions
from fairness_pipeline.measures.classifiers.training_spread import TrainingSpread, training_spread


def found(seed: int, gaps: tuple[float, ...], count: int = 2) -> TrainingSpread | None:
    """Positive texts of 200 authors; each training misses so much more of the last group's."""
    random = np.random.default_rng(seed)
    authors = np.repeat(np.arange(200), 4)
    groups = authors % count
    hard, last = random.beta(2, 8, 200)[authors], groups == count - 1
    missed = np.stack([random.random(len(authors)) < np.clip(hard + gap * last, 0, 1) for gap in gaps])
    return training_spread(Predictions(1 - missed.astype(int), np.ones(len(authors), int), groups, authors), FN)


def test_one_training_that_leans_far_is_found() -> None:
    for seed in range(10):
        own = found(seed, (0.0, 0.0, 0.4))
        assert own and own.p < 0.01 and own.typical > 0.15
        assert own.gaps[2] == pytest.approx(-0.4, abs=0.1) and own.said(("a", "b")).endswith(" points")


def test_of_four_groups_the_one_that_a_training_turns_to_is_named() -> None:
    for seed in range(10):
        own = found(seed, (0.0, 0.0, 0.5), 4)
        assert own and own.p < 0.01 and own.pair[1] == 3
        assert f" between {'abc'[own.pair[0]]} and d are " in own.said("abcd")


@pytest.mark.parametrize(("gap", "count"), [(0.0, 2), (0.2, 2), (0.2, 4)])
def test_trainings_that_agree_are_no_finding(gap: float, count: int) -> None:
    every = [found(seed, (gap,) * 5, count) for seed in range(100)]
    assert np.mean([own.p <= 0.05 for own in every if own]) <= 0.12
    shown_small = np.mean([own.upper < 0.15 for own in every if own])
    assert shown_small == 1 if count == 2 else shown_small >= 0.8


def test_one_training_or_one_author_a_group_tells_nothing() -> None:
    assert found(0, (0.4,)) is None
    said = np.tile([[1, 0]], (3, 4))
    assert training_spread(Predictions(said, np.ones(8, int), np.tile([0, 1], 4), np.tile([0, 1], 4)), FN) is None
