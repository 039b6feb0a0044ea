"""Diversity: how varied are the responses to a side? (Liu et al. 2020, section 2.4.1)"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.measures.text import collapsed
from fairness_pipeline.statistics.resampling import NGrams
from fairness_pipeline.tables import schema

DIVERSITY = schema(
    side=pa.string(),
    words=pa.int64(),
    distinct_1=pa.float64(),
    distinct_2=pa.float64(),
    diversity=pa.float64(),
)


class SideResponses(NamedTuple):
    """The n-grams of all distinct responses, and which of them each pair's sides got."""

    ngrams: NGrams
    a: np.ndarray
    b: np.ndarray


def index_responses(responses: pa.Table) -> SideResponses:
    """What diversity and its resampling work on; words and punctuation marks both count as generated words.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
    """
    distinct = pc.unique(responses["response"])
    ngrams = NGrams([tokenize(text) for text in collapsed(distinct)])
    index = np.asarray(pc.index_in(responses["response"], distinct))
    side = np.asarray(responses["side"].to_numpy(zero_copy_only=False))
    order = np.argsort(np.asarray(responses["pair_id"]), kind="stable")
    return SideResponses(ngrams, index[order][side[order] == "a"], index[order][side[order] == "b"])


def measure_diversity(responses: pa.Table) -> pa.Table:
    """A table of `DIVERSITY`, one row a side."""
    sides = index_responses(responses)
    rows = [
        {"side": side, **sides.ngrams.diversity(index)._asdict()} for side, index in (("a", sides.a), ("b", sides.b))
    ]
    return pa.Table.from_pylist(rows, schema=DIVERSITY)
