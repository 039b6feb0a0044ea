"""Rates by group of all rows as delivered: nothing is balanced, averaged or left out.

This is the table that rules on selection rates ask for: each group's rows, selected and rate, the ratio to the most
selected group with an interval, crossed groups, unknown and small ones by name, and with true answers the error rates.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.corpora.outcomes.trials import Codes, Trials
from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.measures.outcomes.rows import CROSS
from fairness_pipeline.statistics.rate_ratios import Ratio, Selected, log_ratio_variance, rate_ratio, word_of

UNKNOWN_GROUP, ALL_GROUPS = "unknown", "all groups"
SMALL = 0.02
"""A group with a smaller share of the rows is compared, but is never the most selected."""

OUTCOME_RATES = schema(
    outcome=(pa.string(), "what came out"),
    attribute=(pa.string(), "the group column, or two crossed"),
    group=(pa.string(), f"the group; {UNKNOWN_GROUP} where none is named; {ALL_GROUPS} for the lowest ratio of all"),
    rows=(pa.int64(), "all rows of the group"),
    missing=(pa.int64(), "those without this outcome"),
    selected=(pa.int64(), "those with the outcome 1"),
    rate=optional(pa.float64(), "selected, in percent of the rows with an outcome"),
    small=(pa.bool_(), "whether it has less than 2% of the rows, and is compared but is never the most selected"),
    ratio=optional(pa.float64(), "the rate divided by that of the most selected group"),
    ratio_low=optional(pa.float64(), "lower end of its 95% interval"),
    ratio_high=optional(pa.float64(), "upper end, corrected for the number of groups"),
    four_fifths=optional(pa.string(), "below 4/5 shown, 4/5 shown, or cannot tell"),
    clusters=optional(pa.int64(), "the clusters that the interval rests on; null if rows are independent"),
    labelled=optional(pa.int64(), "rows with a true answer"),
    accuracy=optional(pa.float64(), "those that came out as their true answer, in percent"),
    negatives=optional(pa.int64(), "rows whose true answer is no"),
    false_positive_rate=optional(pa.float64(), "those of them that are selected, in percent"),
    positives=optional(pa.int64(), "rows whose true answer is yes"),
    false_negative_rate=optional(pa.float64(), "those of them that are not selected, in percent"),
)
"""Rates of yes/no outcomes by group, of all rows."""


def rates_by_group(
    trials: Trials, condition: str, outcomes: Mapping[str, Outcome], unmarked: str | None = None
) -> pa.Table:
    """A table of `OUTCOME_RATES` of one condition.

    Args:
        trials: The trials.
        condition: The key of the condition.
        outcomes: By name; those that are no rates are left out.
        unmarked: The level of group columns at which no group is said: such rows count as unknown.
    """
    chosen = trials.condition.code == trials.condition.names.index(condition)
    sample = trials.cluster or trials.item
    cluster = sample.code[chosen] if sample else None
    groups = {
        name: Codes(column.code[chosen], column.names).without(unmarked) for name, column in trials.groups.items()
    }
    crossed = {CROSS.join(both): groups[both[0]].crossed(groups[both[1]]) for both in combinations(groups, 2)}
    rows: list[dict[str, Any]] = []
    for name, outcome in outcomes.items():
        if outcome.kind == "yes_no" and name in trials.values:
            labels = trials.labels[name][chosen] if name in trials.labels else None
            for attribute, codes in {**groups, **crossed}.items():
                for row in _attribute_rows(trials.values[name][chosen], labels, codes, cluster):
                    rows.append({"outcome": name, "attribute": attribute, **row})
    return pa.Table.from_pylist(rows, schema=OUTCOME_RATES)


def lowest_ratio(rows: Sequence[Mapping[str, Any]], outcome: str, attribute: str) -> str:
    """The lowest ratio of an outcome's groups, in words; empty if there is none."""
    by_group = {row["group"]: row for row in rows if (row["outcome"], row["attribute"]) == (outcome, attribute)}
    overall = by_group.get(ALL_GROUPS)
    if overall is None or overall["ratio"] is None:
        return ""
    group = next(
        name
        for name, row in by_group.items()
        if row["ratio"] == overall["ratio"] and name != ALL_GROUPS and not row["small"]
    )
    best = next(name for name, row in by_group.items() if row["ratio"] == 1.0 and row["four_fifths"] is None)
    low, high = overall["ratio_low"], overall["ratio_high"]
    interval = f"{low:.2f} to {'-' if high is None else f'{high:.2f}'}"
    rates = f"{by_group[group]['rate']:.1f}% of '{group}' and {by_group[best]['rate']:.1f}% of '{best}'"
    word = overall["four_fifths"]
    doubt = ", as 0.8 lies in the interval; more rows would narrow it" if word == "cannot tell" else ""
    return f"{outcome} by {attribute}: {rates}, ratio {overall['ratio']:.2f} ({interval}): {word}{doubt}"


