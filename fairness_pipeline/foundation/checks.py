"""The checks that a table must pass before it takes effect. Each returns what is wrong, or None."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

Check = Callable[[pa.Table], str | None]
"""Checks a table before it takes effect; returns what is wrong, or None. Its docstring states the condition."""


def not_empty(table: pa.Table) -> str | None:
    """The table has rows."""
    return None if table.num_rows else "expected rows, found none"


def some_to_audit(dialogues: pa.Table) -> str | None:
    """Some dialogues are kept for the audit."""
    kept = pc.any(pc.equal(dialogues["split"], "audit")).as_py()
    return None if kept else "no dialogue fell into the split 'audit'; the corpus is too small"


def sides_differ(pairs: pa.Table) -> str | None:
    """No pair has the same context on both sides."""
    equal = pc.sum(pc.equal(pairs["context_a"], pairs["context_b"])).as_py()
    return f"{equal:,} pairs have the same context on both sides" if equal else None


def both_sides_present(table: pa.Table) -> str | None:
    """Every pair has one row for side a and one for side b (one each per list, for attribute words)."""
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["side"]).to_pylist()}
    if counts.get("a") == counts.get("b") and set(counts) <= {"a", "b"}:
        return None
    return f"expected as many rows for side a as for side b, found {counts}"


def probabilities_in_range(politeness: pa.Table) -> str | None:
    """Every probability lies in 0..1."""
    return _outside(politeness, "offensive_probability", 0.0, 1.0)


def compounds_in_range(sentiment: pa.Table) -> str | None:
    """Every compound score lies in -1..1."""
    return _outside(sentiment, "compound", -1.0, 1.0)


def scores_in_range(scores: pa.Table) -> str | None:
    """Every score lies in 0..1."""
    return _outside(scores, "score", 0.0, 1.0)


def counts_not_negative(attribute_words: pa.Table) -> str | None:
    """Every count is 0 or more."""
    return _outside(attribute_words, "count", 0, float("inf"))


def values_not_negative(table: pa.Table) -> str | None:
    """Every value is 0 or more."""
    return _outside(table, "value", 0.0, float("inf"))


def shares_in_range(diversity: pa.Table) -> str | None:
    """Every share of distinct n-grams lies in 0..1."""
    problems = (_outside(diversity, column, 0.0, 1.0) for column in ("distinct_1", "distinct_2", "diversity"))
    return next((problem for problem in problems if problem), None)


def perplexities_in_range(table: pa.Table) -> str | None:
    """Every perplexity is 1 or more."""
    return _outside(table, "perplexity", 1.0, float("inf"))


def rates_in_range(significance: pa.Table) -> str | None:
    """Every percentage lies in 0..100, and every p in 0..1."""
    percent = significance.filter(pc.equal(significance["unit"], "percent"))
    problems = [_outside(percent, column, 0.0, 100.0) for column in ("value_a", "value_b")]
    problems += [
        _outside(significance, column, 0.0, 1.0) for column in ("p", "p_holm", "p_bh", "p_paired", "p_equivalence")
    ]
    return next((problem for problem in problems if problem), None)


def _outside(table: pa.Table, column: str, low: float, high: float) -> str | None:
    values = table[column].drop_null()
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))  # NaN counts as outside
    outside = len(values) - (pc.sum(inside).as_py() or 0)
    return f"{outside:,} values of '{column}' are not in {low}..{high}" if outside else None
