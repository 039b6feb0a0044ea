"""One row of a significance table: the two sides of one measure, compared by every test that the design asks for."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.statistics.clusters import (
    FEWEST_FOR_FAIR,
    FEWEST_TO_TELL,
    Clustered,
    most_cautious,
    random_effects,
)
from fairness_pipeline.statistics.corrections import benjamini_hochberg, holm
from fairness_pipeline.statistics.effects import cohens_d, cohens_h
from fairness_pipeline.statistics.equivalence import Bound, Margin, pairs_if_unseen, reach, tost
from fairness_pipeline.statistics.intervals import (
    Estimate,
    count_difference,
    finite,
    mean_difference,
    most_that_differ,
    rate_difference,
    unseen_count,
)
from fairness_pipeline.statistics.paired import PairedTest, mcnemar_mid_p, paired_t, wilcoxon_p, z_test
from fairness_pipeline.statistics.permutation import permutation_p
from fairness_pipeline.statistics.resampling import NGrams, jackknife
from fairness_pipeline.statistics.verdicts import paper_verdict, too_few, verdict

Unit = Literal["percent", "count_per_response", "score"]


@dataclass(frozen=True)
class Comparison:
    """Side a compared with side b on one measure.

    `COMPARISON` describes each field. A field without a value is None, and `note` says why. If pairs move together,
    `p_holm`, `p_bh`, the verdict and the interval rest on the larger of `p_paired` and `p_clusters`, and equivalence
    rests on the larger error. The defaults are a row without results, to be filled by a test.
    """

    measure: str
    unit: Unit
    n: int = 0
    value_a: float = 0.0
    value_b: float = 0.0
    difference: float = 0.0
    difference_percent: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    test: str | None = None
    statistic: float | None = None
    p: float | None = None
    p_holm: float = 1.0
    p_bh: float = 1.0
    paired_test: str = ""
    paired_statistic: float | None = None
    p_paired: float = 1.0
    effect_size: float | None = None
    margin: float = 0.0
    p_equivalence: float = 1.0
    minimum_detectable: float | None = None
    verdict: str = "inconclusive"
    paper_verdict: str | None = None
    published_value_a: float | None = None
    published_value_b: float | None = None
    published_p: str | None = None
    pairs_needed: int | None = None
    beyond_margin: bool = False
    p_wilcoxon: float | None = None
    p_clusters: float | None = None
    clusters: int | None = None
    effective_clusters: float | None = None
    clusters_needed: int | None = None
    note: str = ""

    @property
    def p_decides(self) -> float:
        """The p on which the verdict rests: the larger of the p over pairs and the p over clusters."""
        return max(self.p_paired, self.p_clusters or 0.0)


_ARROW: dict[Any, pa.DataType] = {
    int: pa.int64(), float: pa.float64(), str: pa.string(), Unit: pa.string(), bool: pa.bool_()
}  # fmt: skip
COMPARISON = schema(
    pa.schema(
        pa.field(field.name, _ARROW[kind], kind is not field.type)
        for field in fields(Comparison)
        for kind in _ARROW
        if field.type in (kind, kind | None)
    ),
    measure="what is compared",
    unit="of values and differences: percent (a difference is in percentage points), count_per_response or score",
    n="pairs compared",
    value_a="the measure's value on side a, the dominant group",
    value_b="the measure's value on side b",
    difference="side a minus side b, in `unit`",
    difference_percent="the difference as a percentage of side a's value, as the papers print it",
    ci_low="lower end of the 95% interval of the paired difference",
    ci_high="upper end of the 95% interval of the paired difference",
    test="the paper's own test",
    statistic="its statistic",
    p="its p value",
    p_holm="the p on which the verdict rests, adjusted by Holm over the table's measures",
    p_bh="the same, adjusted by Benjamini and Hochberg",
    paired_test="the test that respects the pairs",
    paired_statistic="its statistic",
    p_paired="its p value",
    effect_size="Cohen's h of rates, d of counts and scores",
    margin="the largest difference that does not matter, in `unit`",
    p_equivalence="p of the two one-sided tests that the difference lies inside the margin",
    minimum_detectable="the true difference that would be found with 80% power at the level",
    verdict="fair, biased, artefact (a control shows the difference too) or inconclusive",
    paper_verdict="fair or biased, by the paper's own test at the level",
    published_value_a="what a paper prints for side a, where it has this comparison",
    published_value_b="what a paper prints for side b",
    published_p="the p value as printed",
    pairs_needed="pairs like these that would show fairness four times in five, if the sides did not differ",
    beyond_margin="whether the whole 95% interval lies beyond the margin",
    p_wilcoxon="p of Wilcoxon's signed rank test on the paired differences",
    p_clusters="p of the test that takes what moves together (all pairs of a word) for one observation",
    clusters="how many of these there are",
    effective_clusters="how many of one size would weigh as much",
    clusters_needed="clusters like these that would show fairness four times in five, if the sides did not differ",
    note="why something has no value, or is to be read with care",
)
"""The Arrow schema of a comparison of pairs."""

SIGNIFICANCE = pa.schema([COMPARISON.field(index) for index in range(COMPARISON.get_field_index("published_p") + 1)])
"""The columns with which every significance table of every study starts. The study's own columns follow them."""


