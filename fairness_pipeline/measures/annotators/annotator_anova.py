"""The analysis of variance of annotators' sensitivities and specificities against the majority vote (Liu 2022, section
5.2.2, table 5.3), for categories of any number of groups."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.annotation.bias_estimates import BIAS_ESTIMATES
from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels
from fairness_pipeline.annotation.truth_inference.group_design import RESPONSES, sum_to_zero
from fairness_pipeline.corpora.annotators.annotations import ANNOTATORS
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.measures.annotators.annotator_groups import Labelled
from fairness_pipeline.statistics.comparison import COMPARISON

ANNOTATOR_ANOVA = schema(
    **fields(ANNOTATORS, "category"),
    **fields(BIAS_ESTIMATES, "response"),
    annotators=(pa.int64(), "annotators whose groups are known and who labelled items of the class"),
    groups=(pa.list_(pa.string()), "the category's groups"),
    means=(pa.list_(pa.float64()), "mean response of each group's annotators against the majority vote"),
    sum_of_squares=optional(pa.float64(), "between the groups, after all other categories (type II)"),
    stars=(pa.string(), "* below 0.05, ** below 0.005"),
    freedom=(pa.int64(), "its degrees of freedom: groups minus 1"),
    f=optional(pa.float64(), "its F"),
    **fields(COMPARISON, "p"),
    reason=(pa.string(), "why there is no F; else empty"),
    published_sum_of_squares=optional(pa.float64(), "what the thesis prints"),
    published_stars=optional(pa.string(), "what the thesis prints"),
)
"""One row per category and response. Sum of squares, F and p are null where they cannot be computed, with the
reason: too few annotators, or a category that the other categories determine."""
STARS = ((0.005, "**"), (0.05, "*"))


def against_majority(labels: Labels) -> dict[str, np.ndarray]:
    """Each annotator's sensitivity and specificity against the majority vote (a tie is positive). NaN without any item.

    An annotator's own label is part of the vote, as in the thesis.
    """
    truth = np.asarray(labels.positive_shares() >= 0.5 - EPSILON)[labels.item]
    agrees = labels.label == truth
    responses = {}
    for response, of_class in zip(RESPONSES, (truth, ~truth), strict=True):
        count = labels.of_annotators(of_class.astype(float))
        agreed = labels.of_annotators((of_class & agrees).astype(float))
        responses[response] = np.where(count > 0, agreed / np.maximum(count, 1), np.nan)
    return responses


def analyse_variance(labelled: Labelled, published: Mapping[tuple[str, str], tuple[float, str]]) -> pa.Table:
    """A table of `ANNOTATOR_ANOVA`: additive, type II (each category after all others), k - 1 columns for k groups.

    Two kinds of annotators are left out: those with an unknown group in some category of two groups or more, and
    those who labelled no item of a class.

    Args:
        labelled: Labels of one draw, with the categories that are factors.
        published: The sum of squares and the stars that the thesis prints, by category and response.
    """
    factors = {category: levels for category, levels in labelled.levels.items() if len(levels.names) > 1}
    known = np.all(
        [np.ones(len(labelled.labels.annotators), bool), *(levels.code >= 0 for levels in factors.values())], axis=0
    )
    rows = []
    for response, values in against_majority(labelled.labels).items():
        kept = known & np.isfinite(values)
        y = values[kept]
        columns = {category: sum_to_zero(levels)[kept] for category, levels in factors.items()}
        residual, freedom = _residual(list(columns.values()), y), len(y) - _rank(list(columns.values()), len(y))
        for category, levels in labelled.levels.items():
            others = [column for name, column in columns.items() if name != category]
            added_rank = _rank(list(columns.values()), len(y)) - _rank(others, len(y))
            squares, size = max(0.0, _residual(others, y) - residual), max(0, len(levels.names) - 1)
            reason = ""
            if size < 1:
                reason = "fewer than two groups with annotators enough"
            elif freedom <= 0:
                reason = f"too few annotators ({len(y)}) for these groups"
            elif added_rank < size:
                reason = "the other categories determine its groups, or a group has nobody"
            elif residual <= EPSILON:
                reason = "within the groups all annotators agree with the vote alike"
            f = None if reason else squares / size / (residual / freedom)
            p = None if f is None else float(scipy.special.fdtrc(size, freedom, f))
            printed = published.get((category, response), (None, None))
            means = [y[levels.code[kept] == index] for index in range(len(levels.names))]
            rows.append(
                {
                    "category": category, "response": response, "annotators": len(y), "groups": list(levels.names),
                    "means": [float(group.mean()) if len(group) else None for group in means],
                    "sum_of_squares": None if reason else squares, "freedom": size,
                    "f": f, "p": p, "stars": "" if p is None else stars(p),
                    "reason": reason,
                    "published_sum_of_squares": printed[0], "published_stars": printed[1],
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=ANNOTATOR_ANOVA)


def stars(p: float) -> str:
    """The significance marks of the thesis: * below 0.05, ** below 0.005.

    Examples:
        >>> stars(0.001), stars(0.01), stars(0.5)
        ('**', '*', '')
    """
    return next((mark for level, mark in STARS if p < level), "")


def _residual(columns: list[np.ndarray], y: np.ndarray) -> float:
    """The residual sum of squares of y, regressed on a constant and the columns."""
    if not len(y):
        return 0.0
    design = np.column_stack([np.ones(len(y)), *columns])
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(np.square(y - fitted).sum())


def _rank(columns: list[np.ndarray], count: int) -> int:
    return int(np.linalg.matrix_rank(np.column_stack([np.ones(count), *columns]))) if count else 0
