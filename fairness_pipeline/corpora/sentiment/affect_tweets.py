"""Tweets with the intensity of an affect, in the format of SemEval-2018 Task 1 (Mohammad et al. 2018)."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.foundation.text_files import read_lines

AFFECT_TWEETS = schema(
    tweet_id=(pa.string(), "of the tweet"),
    tweet=(pa.string(), "its text"),
    affect=(pa.string(), "anger, fear, joy, sadness or valence"),
    score=(pa.float64(), "intensity of the affect, from 0 to 1"),
)

_HEADER = ["ID", "Tweet", "Affect Dimension", "Intensity Score"]


def read_affect_tweets(files: Iterable[Path]) -> pa.Table:
    """All tweets of the files, as `AFFECT_TWEETS`, with the names of affects in lower case.

    Raises:
        FairnessError: a line has another form, or a score is no number in 0..1 (the official test files hold no
            scores); names file and line.
    """
    rows: dict[str, list[object]] = {name: [] for name in AFFECT_TWEETS.names}
    for path in files:
        for number, line in read_lines(path):
            cells = line.split("\t")
            if number == 1:
                if [cell.strip() for cell in cells] != _HEADER:
                    raise FairnessError(f"{path}, line 1: expected {'<tab>'.join(_HEADER)}, found {line[:80]!r}")
                continue
            if len(cells) != len(_HEADER):
                raise FairnessError(f"{path}, line {number}: expected {len(_HEADER)} columns, found {len(cells)}")
            try:
                score = float(cells[3])
            except ValueError:
                score = float("nan")
            if not 0 <= score <= 1:
                raise FairnessError(
                    f"{path}, line {number}: Intensity Score: expected a number from 0 to 1, found {cells[3]!r}"
                )
            values = (cells[0], cells[1], cells[2].strip().lower(), score)
            for name, value in zip(AFFECT_TWEETS.names, values, strict=True):
                rows[name].append(value)
    return pa.table(rows, schema=AFFECT_TWEETS)
