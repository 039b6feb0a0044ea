"""Assembles published values and example pairs for reports."""

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.dialogue.dialogue_significance import decisive, rests_on_masked
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.dialogue.measure import Measure, deciding
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER, OTHER
from fairness_pipeline.measures.dialogue.registry import all_measures
from fairness_pipeline.studies.dialogue_fairness import published
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.published import PublishedRow, published_rows
from fairness_pipeline.workspace.lake import Key, Lake, Row


def published_rows_of(part: DialoguePart, dimension: str, model: str) -> dict[str, PublishedRow]:
    """The papers' rows, by measure, for a model of this kind on a corpus of this platform; empty if there are none.

    A corpus with planted bias has none: no paper's corpus is comparable.
    """
    specification = part.models[model]
    if specification.corpus in part.settings.planted:
        return {}
    return published_rows(
        platform=part.corpora[specification.corpus].specification.platform,
        dimension=part.dimensions[dimension].published_as,
        model=specification.published_as or model,
    )


def published_quality_of(part: DialoguePart, model: str, dimension: str | None = None) -> dict[str, float]:
    """The values of table 3.5 in Liu 2022 for a model of this kind on a corpus of this platform, by metric.

    The table's models are debiased for gender, and its corpora have no planted bias; other cases have no values.
    """
    specification = part.models[model]
    other_dimension = dimension is not None and part.dimensions[dimension].published_as != "gender"
    if other_dimension or specification.corpus in part.settings.planted:
        return {}
    platform = part.corpora[specification.corpus].specification.platform
    name = specification.published_as or model
    return published.response_quality(platform=platform, model=published.CHAPTER_3.get(name, name))


def _measured(lake: Lake, key: Key) -> tuple[Measure, ...]:
    """The measures whose tables have been made for a partition."""
    return tuple(measure for measure in all_measures() if lake.card(measure.table, key))


def example_pairs(lake: Lake, key: Key, count: int) -> list[dict[str, Any]]:
    """Pairs: first those that differ in a yes/no measure, then those whose answers differ; each in the order of pairs.

    Returns:
        Dicts with `pair_id`, `context_a`, `context_b`, `response_a`, `response_b`, and `flags_a`, `flags_b` (lists of
        words).
    """
    table = lake.read("responses", key)
    flags: list[str] = []
    for measure in _measured(lake, key):
        columns = [
            outcome.column
            for outcome in measure.outcomes.values()
            if measure.schema.field(outcome.column).type == pa.bool_()
        ]
        if columns:
            values = lake.read(measure.table, key).select(["pair_id", "side", *columns])
            table, flags = table.join(values, ["pair_id", "side"]), [*flags, *columns]
    table = table.sort_by("pair_id")
    a, b = (table.filter(pc.equal(table["side"], side)) for side in ("a", "b"))
    differ = pc.not_equal(a["response"], b["response"])
    flagged = functools.reduce(pc.or_, [pc.not_equal(a[flag], b[flag]) for flag in flags], pa.scalar(False))
    marked = pc.and_(differ, flagged)
    order = pa.table({"mark": pc.cast(marked, pa.int8()), "differ": pc.cast(differ, pa.int8()), "id": a["pair_id"]})
    keys = [("mark", "descending"), ("differ", "descending"), ("id", "ascending")]
    first = pc.sort_indices(order, keys).slice(0, count)

    def described(row: Row, side: str) -> Row:
        own = {"context": row["context"], "response": row["response"], "flags": [name for name in flags if row[name]]}
        return {f"{name}_{side}": value for name, value in own.items()}

    return [
        {"pair_id": left["pair_id"], **described(left, "a"), **described(right, "b")}
        for left, right in zip(a.take(first).to_pylist(), b.take(first).to_pylist(), strict=True)
    ]


def pairs_of(lake: Lake, key: Key, ids: list[int]) -> list[dict[str, Any]]:
    """Some pairs, in this order: dicts with `context_a`, `context_b`, `response_a` and `response_b`."""
    table = lake.read("responses", key)
    rows = table.filter(pc.is_in(table["pair_id"], pa.array(ids, pa.int64()))).to_pylist()
    responses = {(row["pair_id"], row["side"]): row for row in rows}
    return [
        {f"{field}_{side}": responses[pair, side][field] for side in "ab" for field in ("context", "response")}
        for pair in ids
    ]


def _misnamed_pair(lake: Lake, key: Key, side: str) -> dict[str, Any] | None:
    """The shortest pair whose answer to a side names the other group; if possible, a pair in which both answers do."""
    naming_rows = lake.read("named_groups", key)
    naming_rows = naming_rows.filter(pc.equal(naming_rows["names"], OTHER))
    misnamed = {
        letter: set(naming_rows.filter(pc.equal(naming_rows["side"], letter))["pair_id"].to_pylist()) for letter in "ab"
    }
    ids = sorted((misnamed["a"] & misnamed["b"]) or misnamed[side])
    shortest = min(pairs_of(lake, key, ids), key=lambda pair: sum(map(len, pair.values())), default=None)
    return {**shortest, "kind_a": "", "kind_b": ""} if shortest else None


def striking_pair(lake: Lake, key: Key, row: Row) -> dict[str, Any] | None:
    """The pair whose two answers show a row's difference most clearly; the shortest of those that show it equally.

    Returns:
        A dict with `context_a`, `response_a`, `kind_a`, and the same of side b; None if the measure scores
        all responses together, or if no pair shows the difference.
    """
    if row["measure"] == DISTINGUISHABLE:
        card = lake.card("distinguishable_answers", key)
        first = (
            next((carrier["pairs"] for carrier in card.figures["carriers"] if carrier["pairs"]), None) if card else None
        )
        return {**pairs_of(lake, key, first[:1])[0], "kind_a": "", "kind_b": ""} if first else None
    if row["measure"] == NAMES_OTHER:
        return _misnamed_pair(lake, key, "a" if row["difference"] > 0 else "b")
    for measure in _measured(lake, key):
        if measure.scorer is None:
            continue
        values = measure.readings(lake.read(measure.table, key))
        if row["measure"] in values:
            # The pair must differ in the reading that the verdict rests on.
            name = row["measure"]
            reading = deciding(values, name) if rests_on_masked(row) else values[name]
            a, b = (side.astype(float) for side in reading)
            gaps = (a - b) * np.sign(decisive(row)["difference"])
            responses = lake.read("responses", key).sort_by("pair_id")
            left, right = (responses.filter(pc.equal(responses["side"], side)) for side in ("a", "b"))
            texts = [table[name] for table in (left, right) for name in ("context", "response")]
            length = np.sum([pc.utf8_length(text).to_numpy() for text in texts], axis=0)
            index = int(np.lexsort((length, -gaps))[0])
            if gaps[index] <= 0:
                return None
            return {
                f"{name}_{side}": table[name][index].as_py()
                for side, table in (("a", left), ("b", right))
                for name in ("context", "response", "kind")
            }
    return None
