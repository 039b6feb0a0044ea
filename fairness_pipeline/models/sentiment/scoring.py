"""Scores every sentence with a system. Each distinct sentence is scored once."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.sentiment.score_files import EQUITY_SCORES
from fairness_pipeline.workspace.distinct import HERE, Engine, Scorer, each_distinct


def score_sentences(
    sentences: pa.Table,
    scorer: Scorer,
    folder: Path | None = None,
    progress: Progress | None = None,
    engine: Engine = HERE,
) -> pa.Table:
    """The score of each sentence for each affect of the system, as a table of `EQUITY_SCORES`.

    Args:
        sentences: A table of `EQUITY_SENTENCES`.
        scorer: The system; it gives one column for each affect.
        folder: Holds the scores until all sentences are scored.
        progress: Called with the number of distinct sentences scored.
        engine: Where the sentences are scored.

    Raises:
        FairnessError: the system gave no number for a sentence, or `check_allowed` refuses.
    """

    def check(texts: pa.Array, scored: pa.Table) -> None:
        for affect in scored.column_names:
            wrong = ~np.isfinite(scored[affect].to_numpy())
            if wrong.any():
                raise FairnessError(
                    f"{affect}: the system gave no number (NaN or infinite) for {wrong.sum():,} of {len(texts):,} "
                    f"sentences, the first is {texts[int(wrong.argmax())].as_py()!r}; look at its weights"
                )

    scores = each_distinct(
        sentences["sentence"], scorer, folder=folder, progress=progress, note="sentences", check=check, engine=engine
    )
    tables = [
        pa.table(
            {
                "sentence_id": sentences["sentence_id"],
                "affect": pa.repeat(affect, sentences.num_rows),
                "score": scores[affect],
            },
            schema=EQUITY_SCORES,
        )
        for affect in scores.column_names
    ]
    return pa.concat_tables(tables)
