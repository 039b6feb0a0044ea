"""Has a system score every sentence: each distinct one once, by length."""

import numpy as np
import pyarrow as pa

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models.systems.registry import Scorer
from fairness_pipeline.models.systems.score_files import EQUITY_SCORES
from fairness_pipeline.progress import Progress, report

CHUNK = 2048
"""Distinct sentences scored between two reports of progress."""


def score_sentences(sentences: pa.Table, scorer: Scorer, progress: Progress | None = None) -> pa.Table:
    """The score of each sentence for each affect of the system, as `EQUITY_SCORES`.

    Args:
        sentences: As `EQUITY_SENTENCES`.
        scorer: The system. One that costs has `check_allowed`, which is given all distinct sentences before.
        progress: Told how many distinct sentences are scored.

    Raises:
        FairnessError: the system gave no number for a sentence; or `check_allowed` refuses.
    """
    texts, place = np.unique(sentences["sentence"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    order = np.argsort(np.char.str_len(texts), kind="stable")
    if check := getattr(scorer, "check_allowed", None):
        check(texts.tolist())
    size = getattr(scorer, "CHUNK", CHUNK)
    parts = []
    for start in range(0, len(order), size):
        parts.append(scorer(pa.table({"sentence": pa.array(texts[order[start : start + size]], pa.string())})))
        report(progress, min(start + size, len(order)), len(order), "sentences")
    scores = {affect: np.concatenate([part[affect] for part in parts]) for affect in parts[0]}
    for affect, found in scores.items():
        if (wrong := ~np.isfinite(found)).any():
            raise FairnessError(
                f"{affect}: the system gave no number (NaN or infinite) for {wrong.sum():,} of {len(texts):,} "
                f"sentences, the first is {str(texts[order[wrong.argmax()]])!r}; look at its weights"
            )
    back = np.argsort(order)[place]
    tables = [
        pa.table(
            {
                "sentence_id": sentences["sentence_id"],
                "affect": pa.repeat(affect, sentences.num_rows),
                "score": found[back],
            },
            schema=EQUITY_SCORES,
        )
        for affect, found in scores.items()
    ]
    return pa.concat_tables(tables)
