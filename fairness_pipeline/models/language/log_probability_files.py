"""Log-probabilities that were computed elsewhere (by a server, say): writes the texts to score, reads the results."""

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.foundation.csv_cells import escaped
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import column, read_records

FORMS = (".csv", ".tsv", ".jsonl")
"""The endings of the files: comma-separated, tab-separated without quotation marks, or an object a line."""
_MOST_TOKENS = 1 << 31
_SHOWN = 60


def read_log_probabilities(path: Path) -> dict[str, tuple[float, int]]:
    """The summed log-probability (nats, 0 at most) of each text, and the number of tokens that it is summed over.

    Raises:
        FairnessError: a value is no such number, or a text occurs twice with different values; names file and line.
    """
    return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> dict[str, tuple[float, int]]:
    if path.suffix not in FORMS:
        raise FairnessError(f"{path}: expected a file that ends in {' or '.join(FORMS)}")
    entries: dict[str, tuple[float, int]] = {}
    for where, record in read_records(path):
        text = str(column(where, record, "text"))
        value = _number(where, record, "logprob"), _number(where, record, "tokens")
        if value[0] > 0:
            raise FairnessError(
                f"{where}: logprob: expected 0 or less, the sum of the natural logarithms of the tokens' "
                f"probabilities; found {value[0]:g}"
            )
        if not 1 <= value[1] < _MOST_TOKENS or value[1] != int(value[1]):
            raise FairnessError(f"{where}: tokens: expected how many tokens the sum is over, found {value[1]:g}")
        entry = value[0], int(value[1])
        if entries.setdefault(text, entry) != entry:
            raise FairnessError(f"{where}: {text[:_SHOWN]!r} occurs twice, with different values")
    if not entries:
        raise FairnessError(f"{path}: expected texts with their log-probabilities, found none")
    return entries


class LogProbabilityScorer:
    """A table with a column `text` in, one with `perplexity` and `tokens` out, from a file of log-probabilities."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, texts: pa.Table) -> pa.Table:
        """The perplexities; raises FairnessError if the file lacks a text."""
        known, requested = read_log_probabilities(self._path), texts["text"].to_pylist()
        entries = [known.get(text) or known.get(escaped(text)) for text in requested]
        missing = [text for text, entry in zip(requested, entries, strict=True) if entry is None]
        if missing:
            raise FairnessError(
                f"{self._path}: {len(missing):,} texts have no log-probability, such as {missing[0][:_SHOWN]!r}; the "
                "corpus, its lists or the dimensions have changed since the texts were exported: "
                "fairness-pipeline export phrase-texts writes them anew"
            )
        values = [math.exp(min(-logprob / tokens, 700.0)) for logprob, tokens in filter(None, entries)]
        tokens = pa.array([entry[1] for entry in filter(None, entries)], pa.int64())
        return pa.table({"perplexity": pa.array(values, pa.float64()), "tokens": tokens})


def _number(where: str, record: dict[str, Any], name: str) -> float:
    text = str(column(where, record, name)).strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FairnessError(f"{where}: {name}: expected a number, found {text[:_SHOWN]!r}")
    return value
