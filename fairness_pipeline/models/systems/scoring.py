"""Has a system score every sentence: each distinct one once, by length."""

import numpy as np
import pyarrow as pa

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models.systems.registry import Scorer
from fairness_pipeline.models.systems.score_files import EQUITY_SCORES
from fairness_pipeline.models.systems.specification import SystemSpecification
from fairness_pipeline.progress import Progress, report

CHUNK = 2048
"""Distinct sentences scored between two reports of progress."""


def score_sentences(sentences: pa.Table, scorer: Scorer, progress: Progress | None = None) -> pa.Table:
    """The score of each sentence for each affect of the system, as `EQUITY_SCORES`."""
    texts, place = np.unique(sentences["sentence"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    order = np.argsort(np.char.str_len(texts), kind="stable")
    size = getattr(scorer, "CHUNK", CHUNK)
    parts = []
    for start in range(0, len(order), size):
        parts.append(scorer(pa.table({"sentence": pa.array(texts[order[start : start + size]], pa.string())})))
        report(progress, min(start + size, len(order)), len(order), "sentences")
    back = np.argsort(order)[place]
    tables = [
        pa.table(
            {
                "sentence_id": sentences["sentence_id"],
                "affect": pa.repeat(affect, sentences.num_rows),
                "score": np.concatenate([part[affect] for part in parts])[back],
            },
            schema=EQUITY_SCORES,
        )
        for affect in parts[0]
    ]
    return pa.concat_tables(tables)


def check_allowed(specification: SystemSpecification, sentences: int) -> None:
    """Refuses, before anything is asked, what `max_requests` does not allow.

    Args:
        specification: A system's file; only an endpoint's can be refused.
        sentences: How many distinct sentences it is to score.

    Raises:
        FairnessError: that takes more requests.
    """
    most = specification.endpoint.max_requests if specification.endpoint else None
    requests = specification.requests(sentences)
    if most is not None and requests > most:
        raise FairnessError(
            f"endpoint.max_requests: {requests:,} requests would be made ({sentences:,} sentences, "
            f"{', '.join(specification.affects)}), {most:,} are allowed; nothing was asked: raise it, or name fewer "
            "'affects'"
        )
