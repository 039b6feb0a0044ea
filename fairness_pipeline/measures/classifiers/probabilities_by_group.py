"""What a classifier's probabilities say of two groups, at every threshold and not at 0.5 alone.

Error rates by threshold; the area under the ROC curve (AUC) within each group and across groups (Borkan et al. 2019:
positive texts of one group against negative texts of the other); calibration by group. None of this is in the thesis,
which judges decisions at 0.5.
"""

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.measures.classifiers.group_rates import DP, FN, FP, Predictions
from fairness_pipeline.statistics.intervals import Estimate, combined

AUC, CROSSED, CALIBRATION = "auc", "auc_crossed", "calibration"
CLASSIFIER_PROBABILITIES = schema(
    measure=(
        pa.string(),
        "auc (within a group), auc_crossed (its positive texts against the other group's negative ones), fp_rate, "
        "fn_rate, dp_rate (from a threshold on), or calibration (share of positive texts by probability)",
    ),
    side=(pa.string(), "a, b, or difference (a minus b)"),
    at=optional(pa.float64(), "the threshold, or the mean probability of the texts of a tenth of 0 to 1"),
    value=(pa.float64(), "mean over the seeds, 0 to 1"),
    ci_low=optional(pa.float64(), "lower end of the 95% interval, over authors and seeds"),
    ci_high=optional(pa.float64(), "upper end of that interval"),
    texts=(pa.int64(), "texts that it rests on"),
)
"""Empty for a classifier that gives labels only."""
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_BINS = 10


class Placed(NamedTuple):
    """An AUC of each seed, and the placement of each text: the mean share of the other class that it is above (of a
    positive text) or below (of a negative one)."""

    values: np.ndarray
    placement: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


def describe_probabilities(predictions: pa.Table) -> pa.Table:
    """A table of `CLASSIFIER_PROBABILITIES`.

    Args:
        predictions: As `CLASSIFIER_PREDICTIONS`.

    Examples:
        >>> names = ["text_id", "author_id", "label", "author_group", "probability", "prediction", "seed"]
        >>> rows = [(f"t{i}", f"t{i}", i % 2, "ab"[i // 4], p, int(p >= 0.5), 1)
        ...         for i, p in enumerate([0.1, 0.9, 0.2, 0.8, 0.1, 0.2, 0.3, 0.4])]
        >>> found = describe_probabilities(pa.table(dict(zip(names, zip(*rows)))))
        >>> [(row["side"], row["value"]) for row in found.to_pylist() if row["measure"] == "auc"]
        [('a', 1.0), ('b', 0.75), ('difference', 0.25)]
    """
    found = Predictions.of(predictions)
    p = predictions["probability"].to_numpy().reshape(found.said.shape)
    if np.isin(p, (0.0, 1.0)).all():
        return CLASSIFIER_PROBABILITIES.empty_table()
    rows = [*_areas(found, p), *_by_threshold(found, p), *_calibration(found, p)]
    return pa.Table.from_pylist(rows, schema=CLASSIFIER_PROBABILITIES)


