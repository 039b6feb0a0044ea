"""Does the gap depend on the training? One of several trainings may have a large gap while the mean over all is small.

Trainings always differ a little by chance. The spread of their gaps must therefore be large, and larger than with
exchanged authors. With three groups or more, the gap is that of the two groups between which it varies most.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.classifiers.group_rates import CELLS, RATES, Predictions, counted_decisions, rates
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.spread import LEVEL, upper_bound
from fairness_pipeline.statistics.verdicts import joined_notes, on_spread
from fairness_pipeline.statistics.welch import of_like_labour

TRAINING_MARGIN = 0.15
"""A typical difference between trainings that does not matter: trainings of one recipe differ by some points."""
ONE_TRAINING = "the gap hangs on the training"
"""The beginning of the note of a row that is biased although the mean over trainings is not shown to be."""
_DRAWS = 4999
_MOST_AT_ONCE = 2_000_000
"""Authors whose groups are exchanged together."""


class TrainingSpread(NamedTuple):
    """How far the gap varies between trainings.

    Attributes:
        p: The p of the hypothesis that trainings differ by chance alone. Authors with similarly many texts change
            groups.
        typical: The standard deviation of the trainings' gaps beyond chance, 0..1.
        upper: Its upper 95% bound.
        pair: The numbers of the two groups between which the gap varies most.
        gaps: The rate of the first group minus that of the second, for each training.
    """

    p: float
    typical: float
    upper: float
    pair: tuple[int, int]
    gaps: tuple[float, ...]

    def describe(self, names: Sequence[str]) -> str:
        """The gaps in words; with more than two groups, the two are named."""
        between = f" between {names[self.pair[0]]} and {names[self.pair[1]]}" if len(names) > 2 else ""
        return f"the trainings' gaps{between} are {', '.join(f'{100 * gap:+.0f}' for gap in self.gaps)} points"


def training_spread(predictions: Predictions, measure: str) -> TrainingSpread | None:
    """The test of a gap that varies between trainings. None for a single training or too few authors.

    The statistic is the variance over trainings of the gap between two groups: the largest of all pairs.

    Args:
        predictions: Predictions for two groups or more, each with texts that the rate is about.
        measure: One of `group_rates.RATES`.
    """
    numbers, author_count = np.unique(predictions.groups), int(predictions.authors.max()) + 1
    pairs = list(combinations(range(len(numbers)), 2))
    if len(predictions.decisions) < 2 or not pairs:
        return None
    counted = counted_decisions(predictions, measure)
    cells = []
    for label in CELLS[measure]:
        about = predictions.labels == label
        counts = np.bincount(predictions.authors[about], minlength=author_count)
        sums = np.stack(
            [np.bincount(predictions.authors[about], training[about], author_count) for training in counted], axis=1
        )
        cells.append((sums, counts))
    group = np.full(author_count, -1)
    group[predictions.authors] = np.searchsorted(numbers, predictions.groups)
    text_counts = np.sum([counts for _, counts in cells], axis=0)
    group[text_counts == 0] = -1
    known = np.flatnonzero(group >= 0)
    if np.bincount(group[known], minlength=len(numbers)).min() < FEWEST_TO_TELL:  # few authors have few other groups
        return None
    strata = of_like_labour(text_counts, group)
    random = np.random.default_rng(0)
    at_once = max(1, _MOST_AT_ONCE // author_count)
    chance: list[np.ndarray] = []
    for start in range(0, _DRAWS, at_once):
        drawn_groups = np.tile(group, (min(at_once, _DRAWS - start), 1))
        for stratum in strata:
            drawn_groups[:, stratum] = random.permuted(drawn_groups[:, stratum], axis=1)
        by_group = _rates(
            drawn_groups[:, known], [(sums[known], counts[known]) for sums, counts in cells], len(numbers)
        )
        chance.append(np.max([(by_group[a] - by_group[b]).var(axis=1, ddof=1) for a, b in pairs], axis=0))
    drawn_variances = np.concatenate(chance)
    observed_rates = rates(predictions, measure, numbers.tolist())
    if not np.isfinite(observed_rates).all():
        return None
    variances = [float((observed_rates[:, a] - observed_rates[:, b]).var(ddof=1)) for a, b in pairs]
    observed, (a, b) = max(zip(variances, pairs, strict=True))
    by_chance = float(drawn_variances.mean())
    return TrainingSpread(
        (1 + int((drawn_variances >= observed - 1e-12).sum())) / (_DRAWS + 1),
        math.sqrt(max(0.0, observed - by_chance)),
        upper_bound(observed, by_chance, len(observed_rates)),
        (int(numbers[a]), int(numbers[b])),
        tuple((observed_rates[:, a] - observed_rates[:, b]).tolist()),
    )


def judge_trainings(
    table: pa.Table, predictions: pa.Table, names: Sequence[str], alpha: float, *, inferred: bool = False
) -> pa.Table:
    """A table of `CLASSIFIER_FAIRNESS` with verdicts that account for the spread of trainings. A fair row is fair on
    average only, unless the spread is shown to be small.

    Args:
        table: The verdicts on the means.
        predictions: As `CLASSIFIER_PREDICTIONS`.
        names: The names of the groups.
        alpha: The level, of which the test of spread gets a part.
        inferred: Whether groups were inferred from texts. Spread is no finding then, because the words that reveal
            the group may cause it.
    """
    predicted = Predictions.of(predictions)
    if len(predicted.decisions) < 2:
        return table
    spreads = {
        measure: spread
        for measure in RATES
        if (spread := training_spread(predicted.only(predicted.with_texts(measure)), measure))
    }
    adjusted = dict(zip(spreads, holm([spread.p for spread in spreads.values()]), strict=True))
    rows = []
    for row in table.to_pylist():
        measure = row["measure"].split(": ")[0]
        spread, shown = spreads.get(measure), False
        if spread and measure == row["measure"]:
            p = float(adjusted[measure])
            row |= {"p_trainings": p, "trainings": 100 * spread.typical, "trainings_upper": 100 * spread.upper}
            shown = not inferred and p < LEVEL * alpha and spread.typical >= TRAINING_MARGIN
            if shown and row["verdict"] != "biased":
                row["p_holm"] = p / LEVEL
                row["note"] = joined_notes(f"{ONE_TRAINING}: {spread.describe(names)}", row["note"])
        row["verdict"] = on_spread(
            row["verdict"], shown=shown, small=spread is not None and spread.upper < TRAINING_MARGIN
        )
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=table.schema)


def _rates(group: np.ndarray, cells: list[tuple[np.ndarray, np.ndarray]], count: int) -> list[np.ndarray]:
    """The rates of each group, (draws, trainings), if authors have the groups (draws, authors)."""
    members = [(group == number).astype(float) for number in range(count)]
    return [
        np.mean([member @ sums / np.maximum(member @ counts, 1)[:, None] for sums, counts in cells], axis=0)
        for member in members
    ]
