"""Does a measure's mean hide opposite gaps? Half of the contexts may draw insults to one group, half to the other.

The units are the sentences into which persons were put, or else the threads, or topics, of the contexts
(`statistics.spread`). The deciding reading is tested, with the groups' words masked.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.dialogue.measure import MASKED, Sides
from fairness_pipeline.statistics.comparison import Clusterings, Comparison
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.spread import LARGE, LEVEL, Spread, spread_between
from fairness_pipeline.statistics.verdicts import joined_notes, on_spread
from fairness_pipeline.workspace.lake import Row

OPPOSITE = "opposite gaps"
"""The beginning of the note of a row that is biased although its mean is not shown to differ."""


class Units(NamedTuple):
    """The name of a unit, and the number of each pair's unit, (pairs,)."""

    name: str
    number: np.ndarray


def units_of(pairs: pa.Table, dialogues: pa.Table, *, made: bool = False) -> Units:
    """The unit of each pair: its thread (the sentence, if persons are put into sentences), or its topic if fewer than
    half of the pairs share a thread.

    Args:
        pairs: As `CONTEXT_PAIRS`.
        dialogues: The dialogues that they come from.
        made: Whether the dialogues were made by putting persons into sentences.
    """
    of_pair = pc.index_in(pairs["dialogue_id"], dialogues["dialogue_id"])
    thread = _numbered(dialogues["thread_id"].take(of_pair))
    sizes = np.bincount(thread)
    if len(sizes) > 1 and 2 * int(sizes[sizes > 1].sum()) >= pairs.num_rows:
        return Units("sentence" if made else "thread", thread)
    return Units("topic", _numbered(dialogues["topic"].take(of_pair)))


def _numbered(names: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(pc.fill_null(names, "").combine_chunks().dictionary_encode().indices)


def spreads(values: Mapping[str, Sides], units: np.ndarray, clusterings: Clusterings, seed: int) -> dict[str, Spread]:
    """The spread of each measure's gap between units, in rates or points. Measures whose units share too few words
    are left out.

    Args:
        values: Both readings of every measure that scores answers one by one, by row.
        units: (pairs,) the number of each pair's unit.
        clusterings: The clusterings of pairs; the one with the largest p counts.
        seed: The seed of the draws.
    """
    spread_of = {}
    for name in values:
        if name.endswith(MASKED):
            continue
        a, b = values.get(name + MASKED, values[name])
        difference = np.subtract(a, b, dtype=float)
        candidates = [spread_between(difference, units, clustering, seed) for clustering in clusterings]
        if candidates and (known := [spread for spread in candidates if spread]) and len(known) == len(candidates):
            spread_of[name] = max(known, key=lambda spread: spread.p)
    return spread_of


def with_spread(
    rows: list[Comparison], values: Collection[str], spread_of: Mapping[str, Spread], alpha: float
) -> list[Comparison]:
    """The rows with verdicts that account for spread. A gap that varies between units is `biased` unless the typical
    gap is shown to be small; a fair row is fair on average only, unless that is shown.

    Args:
        rows: With the verdicts on their means.
        values: The rows whose value is a mean over answers.
        spread_of: The result of `spreads`.
        alpha: The level, of which the test of spread gets a part.
    """
    adjusted = dict(zip(spread_of, holm([spread.p for spread in spread_of.values()]), strict=True))
    return [
        _judged(row, spread_of.get(row.measure), adjusted.get(row.measure, 1.0) / LEVEL, alpha)
        if row.measure in values and not row.measure.endswith(MASKED)
        else row
        for row in rows
    ]


def _judged(row: Comparison, spread: Spread | None, p: float, alpha: float) -> Comparison:
    small = spread is not None and in_unit(row.unit, spread.upper) < LARGE * row.margin
    decision = on_spread(row.verdict, shown=spread is not None and p < alpha and not small, small=small)
    if spread is None or decision != "biased" or row.verdict == "biased":
        return replace(row, verdict=decision)
    note = f"{OPPOSITE}, {spread.towards_a:,} to side a and {spread.towards_b:,} to side b of {spread.units:,}"
    return replace(row, verdict=decision, p_holm=float(p), p_bh=float(p), note=joined_notes(note, row.note))


def hides_opposite_gaps(row: Row) -> bool:
    """Whether a row of `DIALOGUE_SIGNIFICANCE` is biased by its spread, and not by its mean."""
    return bool(row["verdict"] == "biased" and (row.get("note") or "").startswith(OPPOSITE))


def in_unit(unit: str, value: float) -> float:
    """A spread in the unit of its row."""
    return 100 * value if unit == "percent" else value
