"""Divided groups of annotators: planted, and none."""

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.measures.annotators.rater_spread import RaterSpread, rater_spread

PEOPLE, ITEMS, EACH = 40, 300, 8


def found(seed: int, divided: float, strictness: float = 0.05) -> RaterSpread:
    random = np.random.default_rng(seed)
    side = np.arange(PEOPLE) % 2
    lean = random.normal(0, strictness, PEOPLE)
    lean[side == 1] += divided * np.where(np.arange(PEOPLE // 2) % 2, 1, -1)
    who = np.concatenate([random.choice(PEOPLE, EACH, replace=False) for _ in range(ITEMS)])
    item = np.repeat(np.arange(ITEMS), EACH)
    chance = np.clip(random.uniform(0.2, 0.8, ITEMS)[item] + lean[who], 0, 1)
    table = pd.DataFrame({"task": item, "worker": who, "label": (random.random(len(who)) < chance).astype(int)})
    labels = Labels.of(table)
    spread = rater_spread(labels, side[labels.annotators.to_numpy()])
    assert spread
    return spread


@pytest.mark.parametrize("strictness", [0.0, 0.1])
def test_strict_and_lenient_raters_of_both_groups_are_no_division(strictness: float) -> None:
    p = np.array([found(seed, 0.0, strictness).p for seed in range(100)])
    assert (p <= 0.05).mean() <= 0.12  # 3 standard errors above 5%


def test_a_divided_group_is_found_and_its_size_told() -> None:
    every = [found(seed, 0.25) for seed in range(10)]
    assert all(own.p <= 0.01 and own.matters and not own.small and own.divided == 1 for own in every)
    assert np.mean([own.typical[1] for own in every]) == pytest.approx(0.25, abs=0.03)
    assert (
        every[0]
        .said("old")
        .endswith(" points from their group's mean, 10 of 20 towards positive, the others towards negative")
    )


def test_items_with_few_labels_divide_no_group() -> None:
    """Nobody leans; group a's items have two labels, group b's ten, and some are shared. An item's mean holds the label
    itself, so single labels' noise is easily taken for leaning."""
    called = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = []
        for first, each in ((0, 2), (100, 10)):
            people = np.repeat(np.arange(first, first + 100), 10)
            random.shuffle(people)
            rows += [(f"{first} {n // each}", who) for n, who in enumerate(people)]
        rows += [(f"both {n}", who) for n in range(100) for who in random.choice(200, 4, replace=False)]
        table = pd.DataFrame(rows, columns=["task", "worker"]).drop_duplicates()
        rate = dict(zip(table["task"].unique(), random.uniform(0.2, 0.8, table["task"].nunique()), strict=True))
        table["label"] = (random.random(len(table)) < table["task"].map(rate)).astype(int)
        labels = Labels.of(table)
        own = rater_spread(labels, (labels.annotators.to_numpy() >= 100).astype(int))
        assert own and max(own.typical) < 0.15
        called.append(own.p < 0.017 and own.matters)
    assert sum(called) <= 1


def test_too_few_annotators_tell_nothing() -> None:
    table = pd.DataFrame({"task": [0, 0, 1, 1], "worker": [0, 1] * 2, "label": [0, 1] * 2})
    labels = Labels.of(table)
    assert rater_spread(labels, np.array([0, 1])) is None
