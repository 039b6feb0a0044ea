"""Divided groups of annotators: with and without a planted division."""

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.measures.annotators.rater_spread import RaterSpread, rater_spread

PEOPLE, ITEMS, EACH = 40, 300, 8


def spread_of(seed: int, divided: float, strictness: float = 0.05) -> RaterSpread:
    random = np.random.default_rng(seed)
    groups = np.arange(PEOPLE) % 2
    leaning = random.normal(0, strictness, PEOPLE)
    leaning[groups == 1] += divided * np.where(np.arange(PEOPLE // 2) % 2, 1, -1)
    raters = np.concatenate([random.choice(PEOPLE, EACH, replace=False) for _ in range(ITEMS)])
    item = np.repeat(np.arange(ITEMS), EACH)
    chance = np.clip(random.uniform(0.2, 0.8, ITEMS)[item] + leaning[raters], 0, 1)
    table = pd.DataFrame({"task": item, "worker": raters, "label": (random.random(len(raters)) < chance).astype(int)})
    labels = Labels.of(table)
    spread = rater_spread(labels, groups[labels.annotators.to_numpy()])
    assert spread
    return spread


@pytest.mark.parametrize("strictness", [0.0, 0.1])
def test_strict_and_lenient_raters_of_both_groups_are_no_division(strictness: float) -> None:
    p = np.array([spread_of(seed, 0.0, strictness).p for seed in range(100)])
    assert (p <= 0.05).mean() <= 0.12  # 3 standard errors above 5%


def test_a_divided_group_is_detected_with_its_size() -> None:
    spreads = [spread_of(seed, 0.25) for seed in range(10)]
    assert all(spread.p <= 0.01 and spread.matters and not spread.small and spread.divided == 1 for spread in spreads)
    assert np.mean([spread.typical[1] for spread in spreads]) == pytest.approx(0.25, abs=0.03)
    assert (
        spreads[0]
        .describe("old")
        .endswith(" points from their group's mean, 10 of 20 towards positive, the others towards negative")
    )


def test_items_with_few_labels_divide_no_group() -> None:
    """Nobody leans; group a's items have two labels, group b's ten, and some items are shared. An item's mean contains
    the label itself, so the noise of single labels is easily mistaken for leaning."""
    rejected = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = []
        for first, labels_of_item in ((0, 2), (100, 10)):
            people = np.repeat(np.arange(first, first + 100), 10)
            random.shuffle(people)
            rows += [(f"{first} {n // labels_of_item}", rater) for n, rater in enumerate(people)]
        rows += [(f"both {n}", rater) for n in range(100) for rater in random.choice(200, 4, replace=False)]
        table = pd.DataFrame(rows, columns=["task", "worker"]).drop_duplicates()
        rate = dict(zip(table["task"].unique(), random.uniform(0.2, 0.8, table["task"].nunique()), strict=True))
        table["label"] = (random.random(len(table)) < table["task"].map(rate)).astype(int)
        labels = Labels.of(table)
        spread = rater_spread(labels, (labels.annotators.to_numpy() >= 100).astype(int))
        assert spread and max(spread.typical) < 0.15
        rejected.append(spread.p < 0.017 and spread.matters)
    assert sum(rejected) <= 1


def test_too_few_annotators_give_no_spread() -> None:
    table = pd.DataFrame({"task": [0, 0, 1, 1], "worker": [0, 1] * 2, "label": [0, 1] * 2})
    labels = Labels.of(table)
    assert rater_spread(labels, np.array([0, 1])) is None
