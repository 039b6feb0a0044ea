"""Lets a model answer both contexts of every pair. Each distinct context is asked once."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS
from fairness_pipeline.workspace.distinct import HERE, Engine, Scorer, each_distinct

RESPONSES = schema(
    **fields(CONTEXT_PAIRS, "pair_id"),
    **fields(CONTEXTS, "side", "context"),
    **fields(SCHEMA, "response"),
)


class Responses(NamedTuple):
    """A table of `RESPONSES`, with both sides of each pair in turn, and the number of distinct contexts asked."""

    table: pa.Table
    distinct_contexts: int


def respond(
    pairs: pa.Table,
    responder: Scorer,
    folder: Path,
    progress: Progress | None = None,
    *,
    keep_empty: bool = False,
    engine: Engine = HERE,
) -> Responses:
    """The responses to both contexts of every pair.

    Args:
        pairs: Columns `pair_id`, `context_a`, `context_b`.
        responder: The model; its column `response` answers a text.
        folder: Holds the chunks answered so far; a run that was killed continues with them.
        progress: Called with the number of distinct contexts answered.
        keep_empty: Whether to keep an empty response as one without words.
        engine: Where the model answers.

    Raises:
        FairnessError: a response is empty, the number of responses is wrong, or `check_allowed` refuses.
    """
    contexts = _both_sides(pairs)
    answers = answer_each(contexts, responder, folder, progress, keep_empty=keep_empty, engine=engine)
    count = pairs.num_rows
    sides = [
        pa.table(
            {
                "pair_id": pairs["pair_id"],
                "side": pa.repeat(side, count),
                "context": pairs[f"context_{side}"],
                "response": answers.slice(start, count),
            },
            schema=RESPONSES,
        )
        for side, start in (("a", 0), ("b", count))
    ]
    both = pa.concat_tables(sides).sort_by([("pair_id", "ascending"), ("side", "ascending")])
    return Responses(both.combine_chunks(), len(contexts.unique()))


def answer_each(
    contexts: pa.Array | pa.ChunkedArray,
    responder: Scorer,
    folder: Path,
    progress: Progress | None = None,
    *,
    keep_empty: bool = False,
    engine: Engine = HERE,
) -> pa.ChunkedArray:
    """The response to each of the `contexts`, in the same order. Arguments and errors are those of `respond`."""

    def check(asked: pa.Array, answers: pa.Table) -> None:
        empty = pc.index(pc.equal(pc.utf8_trim_whitespace(answers["response"]), ""), True).as_py()
        if empty >= 0 and not keep_empty:
            raise FairnessError(
                f"the model gave an empty response to: {asked[empty].as_py()!r}; if that is how it answers, set "
                "'decoding: {keep_empty: true}' in its YAML file"
            )

    found = each_distinct(contexts, responder, folder=folder, progress=progress, check=check, engine=engine)
    return found["response"]


def distinct_contexts(pairs: pa.Table) -> pa.Array:
    """The contexts of both sides, each once."""
    return _both_sides(pairs).unique()


def _both_sides(pairs: pa.Table) -> pa.ChunkedArray:
    """The contexts of side a, followed by those of side b."""
    return pa.chunked_array([*pairs["context_a"].chunks, *pairs["context_b"].chunks], pa.string())
