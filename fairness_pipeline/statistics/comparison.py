"""One row of a significance table: two sides of one measure compared in every way the design asks for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from fairness_pipeline.statistics.corrections import benjamini_hochberg, holm
from fairness_pipeline.statistics.effects import cohens_d, cohens_h
from fairness_pipeline.statistics.equivalence import Margin, tost
from fairness_pipeline.statistics.intervals import Estimate, count_difference, rate_difference
from fairness_pipeline.statistics.paired import PairedTest, mcnemar_mid_p, paired_t, wilcoxon_p
from fairness_pipeline.statistics.resampling import NGrams, jackknife, permutation_p
from fairness_pipeline.statistics.unpaired import ZTest, z_test
from fairness_pipeline.statistics.verdicts import paper_verdict, verdict

Unit = Literal["percent", "count_per_response", "score"]


@dataclass(frozen=True)
class Comparison:
    """Side a against side b on one measure.

    Values, difference, interval, margin and smallest detectable difference are in `unit`. `difference_percent` is
    (a - b) / a as in the papers; the interval is the 95% one of the paired difference. Where something has no value it
    is None and `note` says why.
    """

    measure: str
    unit: Unit
    n: int
    value_a: float
    value_b: float
    difference: float
    difference_percent: float | None
    ci_low: float | None
    ci_high: float | None
    test: str | None
    statistic: float | None
    p: float | None
    p_holm: float
    p_bh: float
    paired_test: str
    paired_statistic: float | None
    p_paired: float
    effect_size: float | None
    margin: float
    p_equivalence: float
    minimum_detectable: float | None
    verdict: str
    paper_verdict: str | None
    published_value_a: float | None = None
    published_value_b: float | None = None
    published_p: str | None = None
    p_wilcoxon: float | None = None
    note: str = ""


_ARROW: dict[Any, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string(), Unit: pa.string()}
COMPARISON = pa.schema(
    pa.field(field.name, _ARROW[kind], kind is not field.type)
    for field in fields(Comparison)
    for kind in _ARROW
    if field.type in (kind, kind | None)
)
"""The Arrow schema of a dialogue model's significance table."""

SIGNIFICANCE = pa.schema([COMPARISON.field(place) for place in range(COMPARISON.get_field_index("published_p") + 1)])
"""The columns with which every significance table of every study starts; its own stand after them."""


def compare_rates(measure: str, a: np.ndarray, b: np.ndarray, margin: Margin, alpha: float = 0.05) -> Comparison:
    """A yes/no measure: boolean arrays, one value a pair and side. In percent."""
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    rate_a, rate_b = float(a.mean()), float(b.mean())
    return _compare(
        measure,
        "percent",
        len(a),
        (100 * rate_a, 100 * rate_b),
        _scaled(rate_difference(only_a, only_b, len(a)), 100),
        z_test(a.astype(float), b.astype(float)),
        mcnemar_mid_p(only_a, only_b),
        effect_size=cohens_h(rate_a, rate_b),
        margin=margin,
        alpha=alpha,
        p_wilcoxon=None,
    )


def compare_counts(measure: str, a: np.ndarray, b: np.ndarray, margin: Margin, alpha: float = 0.05) -> Comparison:
    """A count: one number a pair and side."""
    return _compare(
        measure,
        "count_per_response",
        len(a),
        (float(a.mean()), float(b.mean())),
        count_difference(a, b),
        z_test(a, b),
        paired_t(a, b),
        effect_size=cohens_d(a, b),
        margin=margin,
        alpha=alpha,
        p_wilcoxon=wilcoxon_p(a, b),
    )


