"""The verdict: what a row of a significance table says in one word."""

from typing import Literal

Verdict = Literal["fair", "biased", "inconclusive", "not measured"]
NOTHING_TO_JUDGE = "nothing to judge"
FAIR_ON_AVERAGE = "fair on average"
"""Where equivalence is shown for all together, but not in every stratum."""


def verdict(*, equivalent: bool, p_holm: float, alpha: float = 0.05) -> Verdict:
    """`fair` where equivalence is shown, even if significant; else `biased` where significant; else neither.

    Args:
        equivalent: The 90% interval of the paired difference lies inside the margin, in every stratum.
        p_holm: The paired test's p, Holm-adjusted over the measures of its table.
        alpha: The level of the test.
    """
    if equivalent:
        return "fair"
    return "biased" if p_holm < alpha else "inconclusive"


def paper_verdict(p: float, alpha: float = 0.05) -> Literal["fair", "biased"]:
    """The papers' own rule: biased where the unpaired test rejects, else (they say) fair."""
    return "biased" if p < alpha else "fair"
