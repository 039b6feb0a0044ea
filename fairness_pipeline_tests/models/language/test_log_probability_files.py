"""Exported texts come back with log-probabilities, including those that a spreadsheet would run."""

import csv
import math
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.foundation.csv_cells import write_table
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.language.log_probability_files import LogProbabilityScorer

TEXTS = ["@USER they are", "=1+1", "plain"]


@pytest.mark.parametrize("removed", [False, True])
def test_an_apostrophe_put_before_a_text_is_ignored(tmp_path: Path, removed: bool) -> None:
    path = tmp_path / "texts.csv"
    assert write_table(path, ["text", "logprob", "tokens"], ((text, "", "") for text in TEXTS)) == 2
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["text"] for row in rows] == ["'@USER they are", "'=1+1", "plain"]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        for row in rows:
            text = row["text"].removeprefix("'") if removed else row["text"]
            writer.writerow({"text": text, "logprob": -2.0 * math.log(10), "tokens": 2})
    scored = LogProbabilityScorer(path)(pa.table({"text": TEXTS}))
    assert scored["perplexity"].to_pylist() == pytest.approx([10.0] * 3)
    with pytest.raises(FairnessError, match="1 texts have no log-probability, such as 'another'"):
        LogProbabilityScorer(path)(pa.table({"text": [*TEXTS, "another"]}))
