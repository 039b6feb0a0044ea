"""Study 5's systems: simulated raters of two or four groups whose labels do or do not lean."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_design import levels_of
from fairness_pipeline.measures.annotators.annotator_groups import (
    AnnotatorGroupsSettings,
    Labelled,
    compare_positive_rates,
)
from fairness_pipeline.statistics.welch import PAIR
from fairness_pipeline_tests.lineup.shared import System, Verdicts

STUDY = "annotator_bias"
ITEMS = (150, 600)
"""The least and largest number of items of a draw."""


class Raters:
    """Raters of several groups, items with their own positive rates, and which rater labels which item."""

    def __init__(self, draw: int, *, sizes: tuple[int, ...] = (15, 15), each: int = 8, labour: str = "even") -> None:
        self.random = np.random.default_rng([draw, 23])
        self.items = int(self.random.integers(*ITEMS, endpoint=True))
        people = sum(sizes)
        self.sides = np.repeat(np.arange(len(sizes)), sizes)
        weights = np.ones(people)
        if labour == "pareto":
            weights = self.random.pareto(1.5, people) + 0.3
        if labour == "tied":  # group b labels more
            weights = (self.random.pareto(1.5, people) + 0.3) * (1 + self.sides)
        chosen = [
            self.random.choice(people, size=min(each, people), replace=False, p=weights / weights.sum())
            for _ in range(self.items)
        ]
        self.rater = np.concatenate(chosen)
        self.item = np.repeat(np.arange(self.items), [len(raters) for raters in chosen])
        self.rate = self.random.beta(1.2, 1.2, self.items)
        self.group = self.sides[self.rater]


def sorted_raters(draw: int) -> Raters:
    """Returns ten against ten raters who label every item; the labels are ordered by rater and group."""
    raters = Raters(draw, sizes=(10, 10), each=20)
    order = np.argsort(raters.rater, kind="stable")
    raters.rater, raters.item, raters.group = raters.rater[order], raters.item[order], raters.group[order]
    return raters


Lean = Callable[[Raters], np.ndarray]
"""Returns what is added to the chance that a label is positive, for each label."""


def judge(make: Callable[[int], Raters], lean: Lean, draw: int) -> Verdicts:
    """Returns the verdicts on the groups of raters."""
    raters = make(draw)
    chance = np.clip(raters.rate[raters.item] + lean(raters), 0, 1)
    labels = Labels.of(
        pd.DataFrame(
            {
                "task": raters.item,
                "worker": raters.rater,
                "label": (raters.random.random(len(chance)) < chance).astype(int),
            }
        )
    )
    sides = pd.Series(raters.sides[labels.annotators.to_numpy()])
    table = compare_positive_rates(Labelled(labels, {"group": levels_of(sides)}), AnnotatorGroupsSettings(), {})
    return {row["measure"]: row["verdict"] for row in table.to_pylist() if row["contrast"] != PAIR}


def _none(raters: Raters) -> np.ndarray:
    return np.zeros(len(raters.item))


def _strict(spread: float, raters: Raters) -> np.ndarray:
    return raters.random.normal(0, spread, len(raters.sides))[raters.rater]


def _shift(points: float, raters: Raters) -> np.ndarray:
    return points * (raters.group == 1)


def _opposite(points: float, share: float, raters: Raters) -> np.ndarray:
    """The groups differ by `points` on a share of the items, equally often in either direction."""
    signs = np.where(np.arange(raters.items) % 2 == 0, 1.0, -1.0) * (raters.random.random(raters.items) < share)
    return (points / 2) * signs[raters.item] * np.where(raters.group == 1, 1, -1)


def _divided(points: float, raters: Raters) -> np.ndarray:
    """Half of group b leans up and half leans down, so that its mean rate is group a's."""
    return points * (np.where(np.arange(len(raters.sides)) % 2 == 0, 1.0, -1.0) * (raters.sides == 1))[raters.rater]


