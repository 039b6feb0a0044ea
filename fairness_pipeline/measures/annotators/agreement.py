"""Agreement of all annotators, and within each group: Krippendorff's alpha (2004), by the library `krippendorff`."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.corpora.annotators.annotations import ANNOTATORS
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.measures.annotators.annotator_groups import Labelled, by_group
from fairness_pipeline.measures.annotators.truth_scores import TRUTH_SCORES

LABEL_AGREEMENT = schema(
    **fields(ANNOTATORS, "category"),
    group=(pa.string(), "whose labels; empty for all annotators"),
    scale=(pa.string(), "nominal, or ordinal (classes in their order; of two classes the same)"),
    alpha=optional(
        pa.float64(), "Krippendorff's alpha; null where no item has two labels, or all labels are one class"
    ),
    **fields(TRUTH_SCORES, "ci_low", "ci_high"),
    items=(pa.int64(), "items with two labels or more"),
    labels=(pa.int64(), "labels of these items"),
)
"""Agreement within all annotators, and within each group. The 95% interval is the bootstrap's over items."""
_DRAWS, _SEED = 200, 0
Scale = Literal["nominal", "ordinal"]


def label_agreement(labelled: Labelled) -> pa.Table:
    """A table of `LABEL_AGREEMENT`."""
    rows = list(_rows("", "", labelled.labels.votes))
    for category, levels in labelled.levels.items():
        code = levels.code[labelled.labels.annotator]
        for index, group in enumerate(levels.names):
            rows += _rows(category, group, _votes(labelled.labels, code == index))
    return pa.Table.from_pylist(rows, schema=LABEL_AGREEMENT)


def _rows(category: str, group: str, votes: np.ndarray) -> Iterator[dict[str, Any]]:
    shared = votes[votes.sum(axis=1) > 1]
    for scale in ("nominal", "ordinal") if votes.shape[1] > 2 else ("nominal",):
        alpha, low, high = _alpha(shared, scale)
        yield {
            "category": category, "group": group, "scale": scale, "alpha": alpha, "ci_low": low, "ci_high": high,
            "items": len(shared), "labels": int(shared.sum()),
        }  # fmt: skip


def _votes(labels: Labels, mask: np.ndarray) -> np.ndarray:
    """(items, classes): the number of labels, among those of the mask."""
    return by_group(labels.item[mask], labels.label[mask], len(labels.items), labels.classes)


def _alpha(votes: np.ndarray, scale: Scale) -> tuple[float | None, float | None, float | None]:
    """Alpha and its 95% interval."""
    if len(votes) < 2 or (votes.sum(axis=0) > 0).sum() < 2:
        return None, None, None
    import krippendorff

    def alpha_of(counts: np.ndarray) -> float:
        return float(krippendorff.alpha(value_counts=counts, level_of_measurement=scale))

    random, drawn = np.random.default_rng(_SEED), []
    for _ in range(_DRAWS):
        resampled = votes[random.integers(len(votes), size=len(votes))]
        if (resampled.sum(axis=0) > 0).sum() > 1:
            drawn.append(alpha_of(resampled))
    low, high = np.quantile(drawn, (0.025, 0.975)) if drawn else (None, None)
    return alpha_of(votes), None if low is None else float(low), None if high is None else float(high)
