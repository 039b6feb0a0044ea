"""Is a system's score another when only the person's group changes? (Kiritchenko and Mohammad 2018, section 5)"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.equity_pairs import SUBSETS, Design
from fairness_pipeline.statistics.comparison import SIGNIFICANCE
from fairness_pipeline.statistics.corrections import benjamini_hochberg, holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.person_level import label_permutation, pair_means_t, paired_t_columns
from fairness_pipeline.statistics.verdicts import paper_verdict, verdict

EQUITY_SIGNIFICANCE = pa.schema(
    [*SIGNIFICANCE, *(pa.field(name, pa.string(), False) for name in ("affect", "templates", "subset"))]
)
"""One row an affect, a set of templates and a subset of the sentences. Scores are in 0..1; difference is a - b.

`n` pairs; `statistic` (null where no pair differs) and `p` are the paper's paired t test over the pairs, uncorrected:
the summary corrects it over all systems. `p_paired` is that of the test whose unit is the person; `p_holm` and `p_bh`
are adjusted over the affects. Interval, smallest detectable difference and equivalence are those of the person-level
difference, and the verdict follows from these. `effect_size` is Cohen's d of the pairs' scores.
"""

_PERSON_TESTS = {"gender": (pair_means_t, "paired t of 11 pairs"), "race": (label_permutation, "permutation of names")}


def equity_significance(
    designs: list[Design],
    dimension: str,
    affects: list[str],
    scores: np.ndarray,
    margin: Margin,
    alpha: float = 0.05,
) -> pa.Table:
    """Every comparison of one dimension, as `EQUITY_SIGNIFICANCE`.

    Args:
        designs: One for each set of templates.
        dimension: One of `equity_sentences.DIMENSIONS`.
        affects: The names of the columns of scores; columns of other systems may stand beside.
        scores: (sentences, affects), in 0..1.
        margin: The largest difference that does not matter.
        alpha: The level of the verdict's tests.
    """
    rows = [
        row
        for design in designs
        for subset in SUBSETS
        for row in _rows(design, dimension, subset, affects, scores, margin, alpha)
    ]
    return pa.Table.from_pylist(rows, schema=EQUITY_SIGNIFICANCE)


def _rows(
    design: Design,
    dimension: str,
    subset: str,
    affects: list[str],
    scores: np.ndarray,
    margin: Margin,
    alpha: float,
) -> Iterator[dict[str, Any]]:
    pairs = design.pairs[subset]
    a, b = pairs.a @ scores, pairs.b @ scores
    value_a, value_b = a.mean(axis=0), b.mean(axis=0)
    paper = paired_t_columns(a, b)
    means, on_a, strata = design.people[subset]
    test, name = _PERSON_TESTS[dimension]
    person = test(means @ scores, on_a, strata)
    margins = np.array([margin.amount(*values) for values in zip(value_a, value_b, strict=True)])
    (low, high), (inner_low, inner_high) = person.interval(0.95), person.interval(1 - 2 * alpha)
    equivalent = (-margins <= inner_low) & (inner_high <= margins)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "value_a": value_a,
            "value_b": value_b,
            "difference": paper.difference,
            "difference_percent": np.where(value_a > 0, 100 * paper.difference / value_a, np.nan),
            "ci_low": low,
            "ci_high": high,
            "statistic": paper.t,
            "p": paper.p,
            "p_holm": np.array(holm(person.p.tolist())),
            "p_bh": np.array(benjamini_hochberg(person.p.tolist())),
            "paired_statistic": person.t if dimension == "gender" else np.full(len(affects), np.nan),
            "p_paired": person.p,
            "effect_size": paper.difference / np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / 2),
            "margin": margins,
            "p_equivalence": person.p_equivalence(margins),
            "minimum_detectable": person.minimum_detectable(alpha),
        }
    columns["effect_size"] = np.where(paper.difference == 0, 0.0, columns["effect_size"])
    for i, affect in enumerate(affects):
        numbers = {key: float(values[i]) for key, values in columns.items()}
        yield {
            "measure": "score",
            "unit": "score",
            "n": len(a),
            **{key: number if np.isfinite(number) else None for key, number in numbers.items()},
            "test": "paired t",
            "paired_test": name,
            "verdict": verdict(equivalent=bool(equivalent[i]), p_holm=numbers["p_holm"], alpha=alpha),
            "paper_verdict": paper_verdict(numbers["p"], alpha),
            "affect": affect,
            "templates": design.templates,
            "subset": subset,
        }
