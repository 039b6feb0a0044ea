"""Logs of Inspect: `.eval` (a zip) and JSON.

A sample's `metadata` holds the data set's own columns; `id` is a row number, `epoch` a repeated draw. Scores: C is 1,
P one half, I 0, and N (no answer) is missing, where the tool counts 0. A sample with an error, a limit or that was
invalidated keeps its row, without scores.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.shared import (
    MODEL,
    Row,
    json_text,
    log_table,
    needed,
    read_zipped,
    scores,
)
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import parse_json, read_json

NAME = "a log of Inspect"
ROLES = {"draw": "epoch", "condition": MODEL, "asked": "asked", "answer": "answer"}
"""Columns that the reader makes, by role."""
_HEADERS = ("header.json", "_journal/start.json", "start.json")
_FAILED = ("error", "limit", "invalidation")


def outcomes(columns: list[str]) -> list[str]:
    """The columns that are outcomes: those of the scorers."""
    return columns[columns.index("failed") + 1 :]


def recognises(path: Path) -> bool:
    """Whether a file is such a log."""
    if path.suffix == ".eval":
        return True
    if not path.name.removesuffix(".gz").endswith(".json"):
        return False
    content = read_json(path)
    return isinstance(content, dict) and {"eval", "samples"} <= set(content)


def read(path: Path) -> pa.Table:
    """A row for each sample and epoch: its metadata, `task`, `model`, `id`, `epoch`, `asked`, `answer`, and a column
    for each scorer.

    Raises:
        FairnessError: it is no log, or has no samples.
    """
    header, samples = _unzipped(path) if path.suffix == ".eval" else _parts(read_json(path), path)
    if not samples:
        raise FairnessError(f"{path}: expected samples, found none; was the log written with them?")
    return log_table(_rows(header, samples, path), path)


def _parts(content: Any, path: Path) -> tuple[Row, list[Row]]:
    fields = content if isinstance(content, dict) else {}
    header, samples = fields.get("eval"), fields.get("samples") or []
    if not isinstance(header, dict) or not isinstance(samples, list):
        raise FairnessError(f"{path}: expected an object with 'eval' and a list of 'samples', as Inspect writes it")
    return header, samples


def _unzipped(path: Path) -> tuple[Row, list[Row]]:
    members = read_zipped(path, lambda name: name in _HEADERS or name.startswith("samples/"))
    headers = [members[name] for name in _HEADERS if name in members]
    if not headers:
        raise FairnessError(f"{path}: expected one of {', '.join(_HEADERS)} in it; is it a log of Inspect?")
    try:
        header, _ = _parts(parse_json(headers[0]), path)
        return header, [parse_json(text) for name, text in sorted(members.items()) if name.startswith("samples/")]
    except ValueError as error:
        raise FairnessError(f"{path}: a file in it is not valid JSON: {error}; fetch the log again") from None


def _rows(header: Row, samples: list[Row], path: Path) -> Iterator[tuple[Row, Row]]:
    for index, sample in enumerate(samples):
        where = f"{path}, sample {index}"
        try:
            needed(sample, ("id", "epoch"), where)
            yield _row(header, sample)
        except (AttributeError, KeyError, TypeError) as error:
            raise FairnessError(
                f"{where}: expected a sample as Inspect writes it, found {str(sample)[:80]} "
                f"({type(error).__name__}: {error}); write the log again"
            ) from None


def _row(header: Row, sample: Row) -> tuple[Row, Row]:
    failed = any(sample.get(name) for name in _FAILED)
    outcomes: dict[str, Any] = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        outcomes |= {name: None if failed else number for name, number in scores(value, scorer)}
    data = {
        **(sample.get("metadata") or {}),
        "task": header.get("task"),
        MODEL: header.get("model"),
        "id": str(sample["id"]),
        "epoch": str(sample["epoch"]),
        "asked": json_text(sample.get("input")),
        "answer": _answer(sample.get("output") or {}) or None,
    }
    return data, {"failed": "yes" if failed else "no", **outcomes}


def _answer(output: Row) -> str:
    choices = output.get("choices") or []
    content = choices[0]["message"]["content"] if choices else ""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content or "")
