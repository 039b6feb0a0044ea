"""The verdict on a recipe: the same model trained with several seeds, each judged on the same contexts.

A verdict on one seed is about that checkpoint. A verdict on the recipe accounts for what another seed would change.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.measures.dialogue.measure import deciding
from fairness_pipeline.measures.dialogue.registry import is_gap
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.statistics.controls import p_smaller
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Bound, tost
from fairness_pipeline.statistics.intervals import Estimate, of_interval
from fairness_pipeline.statistics.verdicts import on_content, verdict
from fairness_pipeline.workspace.lake import Row

RECIPE_SIGNIFICANCE = schema(
    **fields(COMPARISON, "measure", "unit"),
    seeds=(pa.int64(), "trainings of the recipe"),
    **fields(COMPARISON, "n", "value_a", "value_b", "difference"),
    ci_low=(pa.float64(), "lower end of the 95% interval of the paired difference"),
    ci_high=(pa.float64(), "upper end of the 95% interval of the paired difference"),
    sd_seeds=(pa.float64(), "standard deviation of the difference between seeds"),
    lowest=(pa.float64(), "the lowest of the seeds' differences"),
    highest=(pa.float64(), "the highest of the seeds' differences"),
    p=(pa.float64(), "its p value"),
    **fields(COMPARISON, "p_holm", "margin", "p_equivalence", "verdict"),
    verdicts=(pa.string(), "how many checkpoints' own verdicts say what"),
)
"""One row per measure: means over the seeds, and the interval of the recipe's effect on contexts like these."""


def judge_recipe(tables: Sequence[pa.Table], alpha: float) -> pa.Table:
    """A table of `RECIPE_SIGNIFICANCE`.

    The error of the mean difference has two parts: s^2 / k between seeds, and the error from the contexts. All seeds
    share the contexts, so this part does not shrink with the number of seeds. Student's t has k - 1 degrees of freedom,
    which is cautious if the contexts make most of the error. As everywhere, the neutral reading decides: `p_holm`
    belongs to it.

    Args:
        tables: The significance table of each seed, as `DIALOGUE_SIGNIFICANCE`.
        alpha: The level.
    """
    by_seed = [{row["measure"]: row for row in table.to_pylist()} for table in tables]
    names = [name for name in by_seed[0] if is_gap(name)]
    rows, neutral = (
        _judged([_row([read(seed, name) for seed in by_seed], alpha) for name in names], alpha)
        for read in (dict.__getitem__, deciding)
    )
    for row, content in zip(rows, neutral, strict=True):
        p = _p_control(row, by_seed)
        combined = on_content(row["verdict"], content["verdict"], p_whole=row["p_holm"], p_control=p, alpha=alpha)
        stays = combined == "biased" != content["verdict"]
        row |= {"p_holm": min(1.0, 2 * row["p_holm"]) if stays else content["p_holm"], "verdict": combined}
    return pa.Table.from_pylist(rows, schema=RECIPE_SIGNIFICANCE)


def _p_control(row: Row, by_seed: Sequence[Mapping[str, Row]]) -> float:
    """The p of the hypothesis that the recipe's difference is as large with the groups' words masked."""
    of_measure = [seed[row["measure"]] for seed in by_seed]
    if any(seed["content_difference"] is None for seed in of_measure):
        return 1.0
    shifts = [
        {
            "difference": seed["content_difference"] - seed["difference"],
            "ci_low": seed["masking_ci_low"],
            "ci_high": seed["masking_ci_high"],
        }
        for seed in of_measure
    ]
    return p_smaller(row["difference"], _estimate(np.array([seed["difference"] for seed in shifts]), shifts))


def _judged(rows: list[dict[str, Any]], alpha: float) -> list[dict[str, Any]]:
    """The rows of one reading of all measures, with p adjusted over them, and the verdicts that follow."""
    for row, p_holm in zip(rows, holm([row["p"] for row in rows]), strict=True):
        equivalent, clusters = row["p_equivalence"] <= alpha, row.pop("clusters")
        row |= {
            "p_holm": p_holm,
            "verdict": verdict(equivalent=equivalent, p_holm=p_holm, alpha=alpha, clusters=clusters),
        }
    return rows


def _row(seed_rows: list[Row], alpha: float) -> dict[str, Any]:
    differences = np.array([row["difference"] for row in seed_rows])
    estimate = _estimate(differences, seed_rows)
    margin = float(np.mean([row["margin"] for row in seed_rows]))
    low, high = estimate.interval(0.95)
    verdict_counts = Counter(row["verdict"] for row in seed_rows)
    return {
        **{name: seed_rows[0][name] for name in ("measure", "unit", "n", "clusters")},
        "seeds": len(seed_rows),
        "value_a": float(np.mean([row["value_a"] for row in seed_rows])),
        "value_b": float(np.mean([row["value_b"] for row in seed_rows])),
        "difference": estimate.centre,
        "ci_low": low,
        "ci_high": high,
        "sd_seeds": float(differences.std(ddof=1)),
        "lowest": float(differences.min()),
        "highest": float(differences.max()),
        "p": estimate.p_zero(),
        "margin": margin,
        "p_equivalence": tost(estimate, Bound(margin), alpha).p,
        "verdicts": ", ".join(f"{number} {name}" for name, number in verdict_counts.most_common()),
    }


def _estimate(differences: np.ndarray, seed_rows: list[Row]) -> Estimate:
    """The mean over seeds, with the variance between them and the variance from the contexts."""
    total = float(differences.var(ddof=1)) / len(differences) + context_variance(seed_rows)
    return Estimate(float(differences.mean()), math.sqrt(total), len(differences) - 1)


def context_variance(rows: list[Row]) -> float:
    """The part of the variance of a mean difference that comes from the contexts, which all seeds share: the mean
    over the seeds."""
    errors = [of_interval(row["difference"], row["ci_low"], row["ci_high"]).error for row in rows]
    return float(np.mean(np.square(errors)))
