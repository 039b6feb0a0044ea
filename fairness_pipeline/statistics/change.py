"""Did a gap between two sides get smaller? Two models' answers to the same pairs, compared."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.resampling import NGrams, left_out

DEBIASING_EFFECTS = schema(
    measure=(pa.string(), "what is compared"),
    unit=(
        pa.string(),
        "of values and differences: percent (a difference is in percentage points), count_per_response or score",
    ),
    n=(pa.int64(), "pairs, or texts, compared"),
    difference_before=(pa.float64(), "the base's difference, side a minus side b"),
    difference_after=(pa.float64(), "the debiased model's"),
    change=(pa.float64(), "of the absolute difference; below 0 the gap is smaller"),
    ci_low=(pa.float64(), "lower end of the 95% interval of the change"),
    ci_high=(pa.float64(), "upper end of that interval"),
    test=(pa.string(), "the paper's own test, where it has one"),
    p=(pa.float64(), "its p value"),
    p_holm=(pa.float64(), "the p on which the verdict rests, adjusted by Holm over the table's measures"),
    effect=(
        pa.string(),
        "smaller gap, larger gap, no change shown, or nothing to judge; of a recipe also cure, no gap shown",
    ),
    verdict_before=(pa.string(), "on the base"),
    verdict_after=(pa.string(), "on the debiased model"),
)
"""`change` is that of the absolute difference between the sides, with its 95% interval; below 0 the gap is smaller."""


class Change(NamedTuple):
    """Signed differences (a - b) before and after; the change of their absolute value with its 95% interval; a test."""

    before: float
    after: float
    change: float
    low: float
    high: float
    test: str
    p: float

    def row(self, p_holm: float, alpha: float, factor: float = 1.0) -> dict[str, Any]:
        """Its columns of `DEBIASING_EFFECTS`.

        Args:
            p_holm: p, adjusted for all rows of the table.
            alpha: The level: below it the gap is smaller or larger, else no change is shown.
            factor: What every difference is multiplied by.
        """
        shown = "smaller gap" if self.change < 0 else "larger gap"
        return {
            "difference_before": factor * self.before,
            "difference_after": factor * self.after,
            "change": factor * self.change,
            "ci_low": factor * self.low,
            "ci_high": factor * self.high,
            "test": self.test,
            "p": self.p,
            "p_holm": p_holm,
            "effect": shown if p_holm < alpha else "no change shown",
        }


def change_of_difference(before: np.ndarray, after: np.ndarray, step: float = 1.0) -> Change:
    """A paired t test of whether |mean(after)| differs from |mean(before)|.

    The two are equal where mean(after) = mean(before), or where mean(after) = -mean(before): p is the larger of both
    tests' p, which keeps its level whatever the true signs are (an intersection-union test), and rejects less often
    than it may where both differences are truly 0.

    Args:
        before: Side a minus side b of the first model, one number a pair.
        after: The same of the second model, on the same pairs.
        step: As for counts, a pair that changes by +step and one by -step are added: equal changes must not claim
            certainty. 0 for scores, which are never all equal, adds none.
    """
    before, after = before.astype(float), after.astype(float)
    n = len(before)

    def estimate(contrast: np.ndarray) -> Estimate:
        added = np.append(contrast, (step, -step)) if step else contrast
        error = float(added.std(ddof=1) / np.sqrt(len(added))) if n > 1 else np.inf
        return Estimate(float(contrast.mean()), error, max(1, len(added) - 1))

    means = float(before.mean()), float(after.mean())
    return change_of_estimates(means, estimate(after - before), estimate(after + before), "paired t")


def change_of_diversity(
    ngrams: tuple[NGrams, NGrams],
    before: tuple[np.ndarray, np.ndarray],
    after: tuple[np.ndarray, np.ndarray],
    blocks: int,
) -> dict[str, Change]:
    """The same for distinct-1, distinct-2 and diversity, whose errors come from leaving out blocks of pairs.

    Args:
        ngrams: Of the first and of the second model's distinct responses.
        before: Index of each pair's response to side a, and to side b, of the first model.
        after: The same of the second.
        blocks: How many runs of pairs are left out in turn.
    """
    first, second = left_out(ngrams[0], *before, blocks), left_out(ngrams[1], *after, blocks)
    changes = {}
    for name in first.whole:
        means = first.whole[name], second.whole[name]
        changes[name] = change_of_estimates(
            means,
            _jackknifed(means[1] - means[0], second.without[name] - first.without[name]),
            _jackknifed(means[1] + means[0], second.without[name] + first.without[name]),
            "delete-block jackknife",
        )
    return changes


def _jackknifed(value: float, without: np.ndarray) -> Estimate:
    count = len(without)
    variance = (count - 1) / count * ((without - without.mean()) ** 2).sum() if count > 1 else np.inf
    return Estimate(value, float(np.sqrt(variance)), max(count - 1, 1))


def change_of_estimates(means: tuple[float, float], difference: Estimate, total: Estimate, test: str) -> Change:
    """The change of an absolute difference, from the estimates of after - before and of their sum.

    |after| - |before| is one of the two, or its negative, whichever the signs make it. Its interval is that one's;
    where the other cannot be told from 0, the signs are in doubt, and it covers what other signs would give as well.

    Args:
        means: The signed differences before and after.
        difference: Of after - before.
        total: Of after + before.
        test: The test's name.
    """
    before, after = means
    same = (before < 0) == (after < 0)
    own, other = (difference, total) if same else (total, difference)
    flip = after < 0
    low, high = own.interval(0.95)
    low, high = (-high, -low) if flip else (low, high)
    if other.p_zero() >= _IN_DOUBT:
        reach = max(map(abs, other.interval(0.95)))
        low, high = min(low, -reach), max(high, reach)
    return Change(before, after, abs(after) - abs(before), low, high, test, max(difference.p_zero(), total.p_zero()))


_IN_DOUBT = 0.05
