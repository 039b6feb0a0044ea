"""Scores of inferred labels, and of the classifiers that learned from them (Liu 2022, tables 5.5 and 5.6)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.annotation.bias_estimates import BIAS_ESTIMATES
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.statistics.intervals import Estimate

TRUTH, PREDICTION = "truth_inference", "prediction"
TRUTH_SCORES = schema(
    metric=(
        pa.string(),
        "truth_inference_ or prediction_, accuracy, f1 (of the positive class) or macro_f1 (the mean over classes)",
    ),
    items=(pa.int64(), "items with a known truth"),
    **fields(BIAS_ESTIMATES, "value"),
    values=(pa.list_(pa.float64()), "of each draw or seed"),
    over=(pa.string(), "what the interval is over: draws, seeds, or items"),
    **fields(BIAS_ESTIMATES, "ci_low", "ci_high"),
    published_value=optional(pa.float64(), "what the thesis prints"),
)
"""One row per metric, as shares. `value` is the mean of `values`."""
_BINS = 5
_DRAWS = 4000


def scores(
    kind: str, labels: Sequence[np.ndarray], truth: Sequence[np.ndarray], over: str, classes: int = 2
) -> list[dict[str, object]]:
    """Rows of `TRUTH_SCORES` without published values. Empty without items.

    Args:
        kind: `TRUTH` or `PREDICTION`.
        labels: The inferred or predicted labels of each draw or seed, from 0.
        truth: The true labels.
        over: What the elements are: draws or seeds.
        classes: The number of classes.
    """
    tables = [_confusion_matrix(predicted, actual, classes) for predicted, actual in zip(labels, truth, strict=True)]
    tables = [table for table in tables if table.sum()]
    if not tables:
        return []
    rows: list[dict[str, object]] = []
    for name, score in _SCORES.items():
        if name == "f1" and classes > 2:
            continue
        values = np.array([float(score(table)) for table in tables])
        if len(values) > 1:
            error = float(values.std(ddof=1) / np.sqrt(len(values)))
            low, high = np.clip(Estimate(float(values.mean()), error, len(values) - 1).interval(0.95), 0, 1)
        else:
            low, high = _interval_over_items(score, tables[0])
        rows.append(
            {
                "metric": f"{kind}_{name}", "items": int(tables[0].sum()), "value": float(values.mean()),
                "values": values.tolist(), "over": over if len(values) > 1 else "items",
                "ci_low": float(low), "ci_high": float(high),
            }
        )  # fmt: skip
    return rows


def truth_scores(rows: Sequence[Mapping[str, object]], published: Mapping[str, float]) -> pa.Table:
    """A table of `TRUTH_SCORES`.

    Args:
        rows: Rows from `scores`.
        published: The values that the thesis prints, by metric.
    """
    complete = [{**row, "published_value": published.get(str(row["metric"]))} for row in rows]
    return pa.Table.from_pylist(complete, schema=TRUTH_SCORES)


def calibration(probability: np.ndarray, truth: np.ndarray) -> list[tuple[float, float, int]]:
    """Mean probability, share of positive items, and number of items, for the items in each fifth of 0 to 1.

    Args:
        probability: The inferred probability of each item.
        truth: The true labels, 0 or 1.

    Examples:
        >>> calibration(np.array([0.1, 0.1, 0.9]), np.array([0, 0, 1]))
        [(0.1, 0.0, 2), (0.9, 1.0, 1)]
    """
    bin_of = np.minimum((probability * _BINS).astype(int), _BINS - 1)
    return [
        (
            float(probability[bin_of == number].mean()),
            float(truth[bin_of == number].mean()),
            int((bin_of == number).sum()),
        )
        for number in range(_BINS)
        if (bin_of == number).any()
    ]


def _interval_over_items(score: Callable[[np.ndarray], np.ndarray], table: np.ndarray) -> tuple[float, float]:
    """The 95% interval over items: Wilson's for the accuracy, and the bootstrap's for F1 if F1 is defined."""
    count = int(table.sum())
    if score is _accuracy:
        interval = scipy.stats.binomtest(int(np.trace(table)), count).proportion_ci(method="wilson")
        return float(interval.low), float(interval.high)
    drawn = np.random.default_rng(0).multinomial(count, table.ravel() / count, _DRAWS).reshape(-1, *table.shape)
    values = score(drawn[drawn.sum(axis=(1, 2)) > drawn[:, 0, 0]] if score is _f1 else drawn)
    low, high = np.quantile(values, (0.025, 0.975)) if len(values) else (0.0, 1.0)
    return float(low), float(high)


def _confusion_matrix(predicted: np.ndarray, truth: np.ndarray, classes: int) -> np.ndarray:
    """(classes, classes): how many items of a class (first) were predicted to be of a class (second)."""
    return np.bincount(classes * truth + predicted, minlength=classes**2).reshape(classes, classes)


def _accuracy(table: np.ndarray) -> np.ndarray:
    accuracy: np.ndarray = np.trace(table, axis1=-2, axis2=-1) / table.sum(axis=(-2, -1))
    return accuracy


def _f1(table: np.ndarray) -> np.ndarray:
    """The F1 of the positive class."""
    return _f1_of_classes(table)[..., 1]


def _macro_f1(table: np.ndarray) -> np.ndarray:
    """The mean F1 over classes."""
    return np.asarray(_f1_of_classes(table).mean(axis=-1))


def _f1_of_classes(table: np.ndarray) -> np.ndarray:
    """(..., classes) the F1 of each class."""
    correct = np.diagonal(table, axis1=-2, axis2=-1)
    return np.asarray(2 * correct / np.maximum(table.sum(axis=-1) + table.sum(axis=-2), 1))


_SCORES = {"accuracy": _accuracy, "f1": _f1, "macro_f1": _macro_f1}
