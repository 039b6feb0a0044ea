"""Is a system's score another when only the person's group changes? (Kiritchenko and Mohammad 2018, section 5)"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.equity_pairs import SUBSETS, Design
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.person_level import label_permutation, pair_means_t, paired_t_columns
from fairness_pipeline.statistics.verdicts import verdict

_FLOATS = (
    "value_a", "value_b", "difference", "ci_low", "ci_high", "margin", "p_paper", "p_person", "p_person_holm",
    "p_equivalence",
)  # fmt: skip
EQUITY_SIGNIFICANCE = pa.schema(
    [pa.field(name, pa.string(), False) for name in ("templates", "subset", "affect")]
    + [pa.field("pairs", pa.int64(), False), pa.field("t", pa.float64())]
    + [pa.field(name, pa.float64(), False) for name in _FLOATS]
    + [pa.field("person_test", pa.string(), False), pa.field("verdict", pa.string(), False)]
)
"""One row an affect, a set of templates and a subset of the sentences. Scores are in 0..1; difference is a - b.

`t` (null where no pair differs) and `p_paper` are the paper's paired t test over the pairs, uncorrected: the summary
corrects it over all systems. `p_person` is the test whose unit is the person; `p_person_holm` is adjusted over the
affects. The 95% interval is that of the person-level difference, and the verdict follows from these.
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
    paper = paired_t_columns(a, b)
    means, on_a, strata = design.people[subset]
    test, name = _PERSON_TESTS[dimension]
    person = test(means @ scores, on_a, strata)
    adjusted = holm(person.p.tolist())
    margins = np.array([margin.amount(*means) for means in zip(a.mean(axis=0), b.mean(axis=0), strict=True)])
    (low, high), (inner_low, inner_high) = person.interval(0.95), person.interval(1 - 2 * alpha)
    columns = {
        "value_a": a.mean(axis=0),
        "value_b": b.mean(axis=0),
        "difference": paper.difference,
        "t": paper.t,
        "p_paper": paper.p,
        "p_person": person.p,
        "p_person_holm": np.array(adjusted),
        "ci_low": low,
        "ci_high": high,
        "margin": margins,
        "p_equivalence": person.p_equivalence(margins),
    }
    equivalent = (-margins <= inner_low) & (inner_high <= margins)
    for i, affect in enumerate(affects):
        numbers = {key: float(values[i]) for key, values in columns.items()}
        yield {
            "templates": design.templates,
            "subset": subset,
            "affect": affect,
            "pairs": len(a),
            **numbers,
            "t": None if np.isnan(numbers["t"]) else numbers["t"],
            "person_test": name,
            "verdict": verdict(equivalent=bool(equivalent[i]), p_holm=adjusted[i], alpha=alpha),
        }
