"""Items by groups: the jackknife by hand, level and bound; the line-up tests whole systems."""

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.measures.annotators.item_by_group import _typical, items_by_group


def draw(
    random: np.random.Generator, items: int, apart: float, raters: int = 40, per_item: int = 8
) -> tuple[Labels, np.ndarray]:
    sides = np.arange(raters) % 2
    annotators = np.concatenate([random.choice(raters, per_item, replace=False) for _ in range(items)])
    item = np.repeat(np.arange(items), per_item)
    signs = np.where(np.arange(items) % 2 == 0, 1, -1)[item] * np.where(sides[annotators] == 1, 1, -1)
    positive = random.random(len(item)) < 0.5 + apart / 2 * signs
    labels = Labels.of(pd.DataFrame({"task": item, "worker": annotators, "label": positive.astype(int)}))
    return labels, sides[labels.annotators.to_numpy()]


def theta(labels: Labels, sides: np.ndarray, without: int | None = None) -> tuple[float, int]:
    """The weighted mean of squared differences, item by item, as the docstring of the function defines it."""
    total = weight = 0.0
    count = 0
    for item in range(len(labels.items)):
        labels_by_group = []
        for group in (0, 1):
            kept = (
                (labels.item == item)
                & (sides[labels.annotator] == group)
                & (labels.annotator != (-1 if without is None else without))
            )
            labels_by_group.append(labels.label[kept])
        sizes = [len(members) for members in labels_by_group]
        if min(sizes) < 2:
            continue
        a, b = (members.mean() for members in labels_by_group)
        square = (a - b) ** 2 - a * (1 - a) / (sizes[0] - 1) - b * (1 - b) / (sizes[1] - 1)
        weight_of_item = (sizes[0] * sizes[1] / sum(sizes)) ** 2
        total, weight, count = total + weight_of_item * square, weight + weight_of_item, count + 1
    return total / weight, count


def test_a_typical_items_difference_by_hand() -> None:
    labels, sides = draw(np.random.default_rng(1), 30, 0.5, raters=12, per_item=7)
    typical, upper, p_small, items = _typical(labels, sides)
    value, count = theta(labels, sides)
    assert items == count and typical**2 == pytest.approx(max(value, 0))
    # The jackknife over raters: each is left out in turn within their group.
    variance = 0.0
    for g in (0, 1):
        replicates = np.array([theta(labels, sides, r)[0] for r in range(len(sides)) if sides[r] == g])
        variance += (len(replicates) - 1) / len(replicates) * np.square(replicates - replicates.mean()).sum()
    counts_by_group = [
        np.bincount(labels.annotator[sides[labels.annotator] == g], minlength=len(sides)) for g in (0, 1)
    ]
    kish = min(counts_of_raters.sum() ** 2 / np.square(counts_of_raters).sum() for counts_of_raters in counts_by_group)
    from scipy.stats import t

    error = (upper**2 - value) / t.ppf(0.95, kish - 1)
    assert error >= np.sqrt(variance) * (1 - 1e-9)
    assert 0 <= p_small <= 1


@pytest.mark.verify
def test_level_power_and_bound() -> None:
    random = np.random.default_rng(2)
    runs, alarms, hits, wrongly_small, small = 60, 0, 0, 0, 0
    for _ in range(runs):
        alarms += items_by_group(*draw(random, 120, 0.0), draws=199).p < 0.05
        hits += items_by_group(*draw(random, 120, 0.4), draws=199).p < 0.05
        wrongly_small += items_by_group(*draw(random, 300, 0.15), draws=19).small
        small += items_by_group(*draw(random, 1500, 0.0, raters=80), draws=19).small
    assert alarms <= 8 and hits == runs
    assert wrongly_small <= 8  # 15 points are the margin
    assert small >= 36


def test_a_small_group_with_other_labels_is_no_interaction() -> None:
    """Six annotators label 25 points more of the items positive than fifty-four others, so their labels vary more on
    every item. Permuted labels alone reject in half of the draws; in all with four labels an item by random people."""
    random = np.random.default_rng(4)
    alarms, hits = 0, 0
    sides = np.repeat([0, 1], [6, 54])
    for spread in [0.0] * 20 + [0.3] * 3:
        rates, of_item = random.beta(1, 2, 200) * 0.5 + 0.1, random.normal(0, spread, 200)
        annotators = np.hstack(
            [
                random.random((200, n)).argsort(axis=1)[:, :chosen] + first
                for n, chosen, first in ((6, 3, 0), (54, 9, 6))
            ]
        )
        p = rates[:, None] + np.where(sides[annotators] == 0, 0.25 + of_item[:, None], -0.08)
        positive = random.random(annotators.shape) < np.clip(p, 0.02, 0.98)
        data = {
            "task": np.repeat(np.arange(200), 12),
            "worker": annotators.ravel(),
            "label": positive.ravel().astype(int),
        }
        labels = Labels.of(pd.DataFrame(data))
        rejected = items_by_group(labels, sides[labels.annotators.to_numpy()], draws=199).p < 0.05
        alarms += rejected and not spread
        hits += rejected and spread > 0
    assert alarms <= 4 and hits == 3  # 5% of 20, and three standard errors


def test_too_few_labels_show_nothing() -> None:
    labels, sides = draw(np.random.default_rng(3), 40, 0.0, raters=4, per_item=2)
    result = items_by_group(labels, sides, draws=19)
    assert not result.small and 0 < result.p <= 1
    alone = Labels.of(pd.DataFrame({"task": ["x", "x"], "worker": ["p", "q"], "label": [0, 1]}))
    assert items_by_group(alone, np.array([0, 1])).p == 1.0
    assert not items_by_group(alone, np.array([0, 0])).small