def area(p: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> Placed:
    """P(a positive text gets more than a negative one), ties as one half.

    Args:
        p: (seeds, texts) the probabilities.
        positive: The numbers of the positive texts.
        negative: The numbers of the negative texts.
    """
    both = np.concatenate([positive, negative])
    values, placements = [], []
    for own in p:
        ranks = scipy.stats.rankdata(own[both])
        above = (ranks[: len(positive)] - scipy.stats.rankdata(own[positive])) / len(negative)
        below = 1 - (ranks[len(positive) :] - scipy.stats.rankdata(own[negative])) / len(positive)
        values.append(above.mean())
        placements.append(np.concatenate([above, below]))
    return Placed(np.array(values), np.mean(placements, axis=0), positive, negative)


def _areas(found: Predictions, p: np.ndarray) -> list[dict[str, object]]:
    cells = [[np.flatnonzero((found.groups == g) & (found.labels == label)) for label in (0, 1)] for g in (0, 1)]
    rows: list[dict[str, object]] = []
    for measure, other in ((AUC, 0), (CROSSED, 1)):
        sides = [(cells[group][1], cells[abs(group - other)][0]) for group in (0, 1)]
        if not all(len(own) for side in sides for own in side):
            continue
        placed = [area(p, *side) for side in sides]
        texts = [len(side[0]) + len(side[1]) for side in sides]
        for side, own, count in zip("ab", placed, texts, strict=True):
            rows.append(_row(measure, side, None, _estimate(found, [(own, 1)]), count))
        rows.append(_row(measure, "difference", None, _estimate(found, [(placed[0], 1), (placed[1], -1)]), sum(texts)))
    return rows


def _estimate(found: Predictions, parts: list[tuple[Placed, int]]) -> Estimate:
    """A sum of AUCs, with the variance over authors of its placements (DeLong et al. 1988; clustered as in Obuchowski
    1997) and that between seeds.

    As for the rates: the jackknife leaves out one author of a group, within the cells of label and group, and nothing
    is known if one author wrote a whole cell. The degrees of freedom are those of the cell with the fewest effective
    authors.
    """
    without = np.zeros((2, found.authors.max() + 1))  # by group: how much the sum falls without each author
    added, freedom = np.zeros(2), np.full(2, math.inf)
    each = np.sum([sign * own.values for own, sign in parts], axis=0)
    centre = float(np.mean(each))
    for own, sign in parts:
        halves = np.split(own.placement, [len(own.positive)])
        for cell, placement in zip((own.positive, own.negative), halves, strict=True):
            group, who = found.groups[cell[0]], found.authors[cell]
            sizes = np.bincount(who, minlength=without.shape[1])
            if sizes.max() == len(cell):
                return Estimate(centre, math.inf, 1.0)
            sums = np.bincount(who, placement - placement.mean(), minlength=without.shape[1])
            without[group] += sign * sums / (len(cell) - sizes)
            # A text of either outcome more in each cell: no error among a few texts is no certainty.
            added[group] += 2 * (0.5 / (len(cell) + 2)) ** 2
            freedom[group] = min(freedom[group], len(cell) ** 2 / np.square(sizes).sum() - 1)
    authors = np.maximum(1, np.count_nonzero(without, axis=1))
    variance = (authors - 1) / authors * np.square(without).sum(axis=1) + added
    together = max(0.0, 2 * float((without[0] * without[1]).sum()))  # of authors in both groups; never used to gain
    seeds = [(float(np.var(each, ddof=1)) / len(each), len(each) - 1.0)] if np.size(each) > 1 else []
    return combined(centre, [*zip(variance, freedom, strict=True), (together, float(freedom.min())), *seeds])


def _by_threshold(found: Predictions, p: np.ndarray) -> list[dict[str, object]]:
    """Error rates of each group from each threshold on."""
    rows = []
    for measure, label in ((FP, 0), (FN, 1), (DP, None)):
        for group, side in enumerate("ab"):
            about = (found.groups == group) & ((found.labels == label) if label is not None else True)
            for threshold in THRESHOLDS:
                said = p[:, about] >= threshold
                if about.any():
                    value = float((~said if measure == FN else said).mean())
                    rows.append(_row(measure, side, threshold, Estimate(value, math.nan, 1.0), int(about.sum())))
    return rows


def _calibration(found: Predictions, p: np.ndarray) -> list[dict[str, object]]:
    """Share of positive texts among those of each tenth of probability, over all seeds."""
    rows = []
    place = np.minimum((p * _BINS).astype(int), _BINS - 1)
    for group, side in enumerate("ab"):
        own = np.broadcast_to(found.groups == group, p.shape)
        labels = np.broadcast_to(found.labels, p.shape)
        for each in range(_BINS):
            inside = own & (place == each)
            if inside.any():
                value = Estimate(float(labels[inside].mean()), math.nan, 1.0)
                rows.append(_row(CALIBRATION, side, float(p[inside].mean()), value, int(inside.sum())))
    return rows


def _row(measure: str, side: str, at: float | None, value: Estimate, texts: int) -> dict[str, object]:
    low, high = value.interval(0.95) if math.isfinite(value.error) else (None, None)
    if low is not None and high is not None and side != "difference":
        low, high = max(0.0, low), min(1.0, high)
    return {
        "measure": measure, "side": side, "at": at, "value": value.centre, "ci_low": low, "ci_high": high,
        "texts": texts,
    }  # fmt: skip
