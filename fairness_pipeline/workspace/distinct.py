"""Scores each distinct text once, in chunks that survive a kill; used for responses, scores and similar tables."""

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
"""Takes a table with a column `text` and returns one row for each text, which depends on that text alone.

It may have `CHUNK`, the number of texts it takes at once, and `check_allowed`, which gets all texts beforehand.
"""

CHUNK = 2048
"""The number of distinct texts between two saves."""


def each_distinct(
    texts: pa.Array | pa.ChunkedArray,
    scorer: Scorer,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
    note: str = "",
    check: Callable[[pa.Array, pa.Table], None] = lambda texts, scored: None,
) -> pa.Table:
    """The scorer's result for each of the `texts`, in the same order.

    Args:
        texts: The texts, with repetitions.
        scorer: Called with distinct texts only, the short ones first (a batch of similar lengths has little padding).
        folder: Holds the chunks scored so far; a run that was killed continues with them. Without it nothing is kept.
        progress: Called with the number of distinct texts done.
        note: Passed on to `progress`.
        check: Raises a FairnessError to refuse a chunk before it is kept.

    Raises:
        FairnessError: the scorer's number of rows is wrong, or `check` or `check_allowed` refuses.
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
    back = pc.index_in(distinct, by_length)  # the row in which each distinct text was scored
    return pa.concat_tables(parts).take(back.take(encoded.indices))


def _kept(path: Path | None) -> pa.Table | None:
    """A chunk that an earlier run saved; None if it is missing or damaged, so that it is scored again."""
    try:
        return pq.read_table(path) if path and path.exists() else None
    except (pa.ArrowInvalid, OSError):
        return None
