"""Items by groups: the jackknife by hand, level and bound; the line-up has the systems."""

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.measures.annotators.item_by_group import _typical, items_by_group


def draw(
    random: np.random.Generator, items: int, apart: float, raters: int = 40, each: int = 8
) -> tuple[Labels, np.ndarray]:
    sides = np.arange(raters) % 2
    who = np.concatenate([random.choice(raters, each, replace=False) for _ in range(items)])
    item = np.repeat(np.arange(items), each)
    signs = np.where(np.arange(items) % 2 == 0, 1, -1)[item] * np.where(sides[who] == 1, 1, -1)
    z = random.random(len(item)) < 0.5 + apart / 2 * signs
    labels = Labels.of(pd.DataFrame({"task": item, "worker": who, "label": z.astype(int)}))
    return labels, sides[labels.annotators.to_numpy()]


def theta(labels: Labels, sides: np.ndarray, without: int | None = None) -> tuple[float, int]:
    """The weighted mean of squared differences, item by item, as its docstring has it."""
    total = weight = 0.0
    count = 0
    for i in range(len(labels.items)):
        groups = []
        for g in (0, 1):
            own = (
                (labels.item == i)
                & (sides[labels.annotator] == g)
                & (labels.annotator != (-1 if without is None else without))
            )
            groups.append(labels.label[own])
        n = [len(own) for own in groups]
        if min(n) < 2:
            continue
        a, b = (own.mean() for own in groups)
        u = (a - b) ** 2 - a * (1 - a) / (n[0] - 1) - b * (1 - b) / (n[1] - 1)
        w = (n[0] * n[1] / sum(n)) ** 2
        total, weight, count = total + w * u, weight + w, count + 1
    return total / weight, count


def test_a_typical_items_difference_by_hand() -> None:
    labels, sides = draw(np.random.default_rng(1), 30, 0.5, raters=12, each=7)
    found, upper, p_small, items = _typical(labels, sides)
    value, count = theta(labels, sides)
    assert items == count and found**2 == pytest.approx(max(value, 0))
    # The jackknife over raters, each left out in turn within their group.
    of_raters = 0.0
    for g in (0, 1):
        left = np.array([theta(labels, sides, r)[0] for r in range(len(sides)) if sides[r] == g])
        of_raters += (len(left) - 1) / len(left) * np.square(left - left.mean()).sum()
    counts = [theta(labels, sides)[1]]
    assert counts and upper**2 >= value
    given = [np.bincount(labels.annotator[sides[labels.annotator] == g], minlength=len(sides)) for g in (0, 1)]
    kish = min(own.sum() ** 2 / np.square(own).sum() for own in given)
    from scipy.stats import t

    shown = (upper**2 - value) / t.ppf(0.95, kish - 1)
    assert shown >= np.sqrt(of_raters) * (1 - 1e-9)
    assert 0 <= p_small <= 1


@pytest.mark.kills
def test_level_power_and_bound() -> None:
    random = np.random.default_rng(2)
    runs, alarms, found, wrong, small = 60, 0, 0, 0, 0
    for _ in range(runs):
        alarms += items_by_group(*draw(random, 120, 0.0), draws=199).p < 0.05
        found += items_by_group(*draw(random, 120, 0.4), draws=199).p < 0.05
        wrong += items_by_group(*draw(random, 300, 0.15), draws=19).small
        small += items_by_group(*draw(random, 1500, 0.0, raters=80), draws=19).small
    assert alarms <= 8 and found == runs
    assert wrong <= 8  # 15 points are the margin's edge
    assert small >= 36


def test_a_small_group_with_other_labels_is_no_interaction() -> None:
    """Six annotators say positive in 25 points more of the items than fifty-four: their labels vary more, on every item.
    Exchanged labels alone call half of such draws; with four labels an item of random people, all."""
    random = np.random.default_rng(4)
    alarms, found = 0, 0
    sides = np.repeat([0, 1], [6, 54])
    for other in [0.0] * 20 + [0.3] * 3:
        base, own = random.beta(1, 2, 200) * 0.5 + 0.1, random.normal(0, other, 200)
        who = np.hstack([random.random((200, n)).argsort(axis=1)[:, :k] + o for n, k, o in ((6, 3, 0), (54, 9, 6))])
        p = base[:, None] + np.where(sides[who] == 0, 0.25 + own[:, None], -0.08)
        z = random.random(who.shape) < np.clip(p, 0.02, 0.98)
        data = {"task": np.repeat(np.arange(200), 12), "worker": who.ravel(), "label": z.ravel().astype(int)}
        labels = Labels.of(pd.DataFrame(data))
        rejected = items_by_group(labels, sides[labels.annotators.to_numpy()], draws=199).p < 0.05
        alarms += rejected and not other
        found += rejected and other > 0
    assert alarms <= 4 and found == 3  # 5% of 20, and three standard errors


def test_what_cannot_be_told_is_not() -> None:
    labels, sides = draw(np.random.default_rng(3), 40, 0.0, raters=4, each=2)
    found = items_by_group(labels, sides, draws=19)
    assert not found.small and 0 < found.p <= 1
    alone = Labels.of(pd.DataFrame({"task": ["x", "x"], "worker": ["p", "q"], "label": [0, 1]}))
    assert items_by_group(alone, np.array([0, 1])).p == 1.0
    assert not items_by_group(alone, np.array([0, 0])).small
