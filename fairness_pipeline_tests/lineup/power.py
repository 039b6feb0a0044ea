"""Estimates what study 1 can find with a number of pairs: its rule judges simulated differences; no text is scored."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fairness_pipeline.measures.dialogue.measure import MARGINS
from fairness_pipeline.statistics.comparison import compare_rates
from fairness_pipeline.statistics.verdicts import verdict

PAIRS = (400, 1_500, 7_000)
WORDS, BASE, FAMILY, ALPHA = 20, 0.10, 6, 0.05
"""The equally frequent words, the measure's base rate, the measures in Holm's family (its first step), the level."""
DRAWS = 200


class Case(NamedTuple):
    """A difference: how much side b's rate is raised, in which share of the words, and how much words vary (sd)."""

    name: str
    raised: float
    share: float = 1.0
    spread: float = 0.0


CASES = (
    Case("25 points", 0.25),
    Case("12 points", 0.12),
    Case("6 points (four margins)", 0.06),
    Case("6 points, words vary by 3 (sd)", 0.06, spread=0.03),
    Case("3 points (two margins)", 0.03),
    Case("6 points in 8 of 20 words", 0.06, share=0.4),
    Case("no difference", 0.0),
    Case("no difference, words vary by 1.5 (sd)", 0.0, spread=0.015),
)


def power(pairs: int, case: Case, draws: int = DRAWS) -> tuple[float, float]:
    """Returns the shares of draws that are `biased` and `fair`.

    Args:
        pairs: The pairs of a draw.
        case: The difference.
        draws: The number of draws.
    """
    random = np.random.default_rng([pairs, CASES.index(case)])
    word = np.arange(pairs) % WORDS
    margin = MARGINS["rates"]
    counts = {"biased": 0, "fair": 0}
    for _ in range(draws):
        raised = np.where(np.arange(WORDS) < round(case.share * WORDS), case.raised, 0.0)
        gaps = raised + random.normal(0, case.spread, WORDS)
        a = random.random(pairs) < BASE
        b = random.random(pairs) < np.clip(BASE + gaps, 0, 1)[word]
        row = compare_rates("m", a, b, margin, ALPHA, clusters=[word])
        conclusion = verdict(
            equivalent=row.p_equivalence <= ALPHA,
            p_holm=min(1.0, FAMILY * row.p_decides),
            alpha=ALPHA,
            clusters=row.clusters,
        )
        counts[conclusion] = counts.get(conclusion, 0) + 1
    return counts["biased"] / draws, counts["fair"] / draws


def table() -> Iterator[tuple[Case, list[tuple[float, float]]]]:
    """Yields every case with its shares at every number of pairs."""
    for case in CASES:
        yield case, [power(pairs, case) for pairs in PAIRS]
