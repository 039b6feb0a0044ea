"""What a method makes of a recipe's gaps: several trainings of a base, as many debiased ones, and of a control.

One checkpoint's gap before and after says what happened once. Here the variance between trainings is in the interval,
and a cure is called one only where the base's gap is shown, shrinks, and shrinks by more than the control's.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.lake import Row
from fairness_pipeline.measures.recipe_significance import context_variance
from fairness_pipeline.measures.registry import is_part
from fairness_pipeline.schemas import schema
from fairness_pipeline.statistics.change import Change, change_of_estimates
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.intervals import Estimate

RECIPE_EFFECTS = (
    schema(
        measure=pa.string(),
        unit=pa.string(),
        seeds=pa.int64(),
        n=pa.int64(),
        difference_before=pa.float64(),
        difference_after=pa.float64(),
        sd_before=pa.float64(),
        sd_after=pa.float64(),
        change=pa.float64(),
        ci_low=pa.float64(),
        ci_high=pa.float64(),
        p=pa.float64(),
        p_holm=pa.float64(),
        p_gap=pa.float64(),
        effect=pa.string(),
    )
    .append(pa.field("share_left", pa.float64()))
    .append(pa.field("control", pa.string()))
    .append(pa.field("difference_control", pa.float64()))
    .append(pa.field("p_control", pa.float64()))
)
"""One row a measure: means over seeds; `change` is that of the absolute difference, with its 95% interval.

`p_gap` is that of the base's gap (Holm-adjusted), `p_control` that of what the method changes beyond its control, and
`effect` one of `EFFECTS`.
"""

CURE, SMALLER, LARGER, NONE_SHOWN, NO_GAP = "cure", "smaller gap", "larger gap", "no change shown", "no gap shown"
EFFECTS = {
    CURE: "the base's gap is shown, and the method leaves less of it than base and control (where it has one)",
    SMALLER: "less than the base, but not shown to be less than its control, or without one in the profile",
    LARGER: "more than the base",
    NONE_SHOWN: "the base has a gap, and no change of it is shown",
    NO_GAP: "the base has no gap that its seeds show, so there is nothing to cure",
}


class Control(NamedTuple):
    """A control's name, and the significance table of each of its seeds; None where the profile lacks it."""

    name: str
    tables: Sequence[pa.Table]


def recipe_effects(
    before: Sequence[pa.Table], after: Sequence[pa.Table], control: Control | None, *, needed: bool, alpha: float
) -> pa.Table:
    """A table of `RECIPE_EFFECTS`.

    The error of a change: between seeds s^2 / k, and that of the contexts, which all seeds share, of both models as if
    they erred apart; degrees of freedom by Welch and Satterthwaite.

    Args:
        before: The base's significance tables, seed by seed.
        after: The method's, seed by seed; the first are those of the base's first seeds.
        control: What was trained in the same way without what shall cure.
        needed: Whether the method must do better than a control to be called a cure.
        alpha: The level.
    """
    found, was = map(_by_seed, (after, before))
    was = was[: len(found)]
    controls = _by_seed(control.tables) if control else []
    rows = []
    for name in found[0]:
        if is_part(name):
            continue
        own, base = ([rows_of[name] for rows_of in side] for side in (found, was))
        change = _change(base, own)
        beyond = _change([rows_of[name] for rows_of in controls], own) if controls else None
        before_all = _differences(base)
        rows.append(
            {
                **{column: own[0][column] for column in ("measure", "unit", "n")},
                "seeds": len(own),
                "difference_before": change.before,
                "difference_after": change.after,
                "sd_before": float(before_all.std(ddof=1)),
                "sd_after": float(_differences(own).std(ddof=1)),
                "change": change.change,
                "ci_low": change.low,
                "ci_high": change.high,
                "p": change.p,
                "p_gap": _estimate(before_all, context_variance(base)).p_zero(),
                "share_left": abs(change.after / change.before) if change.before else None,
                "control": control.name if control else None,
                "difference_control": beyond.before if beyond else None,
                "p_control": beyond.p if beyond else None,
                "beyond": beyond.change < 0 and beyond.p < alpha if beyond else not needed,
            }
        )
    adjusted = [holm([row[column] for row in rows]) for column in ("p", "p_gap")]
    for row, p_holm, p_gap in zip(rows, *adjusted, strict=True):
        row |= {"p_holm": p_holm, "p_gap": p_gap, "effect": _effect(row, p_holm, p_gap, alpha)}
        del row["beyond"]
    return pa.Table.from_pylist(rows, schema=RECIPE_EFFECTS)


def _effect(row: Row, p_holm: float, p_gap: float, alpha: float) -> str:
    if p_holm < alpha and row["change"] > 0:
        return LARGER
    if p_gap >= alpha:
        return NO_GAP
    if p_holm >= alpha:
        return NONE_SHOWN
    return CURE if row["beyond"] else SMALLER


def _by_seed(tables: Sequence[pa.Table]) -> list[dict[str, Row]]:
    return [{row["measure"]: row for row in table.to_pylist()} for table in tables]


def _differences(rows: list[Row]) -> np.ndarray:
    return np.array([row["difference"] for row in rows])


def _change(before: list[Row], after: list[Row]) -> Change:
    """Of the mean absolute difference between two recipes, seed by seed, of as many seeds as both have."""
    count = min(len(before), len(after))
    was, now = _differences(before[:count]), _differences(after[:count])
    contexts = context_variance(before[:count]) + context_variance(after[:count])
    means = float(was.mean()), float(now.mean())
    return change_of_estimates(means, _estimate(now - was, contexts), _estimate(now + was, contexts), "over seeds")


def _estimate(values: np.ndarray, contexts: float) -> Estimate:
    between = float(values.var(ddof=1)) / len(values)
    total = between + contexts
    freedom = (len(values) - 1) * (total / between) ** 2 if between and math.isfinite(total) else math.inf
    return Estimate(float(values.mean()), math.sqrt(total), freedom)