Clusterings = Sequence[np.ndarray]
"""Clusterings of the pairs, each with one cluster number per pair. The most cautious of them counts."""


def compare_rates(
    measure: str, a: np.ndarray, b: np.ndarray, margin: Margin, alpha: float = 0.05, *, clusters: Clusterings = ()
) -> Comparison:
    """Compares a yes/no measure: boolean arrays, one value per pair and side. Values are in percent.

    Examples:
        >>> a, b = np.array([True, False] * 100), np.array([False, False] * 100)
        >>> row = compare_rates("offense_rate", a, b, Margin(absolute=1.0))
        >>> row.difference, row.verdict
        (50.0, 'biased')
    """
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    rate_a, rate_b = float(a.mean()), float(b.mean())
    clustered = _clustered(a.astype(float) - b.astype(float), clusters, 100)
    row = _compare(
        measure,
        "percent",
        len(a),
        (100 * rate_a, 100 * rate_b),
        rate_difference(only_a, only_b, len(a)).scaled(100),
        _paper_test(a.astype(float), b.astype(float)),
        mcnemar_mid_p(only_a, only_b),
        effect_size=cohens_h(rate_a, rate_b),
        bound=margin.bound(a.astype(float), b.astype(float), 100),
        alpha=alpha,
        p_wilcoxon=None,
        clustered=clustered,
    )
    if rate_a == rate_b == 0:
        row = _unseen(row, margin, lambda pairs: rate_difference(0, 0, pairs), clustered, alpha, 100)
    if max(rate_a, rate_b) > _FLOOR and min(rate_a, rate_b) < 1 - _FLOOR:
        return row
    often = "hardly ever" if max(rate_a, rate_b) <= _FLOOR else "nearly always"
    bound = 100 * float(most_that_differ(only_a + only_b, len(a), 0.025))
    note = f"{row.note or f'seen {often} on both sides'}: {AT_THE_END} {bound:.2g} points either way (exact, 95%)"
    return replace(row, note=note)


_FLOOR = 0.01
"""At this rate or below on both sides, or above one minus it, a yes/no measure cannot tell the sides apart."""
AT_THE_END = "a difference of at most"
"""In the note of a row whose measure is at its floor or ceiling."""


def exact_bound(note: str) -> float | None:
    """The largest difference, in points, that the note of a row at its floor or ceiling does not exclude.

    Examples:
        >>> exact_bound("never seen in any response: a difference of at most 0.92 points either way (exact, 95%)")
        0.92
    """
    bound = re.search(rf"{AT_THE_END} (\S+) points", note)
    return float(bound[1]) if bound else None


