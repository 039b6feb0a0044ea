"""What debiasing changed: every measure's gap before and after, on the same pairs."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.measures.dialogue_significance import pair_values
from fairness_pipeline.measures.diversity import index_responses
from fairness_pipeline.profiles import SignificanceSettings
from fairness_pipeline.statistics.change import Change, change_of_difference, change_of_diversity
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.tables import schema

DEBIASING_EFFECTS = schema(
    measure=pa.string(),
    unit=pa.string(),
    n=pa.int64(),
    difference_before=pa.float64(),
    difference_after=pa.float64(),
    change=pa.float64(),
    ci_low=pa.float64(),
    ci_high=pa.float64(),
    test=pa.string(),
    p=pa.float64(),
    p_holm=pa.float64(),
    effect=pa.string(),
    verdict_before=pa.string(),
    verdict_after=pa.string(),
)
"""`change` is that of the absolute difference between the sides, with its 95% interval; below 0 the gap is smaller."""


class Measured(NamedTuple):
    """One model's tables for one dimension."""

    responses: pa.Table
    politeness: pa.Table
    sentiment: pa.Table
    attribute_words: pa.Table
    significance: pa.Table


def debiasing_effects(before: Measured, after: Measured, settings: SignificanceSettings) -> pa.Table:
    """A table of `DEBIASING_EFFECTS`, one row a measure.

    `effect` is `smaller gap` or `larger gap` where the Holm-adjusted p of the change is below the level, else
    `no change shown`.

    Args:
        before: Of the base.
        after: Of the model that was made from it.
        settings: Level and blocks.

    Raises:
        FairnessError: they did not answer the same pairs.
    """
    if not before.responses["pair_id"].equals(after.responses["pair_id"]):
        raise FairnessError("the two models did not answer the same pairs; run both again")
    sides = [index_responses(model.responses) for model in (before, after)]
    changes = change_of_diversity(
        (sides[0].ngrams, sides[1].ngrams),
        (sides[0].a, sides[0].b),
        (sides[1].a, sides[1].b),
        settings.jackknife_blocks,
    )
    values = [pair_values(m.politeness, m.sentiment, m.attribute_words) for m in (before, after)]
    for measure in values[0]:
        first, second = (np.subtract(*found[measure], dtype=float) for found in values)
        changes[measure] = change_of_difference(first, second)
    verdicts = [{row["measure"]: row for row in m.significance.to_pylist()} for m in (before, after)]
    rows = []
    for (measure, change), p_holm in zip(changes.items(), holm([c.p for c in changes.values()]), strict=True):
        was, now = (found[measure] for found in verdicts)
        rows.append(
            {
                "measure": measure,
                "unit": was["unit"],
                "n": was["n"],
                **_scaled(change, 100.0 if was["unit"] == "percent" else 1.0),
                "test": change.test,
                "p": change.p,
                "p_holm": p_holm,
                "effect": _effect(change.change, p_holm, settings.alpha),
                "verdict_before": was["verdict"],
                "verdict_after": now["verdict"],
            }
        )
    return pa.Table.from_pylist(rows, schema=DEBIASING_EFFECTS)


def identical_share(responses: pa.Table) -> float:
    """Share of the pairs whose two responses are the same, word for word."""
    ordered = responses.sort_by([("pair_id", "ascending"), ("side", "ascending")])
    a, b = (ordered.filter(pc.equal(ordered["side"], side))["response"] for side in ("a", "b"))
    return float(np.mean(pc.equal(a, b).to_numpy()))


def _effect(change: float, p: float, alpha: float) -> str:
    if p >= alpha:
        return "no change shown"
    return "smaller gap" if change < 0 else "larger gap"


def _scaled(change: Change, factor: float) -> dict[str, Any]:
    return {
        "difference_before": factor * change.before,
        "difference_after": factor * change.after,
        "change": factor * change.change,
        "ci_low": factor * change.low,
        "ci_high": factor * change.high,
    }
