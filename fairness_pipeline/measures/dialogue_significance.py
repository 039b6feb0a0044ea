"""The significance table of one dimension and model: every measure of its responses, compared between the sides.

Beside each verdict stands what would undo it: what the instrument alone gives, which words carry the gap, in how many
variations it holds, and on how many answers it hangs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.lake import Row
from fairness_pipeline.measures.breakdown import Words
from fairness_pipeline.measures.diversity import index_responses
from fairness_pipeline.measures.measure import MASKED, SignificanceSettings
from fairness_pipeline.measures.registry import is_part, measures
from fairness_pipeline.measures.variations import CARRIERS, CHOICES
from fairness_pipeline.statistics.clusters import clustered
from fairness_pipeline.statistics.comparison import COMPARISON, Comparison, Published, adjusted, beside

DIALOGUE_SIGNIFICANCE = pa.schema(
    [
        *COMPARISON,
        pa.field("p_clustered", pa.float64()),
        pa.field("instrument_difference", pa.float64()),
        pa.field("instrument_p", pa.float64()),
        pa.field("survives_masking", pa.bool_()),
        pa.field("carried_by", pa.string()),
        pa.field("without_them", pa.string()),
        pa.field("difference_without_them", pa.float64()),
        pa.field("holds", pa.int64()),
        pa.field("variations", pa.int64()),
        pa.field("distinct_shown", pa.int64()),
        pa.field("commonest_shown", pa.float64()),
    ]
)
"""`COMPARISON` and what stands beside a verdict; null where it is not defined.

