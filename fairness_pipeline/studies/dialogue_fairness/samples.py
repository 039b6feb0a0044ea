"""The pairs behind the verdicts on a model."""

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

    The values of a measure are those of the reading that its verdict rests on. Where that has the groups' words masked,
    those of the answers as they are stand beside them.
    """
    responses = lake.read("responses", key).sort_by("pair_id")
    a, b = (responses.filter(pc.equal(responses["side"], side)) for side in ("a", "b"))
    rows = {row["measure"]: row for row in lake.read("dialogue_significance", key).to_pylist()}
    values: dict[str, Sides] = {}
    masked: dict[str, Sides] = {}
    for measure in all_measures():
        if measure.scorer and lake.card(measure.table, key):
            readings = measure.readings(lake.read(measure.table, key))
            for name, found in readings.items():
                if name.endswith(MASKED):
                    continue
                masked |= {name: readings.get(name + MASKED, found), f"{name}{AS_ANSWERED}": found}
                row = rows.get(name)
                if row and name + MASKED in readings and decisive(row)["difference"] != row["difference"]:
                    values |= {name: readings[name + MASKED], f"{name}{AS_ANSWERED}": found}
                else:
                    values[name] = found
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
    """How pairs move together, as the verdicts take it."""
    table = lake.read("context_pairs", part.pairs_of(key)).sort_by("pair_id")
    named = part.dimensions[key["dimension"]].names_the_group
    place = np.asarray(pc.index_in(pairs, table["pair_id"]))
    return [own[place] for own in moving_together(swapped_words(table), names_the_group=named)]


def _answers(responses: pa.Table) -> pa.ChunkedArray:
    """The answers; where there is none, why."""
    answered = pc.equal(responses["kind"], "answer")
    said = pc.if_else(pc.equal(responses["response"], ""), "", responses["response"])
    return pc.if_else(answered, said, pc.binary_join_element_wise("(", responses["kind"], ") ", said, ""))


def _words(part: DialoguePart, lake: Lake, key: Key, pairs: pa.ChunkedArray) -> pa.Array:
    """The exchanged words of each pair: `he / she; his / her`."""
    table = lake.read("context_pairs", part.pairs_of(key)).select(["pair_id", "terms"])
    terms = [[f"{term['a']} / {term['b']}" for term in own] for own in table["terms"].to_pylist()]
    said = pa.array(["; ".join(dict.fromkeys(own)) for own in terms])
    return said.take(pc.index_in(pairs, table["pair_id"]).combine_chunks())