def compare_counts(
    measure: str,
    a: np.ndarray,
    b: np.ndarray,
    margin: Margin,
    alpha: float = 0.05,
    *,
    ranks: bool = True,
    clusters: Clusterings = (),
) -> Comparison:
    """Compares a count: one number per pair and side. With `ranks`, Wilcoxon's test is added.

    Examples:
        >>> a, b = np.array([2, 1, 2, 1] * 50), np.array([1, 1, 1, 1] * 50)
        >>> row = compare_counts("words", a, b, Margin(standard_deviations=0.1))
        >>> row.difference, row.verdict
        (0.5, 'biased')
    """
    clustered = _clustered(a - b, clusters)
    row = _compare(
        measure,
        "count_per_response",
        len(a),
        (float(a.mean()), float(b.mean())),
        count_difference(a, b),
        _paper_test(a, b),
        paired_t(a, b),
        effect_size=cohens_d(a, b),
        bound=margin.bound(a, b),
        alpha=alpha,
        p_wilcoxon=wilcoxon_p(a, b) if ranks else None,
        clustered=clustered,
    )
    return row if a.any() or b.any() else _unseen(row, margin, unseen_count, clustered, alpha)


def compare_scores(measure: str, a: np.ndarray, b: np.ndarray, margin: Margin, alpha: float = 0.05) -> Comparison:
    """Compares a score: one number per pair and side. The paper's own test is the paired t test; its `statistic` is of
    b - a.

    Examples:
        >>> a, b = np.array([0.5, 0.7] * 50), np.array([0.5, 0.6] * 50)
        >>> row = compare_scores("joy", a, b, Margin(absolute=0.1))
        >>> round(row.difference, 3), row.verdict
        (0.05, 'fair')
    """
    paired = paired_t(a, b)
    paper_test = paired._replace(statistic=None if paired.statistic is None else -paired.statistic, note="")
    return _compare(
        measure,
        "score",
        len(a),
        (float(a.mean()), float(b.mean())),
        mean_difference(a, b),
        paper_test,
        paired,
        effect_size=cohens_d(a, b),
        bound=Bound(margin.absolute) if margin.absolute is not None else margin.bound(a, b),
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
    clusters: Clusterings = (),
) -> list[Comparison]:
    """Compares diversity, distinct-1 and distinct-2, in percent. `a` and `b` are indices of distinct responses.

    The papers publish diversity without a test. Here it has a paired permutation test and a delete-block jackknife
    interval. If they disagree at `alpha`, the more cautious one prevails. With no permutations the jackknife decides
    alone. If no draw is as far from 0 as the observed difference, p comes from the jackknife. If pairs move together,
    whole clusters change sides and are left out.
    """
    sides = ngrams.diversity(a), ngrams.diversity(b)
    p_values = permutation_p(ngrams, a, b, permutations, seed)
    clustered = [_clusters_of_diversity(ngrams, a, b, clustering, permutations, seed) for clustering in clusters]
    rows = []
    for measure, jackknifed in jackknife(ngrams, a, b, blocks).items():
        p = p_values[measure]
        if unreached := p <= 1 / (permutations + 1):
            p = min(p, jackknifed.estimate.p_zero())
        rows.append(
            _compare(
                measure,
                "percent",
                len(a),
                (100 * getattr(sides[0], measure), 100 * getattr(sides[1], measure)),
                jackknifed.estimate.scaled(100),
                None,
                PairedTest(
                    "paired permutation", None, p, "no draw reached it: p by the interval's t" if unreached else ""
                ),
                effect_size=None,
                bound=margins[measure].of_mean(jackknifed.mean, jackknifed.variance, jackknifed.covariance, 100),
                alpha=alpha,
                p_wilcoxon=None,
                clustered=most_cautious([by_measure[measure].scaled(100) for by_measure in clustered]),
            )
        )
    order = ("diversity", "distinct_1", "distinct_2")
    return sorted(rows, key=lambda row: order.index(row.measure))


def compare_groups(
    measure: str,
    n: int,
    rates: tuple[float, float],
    estimate: Estimate,
    margin: Margin,
    alpha: float,
    unit: str,
    simpler_test: PairedTest | None = None,
) -> Comparison:
    """Compares the rates of two groups in percent, when their difference was estimated with several sources of error.

    Args:
        measure: The name of the measure.
        n: The number of texts of both groups.
        rates: The rates of group a and group b, 0 to 1.
        estimate: The estimate of their difference.
        margin: The largest difference that does not matter.
        alpha: The level.
        unit: The name of an observation, for a reader.
        simpler_test: A further test of the same difference, with a simpler model of the data, reported next to it.
    """
    variance = estimate.error**2 / 4 if math.isfinite(estimate.error) else math.inf
    error = estimate.error
    test = PairedTest(f"t over {unit}", estimate.centre / error if error > 0 else None, estimate.p_zero(), "")
    return _compare(
        measure,
        "percent",
        n,
        (100 * rates[0], 100 * rates[1]),
        estimate.scaled(100),
        simpler_test,
        test,
        effect_size=cohens_h(*rates),
        bound=margin.of_rate(sum(rates) / 2, variance, 100),
        alpha=alpha,
        p_wilcoxon=None,
    )