def compare_diversity(
    ngrams: NGrams,
    a: np.ndarray,
    b: np.ndarray,
    margins: dict[str, Margin],
    *,
    permutations: int,
    blocks: int,
    seed: int,
    alpha: float = 0.05,
) -> list[Comparison]:
    """Diversity, distinct-1 and distinct-2, in percent; `a` and `b` are indices of distinct responses.

    Published without any test; here a paired permutation test and a delete-block jackknife interval, the more cautious
    of which prevails where they disagree at `alpha`.
    """
    sides = ngrams.diversity(a), ngrams.diversity(b)
    p_values = permutation_p(ngrams, a, b, permutations, seed)
    estimates = jackknife(ngrams, a, b, blocks)
    accords = {name: estimate.in_accord_with(p_values[name], alpha) for name, estimate in estimates.items()}
    return [
        _compare(
            measure,
            "percent",
            len(a),
            (100 * getattr(sides[0], measure), 100 * getattr(sides[1], measure)),
            _scaled(accords[measure][0], 100),
            None,
            PairedTest("paired permutation", None, accords[measure][1]),
            effect_size=None,
            margin=margins[measure],
            alpha=alpha,
            p_wilcoxon=None,
        )
        for measure in ("diversity", "distinct_1", "distinct_2")
    ]


def adjusted(rows: list[Comparison], alpha: float = 0.05) -> list[Comparison]:
    """The rows of one table with p adjusted over its measures (the paired p), and the verdicts that follow."""
    paired = [row.p_paired for row in rows]
    return [
        replace(
            row, p_holm=p_holm, p_bh=p_bh, verdict=verdict(equivalent=row.verdict == "fair", p_holm=p_holm, alpha=alpha)
        )
        for row, p_holm, p_bh in zip(rows, holm(paired), benjamini_hochberg(paired), strict=True)
    ]


class Published(Protocol):
    """What a paper prints for a measure: both sides' values, in the measure's unit, and p as printed."""

    @property
    def value_a(self) -> float:
        """The value of side a."""

    @property
    def value_b(self) -> float:
        """The value of side b."""

    @property
    def p(self) -> str | None:
        """As printed."""


def beside(rows: list[Comparison], published: Mapping[str, Published]) -> list[Comparison]:
    """The rows with what a paper prints for their measures."""
    return [
        replace(
            row,
            published_value_a=published[row.measure].value_a,
            published_value_b=published[row.measure].value_b,
            published_p=published[row.measure].p,
        )
        if row.measure in published
        else row
        for row in rows
    ]


def _compare(
    measure: str,
    unit: Unit,
    n: int,
    values: tuple[float, float],
    estimate: Estimate,
    unpaired: ZTest | None,
    paired: PairedTest,
    *,
    effect_size: float | None,
    margin: Margin,
    alpha: float,
    p_wilcoxon: float | None,
) -> Comparison:
    value_a, value_b = values
    amount = margin.amount(value_a, value_b)
    equivalence = tost(estimate, amount, alpha)
    widest = 100.0 if unit == "percent" else math.inf
    low, high = (max(-widest, min(widest, bound)) for bound in estimate.interval(0.95))
    notes = [unpaired.note if unpaired else "", paired.note]
    if value_a == value_b == 0:
        notes.append("never seen in any response")
    return Comparison(
        measure=measure,
        unit=unit,
        n=n,
        value_a=value_a,
        value_b=value_b,
        difference=value_a - value_b,
        difference_percent=100 * (value_a - value_b) / value_a if value_a else None,
        ci_low=_finite(low),
        ci_high=_finite(high),
        test="Z" if unpaired else None,
        statistic=_finite(unpaired.statistic) if unpaired else None,
        p=unpaired.p if unpaired else None,
        p_holm=paired.p,
        p_bh=paired.p,
        paired_test=paired.name,
        paired_statistic=paired.statistic,
        p_paired=paired.p,
        effect_size=effect_size,
        margin=amount,
        p_equivalence=equivalence.p,
        minimum_detectable=_finite(estimate.minimum_detectable(alpha)),
        verdict=verdict(equivalent=equivalence.shown, p_holm=paired.p, alpha=alpha),
        paper_verdict=paper_verdict(unpaired.p, alpha) if unpaired else None,
        p_wilcoxon=p_wilcoxon,
        note="; ".join(dict.fromkeys(note for note in notes if note)),
    )


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.centre * factor, estimate.error * factor, estimate.freedom)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
