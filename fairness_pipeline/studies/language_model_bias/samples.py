"""Collects the phrases behind the verdicts on a language model."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.language.phrase_bias import OPPOSITE, OWN, numbered
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelPart
from fairness_pipeline.workspace.lake import Key, Lake


def samples(part: LanguageModelPart, lake: Lake, key: Key) -> Samples:
    """Every phrase of the test split about both groups.

    The values of `stereotype` say how much less likely the phrase is than the one with the opposite attribute, about
    each group (nats); their difference is the phrase's log odds ratio. The values of `perplexity` are the phrase's.
    """
    table = lake.read("phrase_perplexities", key)
    table = table.filter(pc.equal(table["split"], "test"))
    surprise = pc.multiply(pc.ln(table["perplexity"]), table["tokens"])
    table = table.append_column("surprise", surprise).sort_by("phrase_id")
    sides = [_select(table, OWN, side) for side in ("a", "b")]
    values = {"perplexity": tuple(np.asarray(side["perplexity"]) for side in sides)}
    values[STEREOTYPE] = tuple(
        np.asarray(side["surprise"]) - _aligned(side, _select(table, OPPOSITE, name), "surprise")
        for name, side in zip("ab", sides, strict=True)
    )
    a, b = sides
    names_the_group = part.dimensions[key["dimension"]].names_the_group
    return Samples.of(
        {"id": a["phrase_id"], "word": a["target"], "asked_a": a["text"], "asked_b": b["text"]},
        {name: values[name] for name in (STEREOTYPE, "perplexity")},  # type: ignore[misc]
        [numbered(a[column].to_pylist()) for column in ("attribute", *([] if names_the_group else ["target"]))],
    )


def _select(table: pa.Table, reading: str, side: str) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table["reading"], reading), pc.equal(table["side"], side)))


def _aligned(table: pa.Table, other_table: pa.Table, column: str) -> np.ndarray:
    """A column of another reading, in the order of the table's phrases; NaN if a phrase has none."""
    positions = pc.index_in(table["phrase_id"], other_table["phrase_id"])
    return np.asarray(pc.fill_null(pc.take(other_table[column], positions), float("nan")))