`p_clustered`: of a test that takes the pairs of one swapped word for one observation. `instrument_difference` and
`instrument_p`: what the scorer makes of human texts with only these words swapped. `survives_masking`: whether a biased
measure keeps at least half of its gap with every listed word of the responses masked. `carried_by`: the words
that make most of a biased measure's gap; `without_them` and `difference_without_them` are of the other pairs. `holds`
of `variations`: see `measures.variations`. `distinct_shown`: how many distinct responses show the measure, and
`commonest_shown` the share in percent of the most frequent of them.
"""


def compared(
    responses: pa.Table,
    tables: Mapping[str, pa.Table],
    *,
    settings: SignificanceSettings,
    seed: int,
    published: Mapping[str, Published],
) -> list[Comparison]:
    """Diversity, offence, sentiment, one row an attribute list, and the reading of each with group words masked.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        tables: What each measure found in them, by its name.
        settings: Level, margins, permutations, blocks.
        seed: Of the permutations.
        published: The paper's rows for this dimension and model, by measure.
    """
    rows = [row for measure in measures() for row in measure.compare(tables[measure.table], responses, settings, seed)]
    parts = [row.measure for row in rows if is_part(row.measure)]
    return beside(adjusted(rows, settings.alpha, parts), published)


def dialogue_significance(
    judged: Sequence[Comparison],
    responses: pa.Table,
    tables: Mapping[str, pa.Table],
    *,
    words: Words,
    varied: pa.Table,
    instrument: pa.Table,
) -> pa.Table:
    """A table of `DIALOGUE_SIGNIFICANCE`: each verdict beside what it is worth.

    Args:
        judged: What `compared` found.
        responses: Columns `pair_id`, `side`, `response`.
        tables: What each measure found in them, by its name.
        words: Those that each pair swaps.
        varied: As `measures.variations.VARIATIONS`.
        instrument: As `measures.instrument.INSTRUMENT_CHECK`.
    """
    found = [asdict(row) for row in judged]
    by_name = {row["measure"]: row for row in found}
    alone = {row["measure"]: row for row in instrument.to_pylist()}
    variations: dict[str, list[Row]] = {}
    for other in varied.to_pylist():
        variations.setdefault(other["measure"], []).append(other)
    shown = _shown(responses, tables, words)
    for row in found:
        name = row["measure"]
        row |= shown.get(name, {})
        if name in alone:
            row |= {"instrument_difference": alone[name]["difference"], "instrument_p": alone[name]["p_paired"]}
        if not is_part(name):
            row |= _held(row, variations.get(name, []))
            neutral = by_name.get(name + MASKED)
            row["survives_masking"] = _survives(row, neutral)
            if neutral and neutral["verdict"] == "biased" and row["verdict"] != "biased":
                row["note"] = "; ".join(filter(None, [row["note"], "biased with the groups' words masked"]))
    return pa.Table.from_pylist(found, schema=DIALOGUE_SIGNIFICANCE)


def reservations(row: Row, alpha: float = 0.05) -> list[str]:
    """What would undo a biased row, in words; nothing where it stands against everything that was tried.

    Args:
        row: As `DIALOGUE_SIGNIFICANCE`.
        alpha: The level.
    """
    unit = " points" if row["unit"] == "percent" else " a response"
    alone, found = row["instrument_difference"] or 0.0, []
    if row["survives_masking"] is False:
        found.append("less than half of it is left with the groups' own words masked in the answers")
    if alone / row["difference"] > _LEANS and row["instrument_p"] < alpha:
        found.append(f"the same scorer finds {alone:+.3g}{unit} in human texts with only these words swapped")
    if row["without_them"] in ("fair", "inconclusive") and not _mostly_there(row["difference_without_them"], row):
        found.append(f"{row['without_them']} without the pairs of {row['carried_by']}")
    if row["p_clustered"] is not None and row["p_clustered"] >= alpha:
        found.append(f"not shown when all pairs of a word count as one (p = {row['p_clustered']:.2g})")
    if row["holds"] < _FIRM * row["variations"]:
        found.append(f"it holds in {row['holds']} of {row['variations']} variations")
    if row["distinct_shown"] is not None and row["distinct_shown"] <= _FEW:
        found.append(f"it hangs on {row['distinct_shown']} distinct answer{'s' if row['distinct_shown'] > 1 else ''}")
    return found


_LEANS, _FIRM, _FEW = 0.25, 0.8, 5
"""From which share of a gap on the scorer's own is told, below which share of variations a verdict is not firm, and up
to how many answers are a handful."""


def _shown(responses: pa.Table, tables: Mapping[str, pa.Table], words: Words) -> dict[str, dict[str, Any]]:
    """What single responses tell of each measure: the clustered test, and on how many answers it hangs."""
    answers = index_responses(responses)
    index = np.concatenate([answers.a, answers.b])
    clusters = words.clusters
    found = {}
    for measure in measures():
        for name, (a, b) in (measure.values(tables[measure.table]) if measure.scorer else {}).items():
            estimate = clustered(a.astype(float) - b, clusters)
            shows = index[np.concatenate([a, b]).astype(bool)]
            counts = np.bincount(shows) if len(shows) else np.zeros(1, dtype=int)
            found[name] = {
                "p_clustered": estimate.p_zero() if math.isfinite(estimate.error) else None,
                "distinct_shown": int((counts > 0).sum()),
                "commonest_shown": 100 * int(counts.max()) / len(shows) if len(shows) else None,
            }
    return found


def _held(row: Row, variations: list[Row]) -> dict[str, Any]:
    """In how many variations a verdict is the same; of a biased one the words that carry it, and what it is without."""
    choices = [other["verdict"] for other in variations if other["kind"] in CHOICES]
    found = {"holds": choices.count(row["verdict"]), "variations": len(choices)}
    carried = next((other for other in variations if other["kind"] == CARRIERS), None)
    if row["verdict"] != "biased" or carried is None:
        return found
    without = {"without_them": carried["verdict"], "difference_without_them": carried["difference"]}
    return {**found, "carried_by": carried["variation"], **without}


def _survives(row: Row, neutral: Row | None) -> bool | None:
    if neutral is None or row["verdict"] != "biased":
        return None
    return _mostly_there(neutral["difference"], row)


def _mostly_there(difference: float, row: Row) -> bool:
    """Whether at least half of a row's difference is left: less is no longer a matter of fewer pairs alone."""
    return bool(difference / row["difference"] >= 0.5)