def _attribute_rows(
    values: np.ndarray, labels: np.ndarray | None, codes: Codes, cluster: np.ndarray | None
) -> Iterator[dict[str, Any]]:
    known = ~np.isnan(values)
    count = len(codes.names)
    sizes = np.bincount(codes.code[known & (codes.code >= 0)], minlength=count)
    sums = np.bincount(codes.code[known & (codes.code >= 0)], values[known & (codes.code >= 0)], count)
    group_rows = np.bincount(codes.code[codes.code >= 0], minlength=count)
    small = group_rows < SMALL * len(values)
    may_be_best = (sizes > 0) & ~small
    rates = np.divide(sums, sizes, out=np.zeros(count), where=sizes > 0)
    best = int(np.argmax(np.where(may_be_best, rates, -1.0))) if may_be_best.any() else None
    others = [index for index in range(count) if index != best and sizes[index]]
    ratios: dict[int, Ratio] = {}
    selected, group = values[known], codes.code[known]
    known_cluster = cluster[known] if cluster is not None else None
    if best is not None and rates[best] > 0:
        for index in others:
            variance, freedom = log_ratio_variance(selected, group, index, best, known_cluster)
            rows_of_group, rows_of_best = (_selected(selected, group, known_cluster, code) for code in (index, best))
            plain = rate_ratio(rows_of_group, rows_of_best, variance, freedom)
            high = rate_ratio(rows_of_group, rows_of_best, variance, freedom, 1 - 0.05 / len(others)).high
            ratios[index] = plain._replace(high=high)
    compared = {index: ratio for index, ratio in ratios.items() if not small[index]}
    sample = None if known_cluster is None else len(np.unique(known_cluster))
    for index in [*range(count), -1]:
        mask = codes.code == index
        if index == -1 and not mask.any():
            continue
        ratio = ratios.get(index)
        yield {
            "group": codes.names[index] if index >= 0 else UNKNOWN_GROUP,
            **_counts(values, labels, mask),
            "small": bool(index >= 0 and small[index]),
            **(
                _ratio_columns(ratio, sample) if ratio else {"ratio": 1.0} if index == best and rates[index] > 0 else {}
            ),
        }
    if compared:
        worst = min(compared.values(), key=lambda ratio: ratio.value if ratio.value is not None else 1.0)
        low, high = (min(getattr(ratio, end) for ratio in compared.values()) for end in ("low", "high"))
        all_rows = np.ones(len(values), dtype=bool)
        yield {
            "group": ALL_GROUPS,
            **_counts(values, labels, all_rows),
            "small": False,
            **_ratio_columns(Ratio(worst.value, low, high), sample),
        }


def _selected(selected: np.ndarray, group: np.ndarray, cluster: np.ndarray | None, number: int) -> Selected:
    mask = group == number
    return Selected.of(selected[mask], cluster[mask] if cluster is not None else None)


def _ratio_columns(ratio: Ratio, clusters: int | None) -> dict[str, Any]:
    return {
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high if np.isfinite(ratio.high) else None,
        "four_fifths": word_of(ratio.low, ratio.high),
        "clusters": clusters,
    }


def _counts(values: np.ndarray, labels: np.ndarray | None, mask: np.ndarray) -> dict[str, Any]:
    """Counts and rates of some rows, in percent."""
    chosen = values[mask]
    known = ~np.isnan(chosen)
    counts: dict[str, Any] = {
        "rows": int(mask.sum()),
        "missing": int((~known).sum()),
        "selected": int(chosen[known].sum()),
        "rate": _percent(chosen[known] == 1),
    }
    if labels is not None:
        truth = labels[mask]
        both = known & ~np.isnan(truth)
        negative, positive = both & (truth == 0), both & (truth == 1)
        counts |= {
            "labelled": int(both.sum()),
            "accuracy": _percent(chosen[both] == truth[both]),
            "negatives": int(negative.sum()),
            "false_positive_rate": _percent(chosen[negative] == 1),
            "positives": int(positive.sum()),
            "false_negative_rate": _percent(chosen[positive] == 0),
        }
    return counts


def _percent(hits: np.ndarray) -> float | None:
    return 100 * float(hits.mean()) if len(hits) else None
