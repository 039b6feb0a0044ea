"""Collects a model's responses to both contexts of every pair. Each distinct context is answered once."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS
from fairness_pipeline.models.replies import ANSWER, EMPTY
from fairness_pipeline.workspace.distinct import HERE, Engine, Scorer, each_distinct

RESPONSES = schema(
    **fields(CONTEXT_PAIRS, "pair_id"),
    **fields(CONTEXTS, "side", "context"),
    **fields(SCHEMA, "response"),
    kind=(pa.string(), "answer, empty (no words), refused or filtered (by the endpoint's own mark), failed"),
)

REPLIES = schema(
    **fields(SCHEMA, "response"),
    **fields(RESPONSES, "kind"),
    served=(pa.string(), "the model that the endpoint says has answered"),
    problem=(pa.string(), "why there is no answer"),
)
"""A model's reply to each context. A `response` without a `kind` is an answer, or empty if it has no words."""

LONGEST = 10_000
"""Characters of an answer that are kept and measured."""


class Responses(NamedTuple):
    """A table of `RESPONSES`, with both sides of each pair in turn; and a table of `REPLIES`, with a column
    `context`, one row per distinct context."""

    table: pa.Table
    replies: pa.Table


def respond(
    pairs: pa.Table,
    responder: Scorer,
    folder: Path,
    progress: Progress | None = None,
    *,
    engine: Engine = HERE,
) -> Responses:
    """The responses to both contexts of every pair.

    Args:
        pairs: Columns `pair_id`, `context_a`, `context_b`.
        responder: The model; its column `response` answers a text.
        folder: Holds the chunks answered so far; a run that was killed continues with them.
        progress: Called with the number of distinct contexts answered.
        engine: Where the model answers.

    Raises:
        FairnessError: the number of responses is wrong, or `check_allowed` refuses.
    """
    contexts = _both_sides(pairs)
    answers = answer_each(contexts, responder, folder, progress, engine=engine)
    count = pairs.num_rows
    sides = [
        pa.table(
            {
                "pair_id": pairs["pair_id"],
                "side": pa.repeat(side, count),
                "context": pairs[f"context_{side}"],
                "response": answers["response"].slice(start, count),
                "kind": answers["kind"].slice(start, count),
            },
            schema=RESPONSES,
        )
        for side, start in (("a", 0), ("b", count))
    ]
    both = pa.concat_tables(sides).sort_by([("pair_id", "ascending"), ("side", "ascending")])
    distinct = contexts.unique()
    replies = answers.take(pc.index_in(distinct, contexts)).add_column(0, "context", distinct)
    return Responses(both.combine_chunks(), replies)


def answer_each(
    contexts: pa.Array | pa.ChunkedArray,
    responder: Scorer,
    folder: Path,
    progress: Progress | None = None,
    *,
    engine: Engine = HERE,
) -> pa.Table:
    """The reply to each of the `contexts`, a table of `REPLIES` in the same order. Arguments and errors are those of
    `respond`."""
    replies = each_distinct(contexts, responder, folder=folder, progress=progress, engine=engine)
    index = replies.column_names.index("response")
    replies = replies.set_column(index, "response", shortened(replies["response"]))
    if "kind" in replies.column_names:
        return replies
    wordless = pc.equal(pc.utf8_trim_whitespace(replies["response"]), "")
    blank = pa.array([""] * replies.num_rows)
    return pa.table(
        [replies["response"], pc.if_else(wordless, EMPTY, ANSWER), blank, blank],
        schema=REPLIES,
    )


def shortened(responses: pa.ChunkedArray) -> pa.ChunkedArray:
    """The responses, none longer than `LONGEST` characters: some scorers take minutes for megabytes."""
    return pc.utf8_slice_codeunits(responses, 0, LONGEST)


def distinct_contexts(pairs: pa.Table) -> pa.Array:
    """The contexts of both sides, each once."""
    return _both_sides(pairs).unique()


def _both_sides(pairs: pa.Table) -> pa.ChunkedArray:
    """The contexts of side a, followed by those of side b."""
    return pa.chunked_array([*pairs["context_a"].chunks, *pairs["context_b"].chunks], pa.string())
