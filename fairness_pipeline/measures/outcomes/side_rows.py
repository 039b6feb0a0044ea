"""The rows of signed outcomes, which have a side of their own: stereotyped answers, preferences of two likelihoods."""

import math
from collections.abc import Iterator

import numpy as np

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.measures.outcomes.cells import OutcomeCells
from fairness_pipeline.measures.outcomes.group_effects import FEWEST_THAT_DIFFER
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.rows import SIDE, SIDE_OF_GROUP, Judged, margin_of, measure_of, unit_of
from fairness_pipeline.statistics.clusters import FEWEST_FOR_FAIR, FEWEST_TO_TELL
from fairness_pipeline.statistics.comparison import AT_THE_END, Comparison
from fairness_pipeline.statistics.effects import cohens_h
from fairness_pipeline.statistics.equivalence import Bound, tost
from fairness_pipeline.statistics.intervals import Estimate, finite, most_that_differ, quantile
from fairness_pipeline.statistics.paired import paired_t
from fairness_pipeline.statistics.signed import signed_means
from fairness_pipeline.statistics.verdicts import too_few


def side_rows(name: str, outcome: Outcome, cells: OutcomeCells, judging: Judging) -> Iterator[Judged]:
    """The rows of a signed outcome: its mean compared with 0, or a share with one half, over all cells and over those
    about each group.
    """
    unit, scale = unit_of(outcome)
    middle = 0.5 if outcome.kind == "preference" else 0.0
    item = np.arange(len(cells.value)) if cells.item is None else cells.item.code
    cluster = np.unique(cells.cluster.code if cells.cluster else item, return_inverse=True)[1]
    column = judging.columns[0] if judging.columns else ""
    codes = cells.groups[column] if column else None
    group = codes.code if codes else np.zeros(len(cells.value), dtype=np.int64)
    means = signed_means(
        lambda mask: cells.linearised(mask) - middle,
        cluster,
        group,
        codes.names if codes else ("all",),
        judging.seed,
    )
    margin = margin_of(outcome, middle, _deviation(cells))
    for index, (about, estimate, p) in enumerate(zip(means.names, means.estimates, means.p, strict=True)):
        mask = group == codes.names.index(about) if codes and about else np.ones(len(cells.value), dtype=bool)
        single = cells.linearised(mask) - middle
        plain = paired_t(single, np.zeros(len(single)))
        clusters, differ = means.clusters[index], means.differing[index]
        p_fair = tost(estimate, Bound(margin / scale)).p
        needed = _clusters_for_mean(estimate, clusters, margin / scale)
        notes, enough_data = [], clusters >= FEWEST_TO_TELL
        if not enough_data:
            notes.append(too_few(clusters, "cluster"))
        elif differ < FEWEST_THAT_DIFFER:
            enough_data = False
            bound = scale * float(most_that_differ(differ, clusters))
            notes.append(
                f"{differ} of {number_of(clusters, 'cluster')} lean to a side: {AT_THE_END} {bound:.2g} (exact, 95%)"
            )
        fair = enough_data and p_fair <= judging.alpha and clusters >= FEWEST_FOR_FAIR
        low, high = estimate.interval(0.95)
        value = scale * (estimate.centre + middle)
        detectable = estimate.minimum_detectable(judging.alpha)
        row = Comparison(
            measure=measure_of(name, (about,) if about else ()),
            unit=unit,
            n=means.counts[index],
            value_a=value,
            value_b=scale * middle,
            difference=scale * estimate.centre,
            ci_low=finite(scale * low),
            ci_high=finite(scale * high),
            test="t over rows",
            statistic=plain.statistic,
            p=plain.p,
            p_holm=p,
            p_bh=p,
            paired_test="signs of clusters flipped",
            paired_statistic=finite(estimate.centre / estimate.error) if estimate.error > 0 else None,
            p_paired=p,
            effect_size=cohens_h(min(1.0, max(0.0, value / 100)), middle) if unit == "percent" else None,
            margin=margin,
            p_equivalence=min(1.0, p_fair),
            minimum_detectable=finite(scale * detectable),
            beyond_margin=scale * low > margin or scale * high < -margin,
            clusters=clusters,
            effective_clusters=float(clusters),
            clusters_needed=needed,
            note="; ".join(notes),
        )
        least = abs(estimate.centre) + quantile(0.95, estimate.freedom) * estimate.error
        columns = {
            "outcome": name,
            "attribute": column if about else "",
            "contrast": SIDE_OF_GROUP if about else SIDE,
            "group": about or "all",
            "against": f"{scale * middle:g}{'%' if unit == 'percent' else ''}",
            "differing": differ,
            "smallest_margin": finite(scale * least),
        }
        yield Judged(row, columns, fair, enough_data)


def _deviation(cells: OutcomeCells) -> float:
    """The standard deviation of single trials around their mean, as most items have only one."""
    mean, square = (float(np.average(column, weights=cells.draws)) for column in (cells.value, cells.square))
    return math.sqrt(max(0.0, square - mean**2))


def _clusters_for_mean(estimate: Estimate, clusters: int, margin: float) -> int | None:
    if margin <= 0 or not math.isfinite(estimate.error):
        return None
    return math.ceil(clusters * ((quantile(0.95) + quantile(0.9)) * estimate.error / margin) ** 2)