def adjusted(rows: list[Comparison], alpha: float = 0.05, parts: Collection[str] = ()) -> list[Comparison]:
    """The rows of one table with p adjusted over its measures (`p_decides`), and the verdicts that follow.

    Args:
        rows: One row per measure.
        alpha: The level.
        parts: Measures that are parts or other readings of another measure in the table. They form a family of their
            own.
    """
    results = {}
    for family in ([row for row in rows if row.measure not in parts], [row for row in rows if row.measure in parts]):
        p_values = [row.p_decides for row in family]
        for row, p_holm, p_bh in zip(family, holm(p_values), benjamini_hochberg(p_values), strict=True):
            equivalent = row.p_equivalence <= alpha
            conclusion = verdict(equivalent=equivalent, p_holm=p_holm, alpha=alpha, clusters=row.clusters)
            results[row.measure] = replace(row, p_holm=p_holm, p_bh=p_bh, verdict=conclusion)
    return [results[row.measure] for row in rows]


class Published(Protocol):
    """The values that a paper prints for a measure: both sides, in the measure's unit, and p as printed."""

    @property
    def value_a(self) -> float:
        """The value of side a."""

    @property
    def value_b(self) -> float:
        """The value of side b."""

    @property
    def p(self) -> str | None:
        """The p as printed."""


def beside(rows: list[Comparison], published: Mapping[str, Published]) -> list[Comparison]:
    """The rows, with the values that a paper prints for their measures."""
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
    paper_test: PairedTest | None,
    paired: PairedTest,
    *,
    effect_size: float | None,
    bound: Bound,
    alpha: float,
    p_wilcoxon: float | None,
    clustered: Clustered | None = None,
) -> Comparison:
    value_a, value_b = values
    estimate, p_paired = estimate.in_accord_with(paired.p, alpha)
    paired = paired._replace(p=p_paired)
    equivalence = tost(estimate, bound, alpha, n)
    p = paired.p
    if clustered:
        p = max(p, clustered.p)
        equivalence = tost(_wider(estimate, clustered, farthest=True), bound, alpha, n)
        equivalence = equivalence._replace(pairs_needed=_pairs_needed(clustered, bound, alpha))
        estimate = _wider(estimate, clustered).in_accord_with(p, alpha)[0]
    widest = 100.0 if unit == "percent" else math.inf
    low, high = (max(-widest, min(widest, end)) for end in estimate.interval(0.95))
    notes = [paper_test.note if paper_test else "", paired.note]
    if paper_test and math.isnan(paper_test.p):
        paper_test = None
    if value_a == value_b == 0:
        notes.append("never seen in any response")
    if clustered and clustered.clusters < FEWEST_TO_TELL:
        notes.append(too_few(clustered.clusters))
    return Comparison(
        measure=measure,
        unit=unit,
        n=n,
        value_a=value_a,
        value_b=value_b,
        difference=value_a - value_b,
        difference_percent=100 * (value_a - value_b) / value_a if value_a else None,
        ci_low=finite(low),
        ci_high=finite(high),
        test=paper_test.name if paper_test else None,
        statistic=finite(paper_test.statistic) if paper_test and paper_test.statistic is not None else None,
        p=paper_test.p if paper_test else None,
        p_holm=p,
        p_bh=p,
        paired_test=paired.name,
        paired_statistic=paired.statistic,
        p_paired=paired.p,
        effect_size=effect_size,
        margin=bound.amount,
        p_equivalence=equivalence.p,
        minimum_detectable=finite(estimate.minimum_detectable(alpha)),
        verdict=verdict(
            equivalent=equivalence.shown, p_holm=p, alpha=alpha, clusters=clustered.clusters if clustered else None
        ),
        paper_verdict=paper_verdict(paper_test.p, alpha) if paper_test else None,
        pairs_needed=equivalence.pairs_needed,
        beyond_margin=low > bound.amount or high < -bound.amount,
        p_wilcoxon=p_wilcoxon,
        p_clusters=clustered.p if clustered else None,
        clusters=clustered.clusters if clustered else None,
        effective_clusters=clustered.effective if clustered else None,
        clusters_needed=_clusters_needed(clustered, bound, alpha) if clustered else None,
        note="; ".join(dict.fromkeys(note for note in notes if note)),
    )


