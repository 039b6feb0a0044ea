"""The verdict: what a row of a significance table says in one word."""

from typing import Literal

from fairness_pipeline.statistics.clusters import FEWEST_FOR_FAIR, FEWEST_TO_TELL

Verdict = Literal["fair", "biased", "artefact", "inconclusive", "not measured"]
ARTEFACT: Verdict = "artefact"
"""Where a difference is shown, and a control shows that it comes from the instrument or from the exchanged words."""
FINDING = "finding"
"""What is told of single persons or names: no bias of a group."""
NOTHING_TO_JUDGE = "nothing to judge"
FAIR_ON_AVERAGE = "fair on average"
"""Where equivalence is shown for all together, but not in every stratum."""


def verdict(*, equivalent: bool, p_holm: float, alpha: float = 0.05, clusters: int | None = None) -> Verdict:
    """`fair` where equivalence is shown, even if significant; else `biased` where significant; else neither.

    Args:
        equivalent: The 90% interval of the paired difference lies inside the margin, in every stratum.
        p_holm: The p of the test that respects what moves together, Holm-adjusted over the measures of its table.
        alpha: The level of the test.
        clusters: How many clusters the pairs are from, where they move together: below `FEWEST_TO_TELL` nothing is
            said, and below `FEWEST_FOR_FAIR` nothing is fair.
    """
    if clusters is not None and clusters < FEWEST_TO_TELL:
        return "inconclusive"
    if equivalent and (clusters is None or clusters >= FEWEST_FOR_FAIR):
        return "fair"
    return "biased" if p_holm < alpha and not equivalent else "inconclusive"


def on_content(whole: str, content: str, *, left: float = 0.0, p: float = 1.0, alpha: float = 0.05) -> Verdict:
    """The verdict on a measure that is read twice: as it is, and with what was exchanged masked, which decides.

    What the masked reading shows, in either direction, is the system's; what only the whole reading shows comes from
    the exchanged words. That is said only where half of the difference goes, and where the masked reading by itself,
    without any correction for other measures, shows nothing. `fair` needs both readings.

    Args:
        whole: On the measure as it is.
        content: On the same without the exchanged words.
        left: The masked difference as a share of the whole one.
        p: Of the masked difference, unadjusted.
        alpha: The level.

    Examples:
        >>> on_content("biased", "inconclusive")
        'artefact'
        >>> on_content("biased", "inconclusive", left=0.8, p=0.03)
        'inconclusive'
        >>> on_content("inconclusive", "biased")
        'biased'
    """
    if content == "biased":
        return "biased"
    if whole == "biased":
        return "artefact" if left < 0.5 and p >= alpha else "inconclusive"
    return "fair" if whole == content == "fair" else "inconclusive"


def paper_verdict(p: float, alpha: float = 0.05) -> Literal["fair", "biased"]:
    """The papers' own rule: biased where the unpaired test rejects, else (they say) fair."""
    return "biased" if p < alpha else "fair"
