"""Naming the other group: does an answer name the group that its context does not name?

A method that makes the words of both groups alike closes every gap, and answers a question about a man with "that
woman". Liu 2022 (chapter 3) asks a debiased model to "reserve unbiased gender features"; this measures it. Answers that
name nobody are not counted: they cannot name the wrong group.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.dimensions import ExchangedWords
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.measure import SIDES, Outcome
from fairness_pipeline.statistics.clusters import FEWEST_FOR_FAIR, cautious_mean
from fairness_pipeline.statistics.comparison import Clusterings, Comparison
from fairness_pipeline.statistics.intervals import count_difference, finite
from fairness_pipeline.statistics.verdicts import verdict

NAMES_OTHER = "names_other_group"
"""The row of the significance table."""
OWN, OTHER, BOTH, NOBODY = "own", "other", "both", "nobody"
OUTCOMES = {
    NAMES_OTHER: Outcome(
        "Names the other group",
        "names",
        "of the answers that name a group, {high}% of those to {more} contexts name only the other one, {low}% of "
        "those to {less} contexts",
    )
}
NAMED_GROUPS = schema(
    **fields(SIDES, "pair_id", "side"),
    names=(pa.string(), "the group that the answer names, by a person or a pronoun: own, other, both or nobody"),
)
"""One row per answer to a context that names one group only."""

MARGIN = 25.0
"""The largest share, in percent, of wrong names that does not matter. Human answers name only the other group in 5%
(contexts that name men) and 13% (women), and in 17% in one corpus, because other people come up. Naming a group at
random does so in half of the answers."""
FEWEST = 30
"""The number of answers of each side that must name a group before a verdict can be `fair`."""


def name_groups(pairs: pa.Table, responses: pa.Table, words: ExchangedWords) -> pa.Table:
    """A table of `NAMED_GROUPS`. Pairs with a context that names both groups are left out.

    Args:
        pairs: Columns `pair_id`, `context_a`, `context_b`.
        responses: Columns `pair_id`, `side`, `response`.
        words: The words that name the groups.
    """
    swapper = Swapper(words, pronouns="extended", senses=words.senses is not None, further=True)
    sides = {side: _sides(swapper, pairs[f"context_{side}"]) for side in "ab"}
    unambiguous = np.array(
        [a in ("a", None) and b in ("b", None) for a, b in zip(sides["a"], sides["b"], strict=True)], dtype=bool
    )
    kept = responses.filter(
        pc.is_in(responses["pair_id"], pairs["pair_id"].filter(pa.array(unambiguous)).combine_chunks())
    )
    named = _sides(swapper, kept["response"])
    labels = [
        NOBODY if group is None else BOTH if group == "both" else OWN if group == side else OTHER
        for group, side in zip(named, kept["side"].to_pylist(), strict=True)
    ]
    table = kept.select(["pair_id", "side"]).append_column("names", pa.array(labels, pa.string()))
    return table.sort_by([("pair_id", "ascending"), ("side", "ascending")]).cast(NAMED_GROUPS)


def _sides(swapper: Swapper, texts: pa.ChunkedArray) -> list[str | None]:
    """The group that each text names: a, b, both, or None. Each distinct text is read once."""
    encoded = texts.combine_chunks().dictionary_encode()
    groups = list(swapper.named(encoded.dictionary))
    return [groups[index] for index in encoded.indices.to_pylist()]


def compare_naming(named: pa.Table, alpha: float, clusters: Clusterings = ()) -> Comparison:
    """The row of the significance table.

    Values are shares in percent: of each side's answers that name a group, those that name only the other group.
    `difference` and its interval are those of the side with the larger share, negated if that is side b, because a
    model that exchanges the groups has no difference between the sides. `biased`: the share of one side is shown to be
    above `MARGIN` (p is twice the smaller p, as there are two sides). `fair`: both are shown to be below. The row is
    not part of Holm's family.

    Args:
        named: As `NAMED_GROUPS`.
        alpha: The level.
        clusters: How pairs move together: a number per pair id.

    Examples:
        >>> rows = [{"pair_id": n, "side": s, "names": "other"} for n in range(50) for s in "ab"]
        >>> found = compare_naming(pa.Table.from_pylist(rows, schema=NAMED_GROUPS), 0.05)
        >>> found.value_a, found.value_b, found.verdict
        (100.0, 100.0, 'biased')
    """
    naming = named.filter(pc.not_equal(named["names"], NOBODY))
    sides = [_Side.of(naming.filter(pc.equal(naming["side"], letter)), clusters) for letter in "ab"]
    worse = int(sides[1].share > sides[0].share)
    sign = -1.0 if worse else 1.0
    counts = [side.answers for side in sides]
    row = Comparison(
        measure=NAMES_OTHER,
        unit="percent",
        n=len(pc.unique(naming["pair_id"])),
        value_a=sides[0].share,
        value_b=sides[1].share,
        difference=sign * sides[worse].share,
        margin=MARGIN,
        paired_test="t of the share",
    )
    if not row.n:
        return replace(row, note="no answer names a group")
    low, high = sorted(sign * bound for bound in sides[worse].interval)
    p, p_fair = min(1.0, 2 * min(side.p_above for side in sides)), max(side.p_below for side in sides)
    word_count = sides[worse].words
    few = min(counts) < FEWEST
    fewest_words = None if word_count is None else min(side.words or 0 for side in sides)
    equivalent = p_fair <= alpha and not few and (fewest_words is None or fewest_words >= FEWEST_FOR_FAIR)
    return replace(
        row,
        ci_low=finite(low),
        ci_high=finite(high),
        p_holm=p,
        p_bh=p,
        p_paired=p,
        p_equivalence=p_fair,
        p_clusters=p if clusters else None,
        clusters=word_count,
        verdict=verdict(equivalent=equivalent, p_holm=p, alpha=alpha, clusters=word_count),
        note=f"{' and '.join(f'{count:,}' for count in counts)} answers to the two sides name a group; fair needs "
        f"{FEWEST} of each"
        if few
        else "",
    )


class _Side(NamedTuple):
    """The answers to a side that name a group.

    Attributes:
        answers: Their number.
        share: The share that names the other group only, in percent.
        interval: Its 95% interval.
        p_above: The p of the hypothesis that it is at most `MARGIN`.
        p_below: The p of the hypothesis that it is at least `MARGIN`.
        words: The number of exchanged words that they are about; None if pairs are not clustered.
    """

    answers: int
    share: float
    interval: tuple[float, float]
    p_above: float
    p_below: float
    words: int | None

    @classmethod
    def of(cls, naming: pa.Table, clusters: Clusterings) -> "_Side":
        """Reads a side's rows of `NAMED_GROUPS`.

        Few words that differ much make a small share look more certain than it is. The error that decides whether a
        share is below the margin is therefore that of a share as large as the margin, multiplied by what words add to
        the error of this share.
        """
        if not naming.num_rows:
            return cls(0, 0.0, (0.0, 100.0), 1.0, 1.0, 0 if clusters else None)
        names_other, pair_ids = np.asarray(pc.equal(naming["names"], OTHER)).astype(float), naming["pair_id"].to_numpy()
        clusterings = [clustering[pair_ids] for clustering in clusters]
        over_answers = count_difference(names_other, np.zeros(len(names_other)))
        estimate = cautious_mean(names_other, clusterings, over_answers)
        at_margin = (
            math.sqrt(MARGIN / 100 * (1 - MARGIN / 100) / len(names_other)) * estimate.error / over_answers.error
        )
        cautious = estimate._replace(error=max(estimate.error, at_margin)).scaled(100)
        estimate = estimate.scaled(100)
        low, high = (min(100.0, max(0.0, bound)) for bound in estimate.interval(0.95))
        words = min((len(np.unique(clustering)) for clustering in clusterings), default=None)
        return cls(
            len(names_other),
            100 * float(names_other.mean()),
            (low, high),
            estimate.p_below(MARGIN),
            cautious.p_above(MARGIN),
            words,
        )


def naming_changes(before: pa.Table, after: pa.Table) -> dict[str, float | None]:
    """The effect of a method on naming, in shares: of each model's answers that name a group, those that name only the
    other one (on the side with more); and those that name nobody where the base's answer named a group.

    Args:
        before: The base's names, as `NAMED_GROUPS`.
        after: The debiased model's, of the same pairs.
    """
    joined = before.join(after, ["pair_id", "side"], right_suffix="_after", join_type="inner")
    named = joined.filter(pc.not_equal(joined["names"], NOBODY))
    silent = pc.mean(pc.equal(named["names_after"], NOBODY)).as_py()
    return {
        "names_other_before": _larger_share(before),
        "names_other_after": _larger_share(after),
        "names_nobody_now": silent,
    }


def _larger_share(named: pa.Table) -> float | None:
    """The larger of both sides' shares; None where nobody is named."""
    row = compare_naming(named, 0.05)
    return max(row.value_a, row.value_b) / 100 if row.n else None
