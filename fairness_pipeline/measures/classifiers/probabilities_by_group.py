"""Compares a classifier's probabilities between two groups, at every threshold and not only at 0.5.

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


class AucPlacements(NamedTuple):
    """The AUC of each seed, and the placement of each text: the mean share of the other class that a positive text is
    above, or a negative text below."""

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
    predicted = Predictions.of(predictions)
    p = predictions["probability"].to_numpy().reshape(predicted.decisions.shape)
    if np.isin(p, (0.0, 1.0)).all():
        return CLASSIFIER_PROBABILITIES.empty_table()
    rows = [*_areas(predicted, p), *_by_threshold(predicted, p), *_calibration(predicted, p)]
    return pa.Table.from_pylist(rows, schema=CLASSIFIER_PROBABILITIES)


def area(p: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> AucPlacements:
    """The probability that a positive text scores higher than a negative one. Ties count as one half.

    Args:
        p: (seeds, texts) the probabilities.
        positive: The indices of the positive texts.
        negative: The indices of the negative texts.
    """
    both = np.concatenate([positive, negative])
    values, placements = [], []
    for scores in p:
        ranks = scipy.stats.rankdata(scores[both])
        above = (ranks[: len(positive)] - scipy.stats.rankdata(scores[positive])) / len(negative)
        below = 1 - (ranks[len(positive) :] - scipy.stats.rankdata(scores[negative])) / len(positive)
        values.append(above.mean())
        placements.append(np.concatenate([above, below]))
    return AucPlacements(np.array(values), np.mean(placements, axis=0), positive, negative)


def _areas(predictions: Predictions, p: np.ndarray) -> list[dict[str, object]]:
    cells = [
        [np.flatnonzero((predictions.groups == g) & (predictions.labels == label)) for label in (0, 1)] for g in (0, 1)
    ]
    rows: list[dict[str, object]] = []
    for measure, crossed in ((AUC, 0), (CROSSED, 1)):
        sides = [(cells[group][1], cells[abs(group - crossed)][0]) for group in (0, 1)]
        if not all(len(indices) for side in sides for indices in side):
            continue
        areas = [area(p, *side) for side in sides]
        texts = [len(side[0]) + len(side[1]) for side in sides]
        for side, auc, count in zip("ab", areas, texts, strict=True):
            rows.append(_row(measure, side, None, _estimate(predictions, [(auc, 1)]), count))
        rows.append(
            _row(measure, "difference", None, _estimate(predictions, [(areas[0], 1), (areas[1], -1)]), sum(texts))
        )
    return rows


def _estimate(predictions: Predictions, parts: list[tuple[AucPlacements, int]]) -> Estimate:
    """A sum of AUCs, with the variance over authors of its placements (DeLong et al. 1988; clustered as in Obuchowski
    1997) and that between seeds.

    As for the rates: the jackknife leaves out one author of a group, within the cells of label and group, and nothing
    is known if one author wrote a whole cell. The degrees of freedom are those of the cell with the fewest effective
    authors.
    """
    without = np.zeros((2, predictions.authors.max() + 1))  # by group: how much the sum falls without each author
    added, freedom = np.zeros(2), np.full(2, math.inf)
    by_seed = np.sum([sign * auc.values for auc, sign in parts], axis=0)
    centre = float(np.mean(by_seed))
    for auc, sign in parts:
        halves = np.split(auc.placement, [len(auc.positive)])
        for cell, placement in zip((auc.positive, auc.negative), halves, strict=True):
            group, cell_authors = predictions.groups[cell[0]], predictions.authors[cell]
            sizes = np.bincount(cell_authors, minlength=without.shape[1])
            if sizes.max() == len(cell):
                return Estimate(centre, math.inf, 1.0)
            sums = np.bincount(cell_authors, placement - placement.mean(), minlength=without.shape[1])
            without[group] += sign * sums / (len(cell) - sizes)
            # One text of either outcome is added to each cell: a few texts without errors are no certainty.
            added[group] += 2 * (0.5 / (len(cell) + 2)) ** 2
            freedom[group] = min(freedom[group], len(cell) ** 2 / np.square(sizes).sum() - 1)
    authors = np.maximum(1, np.count_nonzero(without, axis=1))
    variance = (authors - 1) / authors * np.square(without).sum(axis=1) + added
    # Authors with texts in both groups move both parts together. A smaller variance due to that is not used.
    covariance = max(0.0, 2 * float((without[0] * without[1]).sum()))
    seeds = [(float(np.var(by_seed, ddof=1)) / len(by_seed), len(by_seed) - 1.0)] if np.size(by_seed) > 1 else []
    return combined(centre, [*zip(variance, freedom, strict=True), (covariance, float(freedom.min())), *seeds])


def _by_threshold(predictions: Predictions, p: np.ndarray) -> list[dict[str, object]]:
    """Error rates of each group at each threshold."""
    rows = []
    for measure, label in ((FP, 0), (FN, 1), (DP, None)):
        for group, side in enumerate("ab"):
            about = (predictions.groups == group) & ((predictions.labels == label) if label is not None else True)
            for threshold in THRESHOLDS:
                positive = p[:, about] >= threshold
                if about.any():
                    value = float((~positive if measure == FN else positive).mean())
                    rows.append(_row(measure, side, threshold, Estimate(value, math.nan, 1.0), int(about.sum())))
    return rows


def _calibration(predictions: Predictions, p: np.ndarray) -> list[dict[str, object]]:
    """The share of positive texts in each tenth of probability, over all seeds."""
    rows = []
    bins = np.minimum((p * _BINS).astype(int), _BINS - 1)
    for group, side in enumerate("ab"):
        in_group = np.broadcast_to(predictions.groups == group, p.shape)
        labels = np.broadcast_to(predictions.labels, p.shape)
        for number in range(_BINS):
            inside = in_group & (bins == number)
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
