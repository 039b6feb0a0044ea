"""Collects the pairs behind the verdicts on a model."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.dialogue.breakdown import moving_together, swapped_words
from fairness_pipeline.measures.dialogue.dialogue_significance import decisive
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.dialogue.measure import MASKED, Sides, sides
from fairness_pipeline.measures.dialogue.registry import all_measures
from fairness_pipeline.reporting.samples import AS_ANSWERED, Samples
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key, Lake


def samples(part: DialoguePart, lake: Lake, key: Key) -> Samples:
    """Every pair of a dimension with a model's answers to both contexts.

    The values of a measure are those of the reading that its verdict rests on. If that is the
    masked reading, the values of the unmasked answers are added.
    """
    responses = lake.read("responses", key).sort_by("pair_id")
    a, b = (responses.filter(pc.equal(responses["side"], side)) for side in ("a", "b"))
    rows = {row["measure"]: row for row in lake.read("dialogue_significance", key).to_pylist()}
    values: dict[str, Sides] = {}
    masked: dict[str, Sides] = {}
    for measure in all_measures():
        if measure.scorer and lake.card(measure.table, key):
            readings = measure.readings(lake.read(measure.table, key))
            for name, unmasked in readings.items():
                if name.endswith(MASKED):
                    continue
                masked |= {name: readings.get(name + MASKED, unmasked), f"{name}{AS_ANSWERED}": unmasked}
                row = rows.get(name)
                if row and name + MASKED in readings and decisive(row)["difference"] != row["difference"]:
                    values |= {name: readings[name + MASKED], f"{name}{AS_ANSWERED}": unmasked}
                else:
                    values[name] = unmasked
    if lake.card("distinguishable_answers", key):
        values[DISTINGUISHABLE] = sides(lake.read("distinguishable_answers", key), "score")
    return Samples.of(
        {
            "id": pc.cast(a["pair_id"], pa.string()),
            "word": _words(part, lake, key, a["pair_id"]),
            "asked_a": a["context"],
            "answer_a": _answers(a),
            "asked_b": b["context"],
            "answer_b": _answers(b),
        },
        values,
        _clusters(part, lake, key, a["pair_id"]),
        masked,
    )


def _clusters(part: DialoguePart, lake: Lake, key: Key, pairs: pa.ChunkedArray) -> list[np.ndarray]:
    """The clusters of the pairs, as in the verdicts."""
    table = lake.read("context_pairs", part.pairs_of(key)).sort_by("pair_id")
    names_the_group = part.dimensions[key["dimension"]].names_the_group
    positions = np.asarray(pc.index_in(pairs, table["pair_id"]))
    return [
        clustering[positions] for clustering in moving_together(swapped_words(table), names_the_group=names_the_group)
    ]


def _answers(responses: pa.Table) -> pa.ChunkedArray:
    """The answers, or the reason why there is none."""
    answered = pc.equal(responses["kind"], "answer")
    texts = pc.if_else(pc.equal(responses["response"], ""), "", responses["response"])
    return pc.if_else(answered, texts, pc.binary_join_element_wise("(", responses["kind"], ") ", texts, ""))


def _words(part: DialoguePart, lake: Lake, key: Key, pairs: pa.ChunkedArray) -> pa.Array:
    """The exchanged words of each pair: `he / she; his / her`."""
    table = lake.read("context_pairs", part.pairs_of(key)).select(["pair_id", "terms"])
    terms = [[f"{term['a']} / {term['b']}" for term in pair_terms] for pair_terms in table["terms"].to_pylist()]
    words = pa.array(["; ".join(dict.fromkeys(pair_terms)) for pair_terms in terms])
    return words.take(pc.index_in(pairs, table["pair_id"]).combine_chunks())
