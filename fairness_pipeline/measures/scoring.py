"""Scores a table of responses with any scorer: each distinct response once, in batches."""

from collections.abc import Callable

import pyarrow as pa

from fairness_pipeline.collector import collector_paused
from fairness_pipeline.progress import Progress, report

Scorer = Callable[[pa.Table], pa.Table]
"""A table with a column `response` in, a table of as many rows with the scores out, row by row."""

_BATCH = 4096


@collector_paused()
def score(responses: pa.Table, scorer: Scorer, progress: Progress | None = None) -> pa.Table:
    """`pair_id` and `side` of every response, with its scores.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        scorer: Called with distinct responses only.
        progress: Told how many distinct responses are scored.
    """
    encoded = responses["response"].combine_chunks().dictionary_encode()
    distinct = encoded.dictionary
    parts = []
    for start in range(0, len(distinct), _BATCH):
        part = distinct.slice(start, _BATCH)
        parts.append(scorer(pa.table({"response": part})))
        report(progress, start + len(part), len(distinct))
    scores = pa.concat_tables(parts).take(encoded.indices)
    columns = {name: scores[name] for name in scores.column_names}
    return pa.table({"pair_id": responses["pair_id"], "side": responses["side"], **columns})
