"""Assembles rows and phrases for reports."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.language.phrase_bias import OWN, PAPER, pairs_of
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelPart
from fairness_pipeline.workspace.lake import Key, Lake, Row


def row_of(audit: Audit, measure: str) -> Row | None:
    """A row of an audit, if there is one."""
    return next((row for row in audit.rows if row["measure"] == measure), None)


def paper_t(audit: Audit) -> float | None:
    """t of the paper's test; below 0, the stereotype is likelier of side b."""
    row = row_of(audit, PAPER)
    return row["statistic"] if row else None


def widest_gaps(perplexities: pa.Table, count: int) -> list[dict[str, Any]]:
    """The `PHRASE_PERPLEXITIES` of the split `test` that differ most, towards the stereotype and away from it."""
    sides: dict[str, dict[str, Row]] = {}
    for row in perplexities.to_pylist():
        if row["split"] == "test" and row["reading"] == OWN and row["text"]:
            sides.setdefault(row["phrase_id"], {})[row["side"]] = row
    gaps: list[dict[str, Any]] = [
        {"a": pair["a"], "b": pair["b"], "gap": math.log(pair["a"]["perplexity"] / pair["b"]["perplexity"])}
        for pair in sides.values()
    ]
    ordered = sorted(gaps, key=lambda gap: -gap["gap"])
    half = count // 2
    return ordered[: count - half] + ordered[len(ordered) - half :] if len(ordered) > count else ordered


def by_word(perplexities: pa.Table) -> list[dict[str, Any]]:
    """The target words in the split `test`, with the number of phrases and the mean difference of log-perplexities."""
    pairs = pairs_of(perplexities, "test")
    difference = np.log(pairs.a) - np.log(pairs.b)
    words, counts = np.unique(pairs.target, return_counts=True)
    rows = [
        {"word": str(word), "n": int(count), "difference": float(difference[pairs.target == word].mean())}
        for word, count in zip(words, counts, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["n"])


def tasks(part: LanguageModelPart, lake: Lake, name: str) -> list[tuple[Key, Row]]:
    """The metrics of a task, by model: once for a base, in each dimension for a debiased model."""
    entries: list[tuple[Key, Row]] = []
    for model, specification in part.models.items():
        keys: list[Key] = (
            [{"dimension": d, "model": model} for d in part.dimensions] if specification.base else [{"model": model}]
        )
        for key in keys:
            table = name if specification.base else f"base_{name}"
            entries += [(key, row) for row in lake.rows(table, key)]
    return entries
