"""The effect of a method on a recipe's gaps: several trainings of a base, as many debiased ones, and of controls.

The gap of one checkpoint before and after shows what happened once. Here the interval includes the variance between
trainings. A cure needs three conditions: the base's gap is shown, less than half of it is left, and less is left than
with any control.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.measures.dialogue.measure import deciding
from fairness_pipeline.measures.dialogue.naming import FEWEST, NAMES_OTHER
from fairness_pipeline.measures.dialogue.recipe_significance import RECIPE_SIGNIFICANCE, context_variance
from fairness_pipeline.measures.dialogue.registry import is_gap
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS, LARGER, NONE_SHOWN, SMALLER, level_columns
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.intervals import Estimate, combined, quantile
from fairness_pipeline.workspace.lake import Row

RECIPE_EFFECTS = schema(
    **fields(COMPARISON, "measure", "unit"),
    **fields(RECIPE_SIGNIFICANCE, "seeds"),
    **fields(COMPARISON, "n"),
    difference_before=(pa.float64(), "side a minus side b of the base model"),
    difference_after=(pa.float64(), "side a minus side b of the debiased model"),
    sd_before=(pa.float64(), "standard deviation of the base's difference between seeds"),
    sd_after=(pa.float64(), "the same of the debiased model"),
    change=(pa.float64(), "how much smaller (negative) or larger the absolute difference became"),
    **fields(RECIPE_SIGNIFICANCE, "ci_low", "ci_high", "p"),
    **fields(COMPARISON, "p_holm"),
    p_gap=(pa.float64(), "p of the base's gap over its seeds, adjusted for all rows"),
    effect=(
        pa.string(),
        "smaller gap, larger gap, no change shown, nothing to judge (a model says one thing, or guesses); of "
        "a recipe also: cure, no gap shown",
    ),
    share_left=optional(pa.float64(), "the mean absolute difference after as a share of that before"),
    **fields(DEBIASING_EFFECTS, "value_a_before", "value_b_before", "value_a_after", "value_b_after", "level"),
    names_other_before=optional(
        pa.float64(), "of the base's answers that name a group, the share in percent that names the other one only"
    ),
    names_other_after=optional(pa.float64(), "the same of the debiased model"),
    control=optional(pa.string(), "the same training without the debiasing term; of several, the hardest to beat"),
    difference_control=optional(pa.float64(), "its difference"),
    p_control=optional(pa.float64(), "p of what the method changes beyond it"),
    p_cure=optional(
        pa.float64(), "the largest p of the base's gap, its change, that half is left, and each control; adjusted"
    ),
    power=optional(
        pa.float64(), "the chance that as many seeds tell the method from its control, if it does what was found"
    ),
    seeds_needed=optional(pa.int64(), "seeds that would tell it four times in five; null where 200 would not"),
)
"""One row per measure: means over seeds. The p of the gap and of a cure are adjusted by Holm. `control` is, of several
controls, the one with the least certain difference."""

MOST_LEFT = 0.5
"""A cure is shown to leave less than this share of a gap."""
MOST_MISNAMED = 10.0
"""A cure names the other group at most this much more often than the base, in percentage points: the median over
seeds, of the side where it is larger. This is a threshold, not a test."""
LEAST_SEEDS = 5
"""The fewest seeds of a recipe that may be called a cure. A seed may learn all or nothing, so that with fewer seeds a t
test overstates the evidence."""

CURE, NO_GAP = "cure", "no gap shown"


class Control(NamedTuple):
    """A control's name, and the significance table of each of its seeds. It has at least as many seeds as the
    method."""

    name: str
    tables: Sequence[pa.Table]


def compare_recipes(
    before: Sequence[pa.Table],
    after: Sequence[pa.Table],
    controls: Sequence[Control],
    *,
    controlled: bool,
    alpha: float,
) -> pa.Table:
    """A table of `RECIPE_EFFECTS`.

    A change is the change of the absolute difference, seed by seed, so that a gap which changes its sign does not count
    as smaller. Its error has two parts. Between seeds it is s^2 / k, with k - 1 degrees of freedom. The contexts, which
    all seeds share, add the errors of both models as if they were independent; if the gap changed its sign, the worst
    case is used, because shared errors then add up. If seeds scatter around 0, absolute differences are half-normal,
    and Student's t is overconfident. Half of a gap is then considered left unless a chi-square test shows that the
    scatter is too small for that.

    Args:
        before: The base's significance tables, seed by seed.
        after: The method's, seed by seed. The first ones belong to the base's first seeds.
        controls: The same training without the debiasing term.
        controlled: Whether these are all the controls that the method must beat to be called a cure.
        alpha: The level.

    Raises:
        FairnessError: the method, its base or a control has fewer than two seeds, or fewer than the method.
    """
    method_seeds = _by_seed(after)
    baselines = {"the base": before, **{control.name: control.tables for control in controls}}
    for name, tables in baselines.items():
        if not 2 <= len(method_seeds) <= len(tables):
            raise FairnessError(
                f"expected two seeds or more of a method, and as many of {name}, found {len(method_seeds)} and "
                f"{len(tables)}"
            )
    base_seeds = _by_seed(before[: len(method_seeds)])
    control_seeds = {control.name: _by_seed(control.tables[: len(method_seeds)]) for control in controls}
    rows = []
    measured = [name for name in method_seeds[0] if is_gap(name)]
    misnamed = {"names_other_before": _misnamed(base_seeds), "names_other_after": _misnamed(method_seeds)}
    names_right = _names_right(base_seeds, method_seeds)
    for name in measured:
        method, base = (
            [deciding(seed, name) for seed in seeds_of_model] for seeds_of_model in (method_seeds, base_seeds)
        )
        of_controls = {
            control_name: [deciding(seed, name) for seed in seeds] for control_name, seeds in control_seeds.items()
        }
        change = _change(base, method)
        beyond = {control_name: _change(control_rows, method) for control_name, control_rows in of_controls.items()}
        hardest = max(beyond, key=lambda control_name: beyond[control_name].p_above(0.0), default=None)
        p_control = beyond[hardest].p_zero() if hardest else None
        lower = beyond[hardest].centre < 0 if hardest else True
        before_all, after_all = _differences(base), _differences(method)
        low, high = change.interval(0.95)
        p_gap = _over_seeds(before_all, context_variance(base)).p_zero()
        mean_before = float(np.abs(before_all).mean())
        rows.append(
            {
                "measure": name,
                **{column: method[0][column] for column in ("unit", "n")},
                "seeds": len(method),
                "difference_before": float(before_all.mean()),
                "difference_after": float(after_all.mean()),
                "sd_before": float(before_all.std(ddof=1)),
                "sd_after": float(after_all.std(ddof=1)),
                "change": change.centre,
                "ci_low": low,
                "ci_high": high,
                "p": change.p_zero(),
                "p_gap": p_gap,
                "share_left": float(np.abs(after_all).mean()) / mean_before if mean_before else None,
                "control": hardest,
                "difference_control": float(_differences(of_controls[hardest]).mean()) if hardest else None,
                "p_control": p_control,
                **_power(of_controls[hardest] if hardest else base, method, alpha / len(measured)),
                "p_cure": max(change.p_zero(), p_gap, _p_half_left(base, method), p_control or 0.0),
                **misnamed,
                "may_cure": controlled and lower and names_right and len(method) >= LEAST_SEEDS,
                "values": (_values(base), _values(method), float(np.mean([row["margin"] for row in base]))),
            }
        )
    for column, source in (("p_holm", "p"), ("p_gap", "p_gap"), ("p_cure", "p_cure")):
        for row, p in zip(rows, holm([row[source] for row in rows]), strict=True):
            row[column] = p
    for row in rows:
        row["effect"] = _effect(row, alpha)
        del row["may_cure"]
        row |= level_columns(*row.pop("values"), smaller=row["effect"] in (CURE, SMALLER))
    return pa.Table.from_pylist(rows, schema=RECIPE_EFFECTS)


def _effect(row: Row, alpha: float) -> str:
    if row["p_holm"] < alpha and row["change"] > 0:
        return LARGER
    if row["p_gap"] >= alpha:
        return NO_GAP
    if row["p_holm"] >= alpha:
        return NONE_SHOWN
    return CURE if row["p_cure"] < alpha and row["may_cure"] else SMALLER


def _by_seed(tables: Sequence[pa.Table]) -> list[dict[str, Row]]:
    return [{row["measure"]: row for row in table.to_pylist()} for table in tables]


def _misnamed(seeds: list[dict[str, Row]]) -> float | None:
    """Of the answers that name a group, the share in percent that names the other one only: the median over seeds, of
    the side where it is larger; None where no seed names groups often enough."""
    rows = _naming(seeds)
    return max(float(np.median([row[side] for row in rows])) for side in ("value_a", "value_b")) if rows else None


def _naming(seeds: list[dict[str, Row]]) -> list[Row]:
    return [rows[NAMES_OTHER] for rows in seeds if NAMES_OTHER in rows and rows[NAMES_OTHER]["n"] >= FEWEST]


def _names_right(before: list[dict[str, Row]], after: list[dict[str, Row]]) -> bool:
    """Whether a method's answers name the other group at most `MOST_MISNAMED` more often than the base's, and none of
    its seeds is `biased` in this unless a seed of the base is."""
    was, now = _misnamed(before), _misnamed(after)
    biased = [any(row["verdict"] == "biased" for row in _naming(seeds)) for seeds in (before, after)]
    return not (biased[1] and not biased[0]) and (was is None or now is None or now <= was + MOST_MISNAMED)


def misnames_more(figures: Mapping[str, Any]) -> bool:
    """Whether one training names the other group more often than its base by more than `MOST_MISNAMED`.

    Args:
        figures: The figures of `naming_changes`, from its `debiasing_effects`.
    """
    before, after = (figures.get(f"names_other_{when}") or 0.0 for when in ("before", "after"))
    return 100 * (after - before) > MOST_MISNAMED


def _values(rows: list[Row]) -> tuple[float, float]:
    """The values of side a and of side b: means over seeds."""
    return float(np.mean([row["value_a"] for row in rows])), float(np.mean([row["value_b"] for row in rows]))


def _differences(rows: list[Row]) -> np.ndarray:
    return np.array([row["difference"] for row in rows])


def _change(before: list[Row], after: list[Row], share: float = 1.0) -> Estimate:
    """The change from this share of a recipe's absolute difference to another recipe's, seed by seed, over the seeds
    that both have."""
    count = min(len(before), len(after))
    was, now = _differences(before[:count]), _differences(after[:count])
    contexts = share**2 * context_variance(before[:count]) + context_variance(after[:count])
    turned = was.mean() * now.mean() < 0
    return _over_seeds(np.abs(now) - share * np.abs(was), contexts * (2 if turned else 1))


def _power(baseline: list[Row], method: list[Row], level: float) -> dict[str, float | int | None]:
    """The power of the seeds to distinguish a method from its strongest baseline at a level, and the number of seeds
    that would be needed."""
    excess = np.abs(_differences(method)) - np.abs(_differences(baseline[: len(method)]))
    spread, contexts = float(excess.std(ddof=1)), context_variance(baseline[: len(method)]) + context_variance(method)
    power = partial(power_over_seeds, float(excess.mean()), spread, contexts, level=level)
    index = bisect_left(range(2, _MOST_SEEDS + 1), _TARGET_POWER, key=power)
    needed = index + 2 if index + 2 <= _MOST_SEEDS else None
    return {"power": power(len(method)), "seeds_needed": needed}


def power_over_seeds(difference: float, spread: float, contexts: float, seeds: int, *, level: float) -> float:
    """The chance that a t test over seeds shows a difference.

    Args:
        difference: The true difference.
        spread: The standard deviation of the difference between seeds.
        contexts: The part of the variance of the mean that comes from the contexts, which all seeds share.
        seeds: The number of seeds.
        level: The level of the two-sided test.

    Examples:
        >>> [round(power_over_seeds(1.0, 1.0, 0.0, seeds, level=0.05), 2) for seeds in (5, 10, 20)]
        [0.4, 0.8, 0.99]
    """
    error = math.sqrt(spread**2 / seeds + contexts)
    if error == 0 or not math.isfinite(error):
        return float(error == 0 and difference != 0)
    freedom = combined(0.0, [(spread**2 / seeds, seeds - 1), (contexts, math.inf)]).freedom
    least, shift = quantile(1 - level / 2, freedom), abs(difference) / error
    if not math.isfinite(freedom):
        return float(scipy.special.ndtr(shift - least) + scipy.special.ndtr(-shift - least))
    power = float(1 - scipy.special.nctdtr(freedom, shift, least) + scipy.special.nctdtr(freedom, shift, -least))
    return power if math.isfinite(power) else float(scipy.special.ndtr(shift - least))  # too far apart for nctdtr


_MOST_SEEDS, _TARGET_POWER = 200, 0.8


def _p_half_left(before: list[Row], after: list[Row]) -> float:
    """The p of the hypothesis that half of a gap or more is left."""
    p = _change(before, after, MOST_LEFT).p_above(0.0)
    now, half = _differences(after), MOST_LEFT * np.abs(_differences(before)).mean()
    if now.min() < 0 < now.max():  # the mean absolute value of a normal is sqrt(2 / pi) sd
        p = max(p, float(scipy.special.chdtr(len(now), np.square(now).sum() * 2 / np.pi / half**2)) if half else 1.0)
    return p


def _over_seeds(values: np.ndarray, contexts: float) -> Estimate:
    """The mean, with the variance between seeds and the variance from the contexts."""
    between = float(values.var(ddof=1)) / len(values)
    return combined(float(values.mean()), [(between, len(values) - 1), (contexts, math.inf)])
