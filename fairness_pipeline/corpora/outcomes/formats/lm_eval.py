"""Logs of lm-evaluation-harness: `samples_<task>_<time>.jsonl`, which `--log_samples` writes.

A line is an item and a filter; every filter repeats the item, so only the first filter is kept. `doc` holds the data
set's own columns; `doc_id` is a row number. Metrics that are numbers keep their names. Log-likelihoods of choices
become `log_likelihood_0` and so on; two also give `log_likelihood_difference`, the first minus the second.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.shared import Row, first_record, log_table, needed, scores
from fairness_pipeline.foundation.text_files import read_json_lines

_FIELDS = ("doc_id", "doc", "filtered_resps")
_NAME = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+$")


NAME = "a log of lm-evaluation-harness"
ROLES = {"draw": "draw", "answer": "answer"}
"""Columns that the reader makes, by role."""


def outcomes(columns: list[str]) -> list[str]:
    """The columns that are outcomes: metrics, and log-likelihoods or the difference of two."""
    measured = columns[columns.index("doc_id") + 1 :]
    likelihoods = [name for name in measured if name.startswith("log_likelihood_")]
    last = likelihoods[-1:] if "log_likelihood_difference" in likelihoods else likelihoods
    return [*(name for name in measured if name not in (*likelihoods, *ROLES)), *last]


def recognises(path: Path) -> bool:
    """Whether a file is such a log."""
    return path.name.removesuffix(".gz").endswith(".jsonl") and set(_FIELDS) <= set(first_record(path))


def read(path: Path) -> pa.Table:
    """A row for each answer: the data set's columns, `task`, `doc_id`, `draw` of repeated answers, metrics, `answer`.

    Raises:
        FairnessError: a field is missing, or there are no answers.
    """
    return log_table(_rows(path), path)


def _rows(path: Path) -> Iterator[tuple[Row, Row]]:
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    match = _NAME.fullmatch(stem)
    task = match.group("task") if match else stem
    kept_filter: str | None = None
    for where, record in read_json_lines(path):
        needed(record, _FIELDS, where)
        kept_filter = record.get("filter", "none") if kept_filter is None else kept_filter
        if record.get("filter", "none") != kept_filter:
            continue
        doc = record["doc"] if isinstance(record["doc"], dict) else {"doc": record["doc"]}
        data = {**doc, "task": task}
        metrics = {
            name: value for metric in record.get("metrics", ()) for name, value in scores(record.get(metric), metric)
        }
        measured = {"doc_id": str(record["doc_id"]), **metrics}
        likelihoods = [_likelihood(response) for response in record["filtered_resps"]]
        if likelihoods and all(likelihood is not None for likelihood in likelihoods):
            of_choices = _of_choices([likelihood for likelihood in likelihoods if likelihood is not None])
            yield data, {**measured, **of_choices}
            continue
        answers = record.get("resps", [[]])[0] if record.get("resps") else []
        answers = answers if isinstance(answers, list) and len(answers) > 1 else record["filtered_resps"][:1]
        for draw, answer in enumerate(answers):
            yield data, {**measured, "draw": str(draw), "answer": answer or None}


def _likelihood(response: object) -> float | None:
    """The log-likelihood of a choice, `[number, is greedy]`; the tool writes both as text."""
    if not isinstance(response, list) or len(response) != 2 or str(response[1]) not in ("True", "False"):
        return None
    try:
        return float(response[0])
    except (TypeError, ValueError):
        return None


def _of_choices(likelihoods: list[float]) -> Row:
    outcomes = {f"log_likelihood_{index}": value for index, value in enumerate(likelihoods)}
    if len(likelihoods) == 2:
        outcomes["log_likelihood_difference"] = likelihoods[0] - likelihoods[1]
    return outcomes
