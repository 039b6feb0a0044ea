"""Does the gap hang on the training? One of several trainings may lean far while the mean over all shows little.

Trainings differ by chance, and they always differ a little. So the spread of their gaps must be more than exchanged
authors give, and large.
"""

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.classifiers.group_rates import CELLS, Predictions, rates, said_of
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.spread import LEVEL, upper_bound
from fairness_pipeline.statistics.verdicts import FAIR_ON_AVERAGE
from fairness_pipeline.statistics.welch import of_like_labour

TRAINING_MARGIN = 0.15
"""A typical difference between trainings that does not matter: those of one recipe lie some points apart."""
ONE_TRAINING = "the gap hangs on the training"
"""The beginning of the note of a row that is biased although the mean over trainings is not shown to be."""
_DRAWS = 4999
_AT_ONCE = 500


class TrainingSpread(NamedTuple):
    """How far the gap varies between trainings.

    Attributes:
        p: The p of trainings that differ by chance alone; authors of like labour change groups.
        typical: The standard deviation of the trainings' gaps beyond chance, 0..1.
        upper: Its upper 95% bound.
        gaps: Group a's rate minus group b's, of each training.
    """

    p: float
    typical: float
    upper: float
    gaps: tuple[float, ...]

    @property
    def said(self) -> str:
        """The gaps in words."""
        return f"the trainings' gaps are {', '.join(f'{100 * gap:+.0f}' for gap in self.gaps)} points"


def training_spread(predictions: Predictions, measure: str) -> TrainingSpread | None:
    """The test of a gap that varies between trainings. None of a single training, or of too few authors.

    Args:
        predictions: Of two groups.
        measure: One of `group_rates.RATES`.
    """
    if len(predictions.said) < 2:
        return None
    said, people = said_of(predictions, measure), int(predictions.authors.max()) + 1
    cells = []
    for label in CELLS[measure]:
        about = (predictions.labels == label) & (predictions.groups < 2)
        counts = np.bincount(predictions.authors[about], minlength=people)
        sums = np.stack([np.bincount(predictions.authors[about], each[about], people) for each in said], axis=1)
        cells.append((sums, counts))
    group = np.full(people, -1)
    group[predictions.authors] = predictions.groups
    labour = np.sum([counts for _, counts in cells], axis=0)
    group[labour == 0] = -1
    known = np.flatnonzero(group >= 0)
    if min(int((group == side).sum()) for side in (0, 1)) < FEWEST_TO_TELL:  # few authors have few other groups
        return None
    strata = of_like_labour(labour, group)
    random = np.random.default_rng(0)
    chance: list[np.ndarray] = []
    for start in range(0, _DRAWS, _AT_ONCE):
        drawn = np.tile(group, (min(_AT_ONCE, _DRAWS - start), 1))
        for stratum in strata:
            drawn[:, stratum] = random.permuted(drawn[:, stratum], axis=1)
        chance.append(_gaps(drawn[:, known], known, cells).var(axis=1, ddof=1))
    spread = np.concatenate(chance)
    each = rates(predictions, measure)
    gaps = each[:, 0] - each[:, 1]
    if not np.isfinite(gaps).all():
        return None
    observed = float(gaps.var(ddof=1))
    by_chance = float(spread.mean())
    return TrainingSpread(
        (1 + int((spread >= observed - 1e-12).sum())) / (_DRAWS + 1),
        math.sqrt(max(0.0, observed - by_chance)),
        upper_bound(observed, by_chance, len(gaps)),
        tuple(gaps.tolist()),
    )


def judge_trainings(table: pa.Table, predictions: pa.Table, alpha: float) -> pa.Table:
    """A table of `CLASSIFIER_FAIRNESS` with the verdicts that the spread of trainings gives. What is fair is fair on
    average only, unless the spread is shown to be small.

    Args:
        table: The verdicts on the means, of two groups.
        predictions: As `CLASSIFIER_PREDICTIONS`.
        alpha: The level; spread has a part of it.
    """
    read = Predictions.of(predictions)
    spreads = {name: spread for name in table["measure"].to_pylist() if (spread := training_spread(read, name))}
    adjusted = dict(zip(spreads, holm([spread.p for spread in spreads.values()]), strict=True))
    rows = []
    for row in table.to_pylist():
        if spread := spreads.get(row["measure"]):
            p = float(adjusted[row["measure"]])
            row |= {"p_trainings": p, "trainings": 100 * spread.typical, "trainings_upper": 100 * spread.upper}
            if row["verdict"] != "biased" and p < LEVEL * alpha and spread.typical >= TRAINING_MARGIN:
                note = "; ".join(filter(None, [f"{ONE_TRAINING}: {spread.said}", row["note"]]))
                row |= {"verdict": "biased", "p_holm": p / LEVEL, "note": note}
            elif row["verdict"] == "fair" and spread.upper >= TRAINING_MARGIN:
                row["verdict"] = FAIR_ON_AVERAGE
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=table.schema)


def _gaps(group: np.ndarray, known: np.ndarray, cells: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(draws, trainings) the gaps when authors have these groups: (draws, known authors)."""
    gaps = []
    for sums, counts in cells:
        of_a, of_b = (
            (group == side).astype(float) @ sums[known]
            / np.maximum((group == side).astype(float) @ counts[known], 1)[:, None]
            for side in (0, 1)
        )  # fmt: skip
        gaps.append(of_a - of_b)
    return np.mean(gaps, axis=0)
