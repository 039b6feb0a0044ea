"""Did the gap between two sides get smaller? Compares the answers of two models, or of two runs, to the same pairs."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.statistics.clusters import cautious_mean, crossed_error
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.resampling import NGrams, jackknifed, left_out

DEBIASING_EFFECTS = schema(
    **fields(COMPARISON, "measure", "unit"),
    n=(pa.int64(), "pairs, or texts, compared"),
    difference_before=(pa.float64(), "the base's difference, side a minus side b"),
    difference_after=(pa.float64(), "the debiased model's"),
    share_left=optional(pa.float64(), "the absolute difference after as a share of that before"),
    change=(pa.float64(), "of the absolute difference; below 0 the gap is smaller"),
    ci_low=(pa.float64(), "lower end of the 95% interval of the change"),
    ci_high=(pa.float64(), "upper end of that interval"),
    test=(pa.string(), "the paper's own test, where it has one"),
    p=(pa.float64(), "its p value"),
    **fields(COMPARISON, "p_holm"),
    effect=(
        pa.string(),
        "smaller gap, larger gap, no change shown, or nothing to judge; of a recipe also cure, no gap shown",
    ),
    value_a_before=optional(pa.float64(), "what side a gets from the base; null where values are no rates or counts"),
    value_b_before=optional(pa.float64(), "what side b gets from the base"),
    value_a_after=optional(pa.float64(), "what side a gets from the debiased model"),
    value_b_after=optional(pa.float64(), "what side b gets from the debiased model"),
    level=optional(
        pa.string(), "how a smaller gap came about: evens it out, lowers it for everybody, raises it for everybody"
    ),
    verdict_before=optional(pa.string(), "on the base; null for a row that has no verdict"),
    verdict_after=optional(pa.string(), "on the debiased model"),
)
"""`change` is the change of the absolute difference between the sides, with its 95% interval. Below 0 the gap is
smaller."""


SMALLER, LARGER, NONE_SHOWN = "smaller gap", "larger gap", "no change shown"
EVENS_OUT, LOWERS, RAISES = "evens it out", "lowers it for everybody", "raises it for everybody"
"""What a smaller gap did to the level of both sides."""


def level_columns(
    before: tuple[float, float], after: tuple[float, float], margin: float, *, smaller: bool
) -> dict[str, float | str | None]:
    """What both sides get before and after, and how a smaller gap came about, as columns of `DEBIASING_EFFECTS`.

    A method lowers (raises) a measure for everybody if no side gets more (less) than before, and the mean of both sides
    is below the lower (above the higher) value before, by the margin. To lower it, half of the lower value suffices if
    that is less than the margin, as rare things have little room to fall. A fall to 0 on both sides lowers it, too.
    This is a threshold, not a test.

    Args:
        before: The values of side a and side b.
        after: The values after.
        margin: The largest difference that does not matter.
        smaller: Whether the gap became smaller; otherwise there is nothing to explain.

    Examples:
        >>> [level_columns((20, 10), after, 2, smaller=True)["level"] for after in ((1, 1), (15, 15), (25, 24))]
        ['lowers it for everybody', 'evens it out', 'raises it for everybody']
    """
    mean, low = sum(after) / 2, min(before)
    falls, rises = (all(sign * (now - was) >= 0 for was, now in zip(before, after, strict=True)) for sign in (-1, 1))
    level = EVENS_OUT
    if falls and mean <= low - min(margin, low / 2):
        level = LOWERS
    elif rises and mean > max(before) + margin:
        level = RAISES
    names = ("value_a_before", "value_b_before", "value_a_after", "value_b_after")
    return {**dict(zip(names, (*before, *after), strict=True)), "level": level if smaller else None}


class Change(NamedTuple):
    """The signed differences (a - b) before and after, the change of their absolute value with its 95% interval, and
    a test."""

    before: float
    after: float
    change: float
    low: float
    high: float
    test: str
    p: float

    def scaled(self, factor: float) -> Self:
        """The same in another unit."""
        return self._replace(
            before=factor * self.before,
            after=factor * self.after,
            change=factor * self.change,
            low=factor * self.low,
            high=factor * self.high,
        )

    def row(self, p_holm: float, alpha: float) -> dict[str, Any]:
        """The change as columns of `DEBIASING_EFFECTS`.

        Args:
            p_holm: p, adjusted over all rows of the table.
            alpha: The level. If `p_holm` is below it, the gap is smaller or larger; otherwise no change is shown.
        """
        direction = SMALLER if self.change < 0 else LARGER
        return {
            "difference_before": self.before,
            "difference_after": self.after,
            "share_left": abs(self.after / self.before) if self.before else None,
            "change": self.change,
            "ci_low": self.low,
            "ci_high": self.high,
            "test": self.test,
            "p": self.p,
            "p_holm": p_holm,
            "effect": direction if p_holm < alpha else NONE_SHOWN,
        }


def change_of_difference(
    before: np.ndarray,
    after: np.ndarray,
    step: float = 1.0,
    clusters: Sequence[np.ndarray] = (),
    *,
    crossing: bool = False,
) -> Change:
    """A paired t test of whether |mean(after)| differs from |mean(before)|.

    The two are equal if mean(after) = mean(before) or mean(after) = -mean(before). p is the larger p of the tests of
    these two hypotheses (an intersection-union test). It keeps its level whatever the true signs are. If both
    differences are truly 0, it rejects less often than it could.

    Args:
        before: Side a minus side b of the first model, one number per pair.
        after: The same of the second model, on the same pairs.
        step: One pair that changes by +step and one that changes by -step are added, as for counts, so that equal
            changes do not claim certainty. 0 adds none; use it for scores, which are never all equal.
        clusters: The clusterings of the pairs; the largest error counts.
        crossing: Whether there are two clusterings that are both samples; then their errors add up.

    Examples:
        >>> before, after = np.array([1, 0] * 40), np.array([0, 0, 1, 0] * 20)
        >>> change = change_of_difference(before, after)
        >>> change.before, change.after, change.change
        (0.5, 0.25, -0.25)
    """
    before, after = before.astype(float), after.astype(float)
    means = float(before.mean()), float(after.mean())
    difference, total = (_mean(contrast, step, clusters, crossing) for contrast in (after - before, after + before))
    return change_of_estimates(means, difference, total, "paired t")


def change_of_groups(
    before: np.ndarray, after: np.ndarray, on_a: np.ndarray, step: float = 1.0, clusters: Sequence[np.ndarray] = ()
) -> Change:
    """The same for texts that each belong to one side only: the sides' mean changes are compared.

    Args:
        before: The value of each text in the first run.
        after: The same in the second run.
        on_a: Which texts are side a's.
        step: As for `change_of_difference`.
        clusters: The clusterings of the texts; the largest error counts.
    """

    def gap(contrast: np.ndarray) -> Estimate:
        a, b = (_mean(contrast[side], step, [clustering[side] for clustering in clusters]) for side in (on_a, ~on_a))
        return a.minus(b)

    means = tuple(float(values[on_a].mean() - values[~on_a].mean()) for values in (before, after))
    return change_of_estimates((means[0], means[1]), gap(after - before), gap(after + before), "t of the same texts")


def _mean(contrast: np.ndarray, step: float, clusters: Sequence[np.ndarray], crossing: bool = False) -> Estimate:
    added = np.append(contrast, (step, -step)) if step else contrast
    error = float(added.std(ddof=1) / np.sqrt(len(added))) if len(contrast) > 1 else np.inf
    over_pairs = Estimate(float(contrast.mean()), error, max(1, len(added) - 1))
    estimate = cautious_mean(contrast, clusters, over_pairs)
    if crossing and len(clusters) == 2:
        estimate = estimate._replace(error=max(estimate.error, crossed_error(contrast, clusters[0], clusters[1])))
    return estimate


def change_of_diversity(
    ngrams: tuple[NGrams, NGrams],
    before: tuple[np.ndarray, np.ndarray],
    after: tuple[np.ndarray, np.ndarray],
    blocks: int,
    clusters: Sequence[np.ndarray] = (),
) -> dict[str, Change]:
    """The same for distinct-1, distinct-2 and diversity. Their errors come from leaving out blocks of pairs, or
    clusters of pairs, whichever is larger.

    Args:
        ngrams: The n-grams of the distinct responses of the first and of the second model.
        before: The first model: index of each pair's response to side a, and to side b.
        after: The same for the second model.
        blocks: The number of blocks of consecutive pairs. Each is left out in turn.
        clusters: The clusterings of the pairs.
    """
    means: dict[str, tuple[float, float]] = {}
    widest: dict[tuple[str, int], Estimate] = {}
    for cluster in (None, *(np.unique(clustering, return_inverse=True)[1] for clustering in clusters)):
        count = blocks if cluster is None else int(cluster.max()) + 1
        first = left_out(ngrams[0], *before, count, cluster)
        second = left_out(ngrams[1], *after, count, cluster)
        means = {name: (first.whole[name], second.whole[name]) for name in first.whole}
        for name, (was, now) in means.items():
            for sign in (-1, 1):
                estimate = jackknifed(now + sign * was, second.without[name] + sign * first.without[name])
                widest[name, sign] = max(widest.get((name, sign), estimate), estimate, key=attrgetter("error"))
    return {
        name: change_of_estimates(both, widest[name, -1], widest[name, 1], "delete-block jackknife")
        for name, both in means.items()
    }


def change_of_estimates(means: tuple[float, float], difference: Estimate, total: Estimate, test: str) -> Change:
    """The change of an absolute difference, from the estimates of after - before and of their sum.

    |after| - |before| equals one of the two, or its negative, depending on the signs. Its interval is the interval of
    that one. If the other one cannot be told from 0, the signs are in doubt; the interval then also covers the values
    that other signs would give.

    Args:
        means: The signed differences before and after.
        difference: The estimate of after - before.
        total: The estimate of after + before.
        test: The test's name.
    """
    before, after = means
    same_sign = (before < 0) == (after < 0)
    deciding, other = (difference, total) if same_sign else (total, difference)
    flip = after < 0
    low, high = deciding.interval(0.95)
    low, high = (-high, -low) if flip else (low, high)
    if other.p_zero() >= _IN_DOUBT:
        reach = max(map(abs, other.interval(0.95)))
        low, high = min(low, -reach), max(high, reach)
    return Change(before, after, abs(after) - abs(before), low, high, test, max(difference.p_zero(), total.p_zero()))


_IN_DOUBT = 0.05
