"""Asks a scorer each distinct text once, in chunks that survive a kill: for responses, scores, and the like."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairness_pipeline.foundation.collector import collector_paused
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress, report

Scorer = Callable[[pa.Table], pa.Table]
"""A table with a column `text` in, a table of as many rows out, each of which depends on its own text alone.

It may have `CHUNK`, how many texts it takes at once, and `check_allowed`, which is given all of them beforehand.
"""

CHUNK = 2048
"""Distinct texts between two saves."""


def each_distinct(
    texts: pa.Array | pa.ChunkedArray,
    scorer: Scorer,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
    note: str = "",
    check: Callable[[pa.Array, pa.Table], None] = lambda texts, scored: None,
) -> pa.Table:
    """What the scorer makes of each of `texts`, in their order.

    Args:
        texts: As often as they occur.
        scorer: Called with distinct texts only, short ones first (a batch of like lengths wastes little).
        folder: Keeps the chunks scored so far; a run that was killed takes them up again. Nothing is kept without one.
        progress: Told how many distinct texts are done.
        note: Told along.
        check: Refuses a chunk, with a FairnessError, before it is kept.

    Raises:
        FairnessError: the scorer gave other than one row a text; or `check` or `check_allowed` refuses.
    """
    encoded = pa.chunked_array([texts] if isinstance(texts, pa.Array) else texts.chunks, pa.string())
    encoded = encoded.combine_chunks().dictionary_encode()
    distinct = encoded.dictionary
    if check_allowed := getattr(scorer, "check_allowed", None):
        check_allowed(distinct.to_pylist())
    order = pc.sort_indices(
        pa.table({"length": pc.utf8_length(distinct), "text": distinct}),
        sort_keys=[("length", "ascending"), ("text", "ascending")],
    )
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    by_length, size, parts = distinct.take(order), getattr(scorer, "CHUNK", CHUNK), []
    for start in range(0, max(len(by_length), 1), size):
        part = by_length.slice(start, size)
        path = folder / f"scored-{start // size:06d}.parquet" if folder else None
        kept = _kept(path)
        if kept is not None:
            parts.append(kept)
        else:
            with collector_paused():
                scored = scorer(pa.table({"text": part}))
            if scored.num_rows != len(part):
                raise FairnessError(f"expected a row for each of {len(part)} texts, found {scored.num_rows}")
            check(part, scored)
            if path:
                with replacing(path) as temporary:
                    pq.write_table(scored, temporary)
            parts.append(scored)
        report(progress, start + len(part), len(by_length), note)
    back = pc.index_in(distinct, by_length)  # where each distinct text was scored
    return pa.concat_tables(parts).take(back.take(encoded.indices))


def _kept(path: Path | None) -> pa.Table | None:
    """What an earlier run left of a chunk; None where there is nothing, or it is damaged: it is scored again."""
    try:
        return pq.read_table(path) if path and path.exists() else None
    except (pa.ArrowInvalid, OSError):
        return None