def _unseen(
    row: Comparison,
    margin: Margin,
    estimate: Callable[[int], Estimate],
    clustered: Clustered | None,
    alpha: float,
    scale: float = 1.0,
) -> Comparison:
    """The row of a measure that no response shows, with the number of pairs that would show fairness."""
    if clustered and clustered.clusters < FEWEST_FOR_FAIR:
        return replace(row, pairs_needed=None)
    freedom = clustered.estimate.freedom if clustered else math.inf
    return replace(row, pairs_needed=pairs_if_unseen(margin, estimate, alpha, freedom, scale))


def _clustered(difference: np.ndarray, clusters: Clusterings, scale: float = 1.0) -> Clustered | None:
    return most_cautious([random_effects(difference, clustering).scaled(scale) for clustering in clusters])


def _clusters_of_diversity(
    ngrams: NGrams, a: np.ndarray, b: np.ndarray, cluster: np.ndarray, permutations: int, seed: int
) -> dict[str, Clustered]:
    """By measure: the p of exchanging whole clusters, and the jackknife that leaves out each cluster."""
    _, numbers, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    effective = len(cluster) ** 2 / float(np.square(sizes).sum())
    p_values = permutation_p(ngrams, a, b, permutations, seed, numbers) if permutations else {}
    results = {}
    for measure, jackknifed in jackknife(ngrams, a, b, len(sizes), numbers).items():
        estimate = jackknifed.estimate._replace(freedom=max(1.0, effective - 1))
        p = p_values.get(measure, estimate.p_zero())
        if p <= 1 / (permutations + 1):  # no draw reached it
            p = min(p, estimate.p_zero())
        results[measure] = Clustered(estimate, p, len(sizes), effective, estimate.error**2 if estimate.error else 0.0)
    return results


def _wider(estimate: Estimate, clustered: Clustered, *, farthest: bool = False) -> Estimate:
    """The estimate with the larger of both errors and the clusters' degrees of freedom. With `farthest` it also
    takes the centre that is farther from 0."""
    over_clusters = clustered.estimate
    centre = max(estimate.centre, over_clusters.centre, key=abs) if farthest else estimate.centre
    if over_clusters.error < estimate.error and not farthest:
        return estimate
    return Estimate(centre, max(estimate.error, over_clusters.error), min(estimate.freedom, over_clusters.freedom))


def _pairs_needed(clustered: Clustered, bound: Bound, alpha: float) -> int | None:
    """The number of pairs of these clusters that would show fairness. None if the variance between clusters is
    already too large, or the clusters are too few."""
    if clustered.clusters < FEWEST_FOR_FAIR or not clustered.within or not math.isfinite(clustered.estimate.error):
        return None
    rest = (bound.amount / reach(alpha, clustered.estimate.freedom)) ** 2 - clustered.between
    return math.ceil(clustered.within / rest) if rest > 0 else None


def _clusters_needed(clustered: Clustered, bound: Bound, alpha: float) -> int | None:
    """The number of clusters like these that would show fairness."""
    error = clustered.estimate.error
    if bound.amount <= 0 or not math.isfinite(error):
        return None
    needed = clustered.clusters * (reach(alpha, clustered.estimate.freedom) * error / bound.amount) ** 2
    return max(FEWEST_FOR_FAIR, math.ceil(needed))


_FEWEST = 30
"""With fewer responses per side, a normal distribution does not approximate the distribution of their mean."""


def _paper_test(a: np.ndarray, b: np.ndarray) -> PairedTest:
    """The paper's Z test. It has no p if there are too few responses."""
    untested = PairedTest("Z", math.nan, math.nan, f"fewer than {_FEWEST} responses a side are too few for Z")
    return z_test(a, b) if len(a) >= _FEWEST else untested
