"""What debiasing changed: the gap of every measure before and after, on the same pairs."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings, deciding, neutral_reading
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS, SMALLER, Change, level_columns
from fairness_pipeline.statistics.comparison import Clusterings
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.verdicts import NOTHING_TO_JUDGE


class Measured(NamedTuple):
    """One model's tables for one dimension: its responses, the tables of all measures, and the significance table."""

    responses: pa.Table
    tables: Mapping[str, pa.Table]
    significance: pa.Table


def compare_models(
    before: Measured, after: Measured, settings: SignificanceSettings, words: MaskedWords, clusters: Clusterings = ()
) -> pa.Table:
    """A table of `DEBIASING_EFFECTS`, one row per measure, from the reading on which its verdict rests.

    `effect` is `smaller gap` or `larger gap` if the Holm-adjusted p of the change is below the level, and `no change
    shown` otherwise.

    Raises:
        FairnessError: the models did not answer the same pairs.
    """
    if not before.responses["pair_id"].equals(after.responses["pair_id"]):
        raise FairnessError("the two models did not answer the same pairs; run both again")
    changes: dict[str, Change] = {}
    neutral = neutral_reading(before.responses, words), neutral_reading(after.responses, words)
    for measure in measures(before.tables):
        tables = before.tables[measure.table], after.tables[measure.table]
        changes |= measure.changes(tables, neutral, settings, clusters)
    judged = [{row["measure"]: row for row in m.significance.to_pylist()} for m in (before, after)]
    rows = []
    for (name, change), p_holm in zip(changes.items(), holm([c.p for c in changes.values()]), strict=True):
        row_before, row_after = (deciding(by_measure, name) for by_measure in judged)
        effect = change.scaled(100.0 if row_before["unit"] == "percent" else 1.0).row(p_holm, settings.alpha)
        values = [(row["value_a"], row["value_b"]) for row in (row_before, row_after)]
        rows.append(
            {
                "measure": name,
                "unit": row_before["unit"],
                "n": row_before["n"],
                **effect,
                **level_columns(values[0], values[1], row_before["margin"], smaller=effect["effect"] == SMALLER),
                "verdict_before": judged[0][name]["verdict"],
                "verdict_after": judged[1][name]["verdict"],
            }
        )
    return pa.Table.from_pylist(rows, schema=DEBIASING_EFFECTS)


def without_credit(effects: pa.Table, *, base: bool = False) -> pa.Table:
    """The effects of a model with nothing to judge in its answers: no method gets credit for the gaps that it closed.

    If the `base` has nothing to judge, no change counts as an effect.
    """
    credited = pc.is_in(effects["effect"], pa.array(["cure", SMALLER]))
    column = effects.schema.get_field_index("effect")
    return effects.set_column(column, "effect", pc.if_else(pc.or_(credited, base), NOTHING_TO_JUDGE, effects["effect"]))


def identical_share(responses: pa.Table) -> float:
    """The share of pairs whose two responses are identical, word for word."""
    ordered = responses.sort_by([("pair_id", "ascending"), ("side", "ascending")])
    a, b = (ordered.filter(pc.equal(ordered["side"], side))["response"] for side in ("a", "b"))
    return float(np.mean(pc.equal(a, b).to_numpy()))
