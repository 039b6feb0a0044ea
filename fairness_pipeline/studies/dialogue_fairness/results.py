"""What the lake holds of a study, put together for a reader."""

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.dialogue.dialogue_significance import decisive
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.dialogue.measure import Measure, deciding
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER, OTHER
from fairness_pipeline.measures.dialogue.registry import all_measures
from fairness_pipeline.studies.dialogue_fairness import published
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.published import PublishedRow, published_rows
from fairness_pipeline.workspace.lake import Key, Lake, Row


def published_rows_of(part: DialoguePart, dimension: str, model: str) -> dict[str, PublishedRow]:
    """What the papers print, by measure, for a model of this kind on a corpus of this platform; empty if nothing.

    Nor of a corpus in which a bias was planted: it compares with no paper's.
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
    """What table 3.5 of Liu 2022 prints for a model of this kind on a corpus of this platform, by metric.

    Its debiased models are debiased for gender; nothing is planted in its corpora.
    """
    specification = part.models[model]
    elsewhere = dimension is not None and part.dimensions[dimension].published_as != "gender"
    if elsewhere or specification.corpus in part.settings.planted:
        return {}
    platform = part.corpora[specification.corpus].specification.platform
    name = specification.published_as or model
    return published.response_quality(platform=platform, model=published.CHAPTER_3.get(name, name))


def _measured(lake: Lake, key: Key) -> tuple[Measure, ...]:
    """The measures that a partition of responses has been given."""
    return tuple(measure for measure in all_measures() if lake.card(measure.table, key))


def example_pairs(lake: Lake, key: Key, count: int) -> list[dict[str, Any]]:
    """Pairs whose two answers differ, those first that differ in a yes/no measure; in the order of the pairs.

    Returns:
        Dicts with `pair_id`, `context_a`, `context_b`, `response_a`, `response_b`, and `flags_a`, `flags_b` (lists of
        words).
    """
    table = lake.read("responses", key)
    flags: list[str] = []
    for measure in _measured(lake, key):
        own = [o.column for o in measure.outcomes.values() if measure.schema.field(o.column).type == pa.bool_()]
        if own:
            found = lake.read(measure.table, key).select(["pair_id", "side", *own])
            table, flags = table.join(found, ["pair_id", "side"]), [*flags, *own]
    table = table.sort_by("pair_id")
    a, b = (table.filter(pc.equal(table["side"], side)) for side in ("a", "b"))
    differ = pc.not_equal(a["response"], b["response"])
    marked = pc.and_(differ, functools.reduce(pc.or_, [pc.not_equal(a[flag], b[flag]) for flag in flags]))
    order = pa.table({"mark": pc.cast(marked, pa.int8()), "differ": pc.cast(differ, pa.int8()), "id": a["pair_id"]})
    keys = [("mark", "descending"), ("differ", "descending"), ("id", "ascending")]
    first = pc.sort_indices(order, keys).slice(0, count)
    return [
        {
            "pair_id": left["pair_id"],
            **{
                f"{name}_{side}": row[name]
                for side, row in (("a", left), ("b", right))
                for name in ("context", "response")
            },
            **{f"flags_{side}": [f for f in flags if row[f]] for side, row in (("a", left), ("b", right))},
        }
        for left, right in zip(a.take(first).to_pylist(), b.take(first).to_pylist(), strict=True)
    ]


def pairs_of(lake: Lake, key: Key, ids: list[int]) -> list[dict[str, Any]]:
    """Some pairs, in this order: dicts with `context_a`, `context_b`, `response_a` and `response_b`."""
    table = lake.read("responses", key)
    rows = table.filter(pc.is_in(table["pair_id"], pa.array(ids, pa.int64()))).to_pylist()
    found = {(row["pair_id"], row["side"]): row for row in rows}
    return [
        {f"{name}_{side}": found[pair, side][name] for side in "ab" for name in ("context", "response")} for pair in ids
    ]


def _misnamed_pair(lake: Lake, key: Key, side: str) -> dict[str, Any] | None:
    """The shortest pair whose answer to a side names the other group; one whose answers to both sides do, if any."""
    named = lake.read("named_groups", key)
    named = named.filter(pc.equal(named["names"], OTHER))
    wrong = {own: set(named.filter(pc.equal(named["side"], own))["pair_id"].to_pylist()) for own in "ab"}
    ids = sorted((wrong["a"] & wrong["b"]) or wrong[side])
    found = min(pairs_of(lake, key, ids), key=lambda pair: sum(map(len, pair.values())), default=None)
    return {**found, "kind_a": "", "kind_b": ""} if found else None


def striking_pair(lake: Lake, key: Key, row: Row) -> dict[str, Any] | None:
    """The pair whose two answers show a row's difference most clearly; the shortest of those that show it equally.

    Args:
        lake: What has been made.
        key: The partition.
        row: Of its significance table.

    Returns:
        A dict with `context_a`, `response_a`, `kind_a`, and the same of side b; None where the measure is of all
        responses together, or no pair shows it.
    """
    if row["measure"] == DISTINGUISHABLE:
        card = lake.card("distinguishable_answers", key)
        first = next((own["pairs"] for own in card.figures["carriers"] if own["pairs"]), None) if card else None
        return {**pairs_of(lake, key, first[:1])[0], "kind_a": "", "kind_b": ""} if first else None
    if row["measure"] == NAMES_OTHER:
        return _misnamed_pair(lake, key, "a" if row["difference"] > 0 else "b")
    for measure in _measured(lake, key):
        if measure.scorer is None:
            continue
        values = measure.readings(lake.read(measure.table, key))
        if row["measure"] in values:
            # A biased measure is so with the groups' words masked: a pair that shows it must show it so too.
            name = row["measure"]
            found = deciding(values, name) if row["verdict"] == "biased" else values[name]
            a, b = (side.astype(float) for side in found)
            shown = (a - b) * np.sign(decisive(row)["difference"])
            responses = lake.read("responses", key).sort_by("pair_id")
            left, right = (responses.filter(pc.equal(responses["side"], side)) for side in ("a", "b"))
            texts = [table[name] for table in (left, right) for name in ("context", "response")]
            length = np.sum([pc.utf8_length(text).to_numpy() for text in texts], axis=0)
            place = int(np.lexsort((length, -shown))[0])
            if shown[place] <= 0:
                return None
            return {
                f"{name}_{side}": table[name][place].as_py()
                for side, table in (("a", left), ("b", right))
                for name in ("context", "response", "kind")
            }
    return None