def _with(first: Lean, second: Lean) -> Lean:
    return lambda raters: first(raters) + second(raters)


def systems() -> Iterator[System]:
    """Yields all systems."""
    even = Raters
    many = partial(Raters, sizes=(120, 120), each=12)
    pareto = partial(Raters, sizes=(30, 30), labour="pareto")
    tied = partial(Raters, sizes=(30, 30), labour="tied")
    unequal = partial(Raters, sizes=(5, 200), each=20)
    four = partial(Raters, sizes=(60, 25, 15, 8))
    four_tied = partial(Raters, sizes=(60, 25, 15, 8), labour="tied")
    innocent: dict[str, tuple[Callable[[int], Raters], Lean]] = {
        "15 against 15 raters": (even, _none),
        "raters differ in strictness, sd 10 points": (even, partial(_strict, 0.1)),
        "raters differ in strictness, sd 20 points": (even, partial(_strict, 0.2)),
        "240 raters, strictness sd 10 points": (many, partial(_strict, 0.1)),
        "a few raters do most of the work": (pareto, partial(_strict, 0.1)),
        "group b does more of the work": (tied, partial(_strict, 0.1)),
        "5 against 200 raters": (unequal, _none),
        "5 against 200 raters, strictness sd 10 points": (unequal, partial(_strict, 0.1)),
        "four groups of 60, 25, 15 and 8 raters, strictness sd 10 points": (four, partial(_strict, 0.1)),
        "the same, of whom later groups do more of the work": (four_tied, partial(_strict, 0.1)),
    }
    strict = partial(_strict, 0.05)
    divided, less = (_with(strict, partial(_divided, points)) for points in (0.3, 0.2))
    guilty: dict[str, tuple[Callable[[int], Raters], Lean, float]] = {
        "group b calls 20 points more positive": (many, _with(strict, partial(_shift, 0.2)), 0.9),
        "group b calls 20 points fewer positive": (many, _with(strict, partial(_shift, -0.2)), 0.9),
        "15 against 15, group b calls 30 points more positive": (even, _with(strict, partial(_shift, 0.3)), 0.9),
        "a few do most of the work, group b 30 points more": (pareto, _with(strict, partial(_shift, 0.3)), 0.8),
        "240 raters, opposite by 40 points on every item": (many, _with(strict, partial(_opposite, 0.4, 1.0)), 0.9),
        "10 against 10 label everything, opposite by 40 points": (sorted_raters, partial(_opposite, 0.4, 1.0), 0.9),
        "240 raters, opposite by 60 points on every item": (many, partial(_opposite, 0.6, 1.0), 0.9),
        "four groups, the second calls 25 points more positive": (four, _with(strict, partial(_shift, 0.25)), 0.9),
        "four groups, the second opposite by 60 points on every item": (four, partial(_opposite, 0.6, 1.0), 0.8),
        "240 raters, opposite by 40 points on half of the items": (many, partial(_opposite, 0.4, 0.5), 0.8),
        "240 raters, opposite by 80 points on a fifth of the items": (many, partial(_opposite, 0.8, 0.2), 0.8),
        "15 against 15, half of group b 30 points more, half 30 less": (even, divided, 0.9),
        "15 against 15, half of group b 20 points more, half 20 less": (even, less, 0.9),
        "a few do most of the work, half of group b 30 points more, half 30 less": (pareto, divided, 0.8),
        "5 against 200, half of the 200 30 points more, half 30 less": (unequal, divided, 0.8),
        "four groups, half of the second 30 points more, half 30 less": (four, divided, 0.8),
    }
    for name, (make, lean) in innocent.items():
        yield System(STUDY, "simulated raters", name, "innocent", partial(judge, make, lean), fast=True)
    for name, (make, lean, power) in guilty.items():
        judge_draw = partial(judge, make, lean)
        yield System(STUDY, "simulated raters", name, "guilty", judge_draw, (), power, fast=True)
