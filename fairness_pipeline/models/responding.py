"""Has a model answer both contexts of every pair: each distinct one once, by length, in chunks that survive a kill."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.progress import Progress, report
from fairness_pipeline.tables import schema

Responder = Callable[[pa.Table], pa.Table]
"""A table with a column `context` in, one with `response` out, row by row."""

RESPONSES = schema(
    pair_id=pa.int64(),
    side=pa.string(),
    context=pa.string(),
    response=pa.string(),
)
CHUNK = 2048
"""Distinct contexts answered between two saves."""


class Responses(NamedTuple):
    """A table of `RESPONSES`, both sides of each pair in turn, and how many distinct contexts were asked."""

    table: pa.Table
    distinct_contexts: int


def respond(
    pairs: pa.Table,
    responder: Responder,
    folder: Path,
    progress: Progress | None = None,
    *,
    keep_empty: bool = False,
) -> Responses:
    """The responses to both contexts of every pair.

    Args:
        pairs: Columns `pair_id`, `context_a`, `context_b`.
        responder: Answers a table of contexts. One that costs has `check_allowed`, which is given all of them before.
        folder: Keeps the chunks answered so far; a run that was killed takes them up again.
        progress: Told how many distinct contexts are answered.
        keep_empty: Whether an empty response stands as one without words.

    Raises:
        FairnessError: the model gave an empty response, or not one a context; or `check_allowed` refuses.
    """
    asked = distinct_contexts(pairs)
    if check := getattr(responder, "check_allowed", None):
        check(asked.to_pylist())
    answers = answer_each(asked, responder, folder, progress, keep_empty=keep_empty)
    sides = []
    for side in ("a", "b"):
        context = pairs[f"context_{side}"]
        response = answers.take(pc.index_in(context, asked))
        sides.append(
            pa.table(
                {
                    "pair_id": pairs["pair_id"],
                    "side": pa.repeat(side, len(context)),
                    "context": context,
                    "response": response,
                },
                schema=RESPONSES,
            )
        )
    both = pa.concat_tables(sides).sort_by([("pair_id", "ascending"), ("side", "ascending")])
    return Responses(both.combine_chunks(), len(asked))


def answer_each(
    contexts: pa.Array,
    responder: Responder,
    folder: Path,
    progress: Progress | None = None,
    *,
    keep_empty: bool = False,
) -> pa.ChunkedArray:
    """The response to each of the `contexts`, which are distinct, in their order; asked by length.

    The other arguments and errors are those of `respond`.
    """
    order = pc.sort_indices(
        pa.table({"length": pc.utf8_length(contexts), "text": contexts}),
        sort_keys=[("length", "ascending"), ("text", "ascending")],
    )
    by_length = contexts.take(order)
    answers = pa.chunked_array(list(_chunks(by_length, responder, folder, progress, keep_empty)), pa.string())
    return answers.take(pc.index_in(contexts, by_length))


def distinct_contexts(pairs: pa.Table) -> pa.Array:
    """Both sides' contexts, each once."""
    return pa.chunked_array([*pairs["context_a"].chunks, *pairs["context_b"].chunks], pa.string()).unique()


def _chunks(
    contexts: pa.Array, responder: Responder, folder: Path, progress: Progress | None, keep_empty: bool
) -> Iterator[pa.Array]:
    size = getattr(responder, "CHUNK", CHUNK)
    for start in range(0, len(contexts), size):
        part = contexts.slice(start, size)
        path = folder / f"answers-{start // size:06d}.parquet"
        if not path.exists():
            answers = responder(pa.table({"context": part}))
            _check(part, answers, keep_empty)
            with replacing(path) as temporary:
                pq.write_table(answers.select(["response"]), temporary)
        yield from pq.read_table(path)["response"].chunks
        report(progress, start + len(part), len(contexts))


def _check(contexts: pa.Array, answers: pa.Table, keep_empty: bool) -> None:
    if answers.num_rows != len(contexts):
        raise FairnessError(
            f"the model gave {answers.num_rows} responses to {len(contexts)} contexts; expected one each"
        )
    empty = pc.index(pc.equal(pc.utf8_trim_whitespace(answers["response"]), ""), True).as_py()
    if empty >= 0 and not keep_empty:
        raise FairnessError(
            f"the model gave an empty response to: {contexts[empty].as_py()!r}; if that is how it answers, set "
            "'decoding: {keep_empty: true}' in its YAML file"
        )
