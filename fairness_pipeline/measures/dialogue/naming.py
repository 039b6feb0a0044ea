"""Names the other group: does an answer name the group that its context does not name?

A method that makes the words of both groups alike closes every gap, and answers a question about a man with "that
woman". Liu 2022 (chapter 3) asks a debiased model to "reserve unbiased gender features"; this measures it. Answers that
name nobody are not counted: they name nobody wrongly.
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
from fairness_pipeline.statistics.comparison import Clusterings, Comparison, bare_row
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
"""The largest share, in percent, of wrong names that does not matter. People who answer people name the other group
only in 5% (of contexts that name men) and 13% (women), and in 17% of one corpus' answers, as other people come up; who
names a group at random does it in half of the answers."""
FEWEST = 30
"""Answers of each side that name a group without which nothing is fair."""


def name_groups(pairs: pa.Table, responses: pa.Table, words: ExchangedWords) -> pa.Table:
    """A table of `NAMED_GROUPS`. Pairs with a context that names both groups are left out.

    Args:
        pairs: Columns `pair_id`, `context_a`, `context_b`.
        responses: Columns `pair_id`, `side`, `response`.
        words: The words that name the groups.
    """
    swapper = Swapper(words, pronouns="extended", senses=words.senses is not None, further=True)
    sides = {side: _sides(swapper, pairs[f"context_{side}"]) for side in "ab"}
    alone = np.array(
        [a in ("a", None) and b in ("b", None) for a, b in zip(sides["a"], sides["b"], strict=True)], dtype=bool
    )
    kept = responses.filter(pc.is_in(responses["pair_id"], pairs["pair_id"].filter(pa.array(alone)).combine_chunks()))
    named = _sides(swapper, kept["response"])
    said = [
        NOBODY if group is None else BOTH if group == "both" else OWN if group == side else OTHER
        for group, side in zip(named, kept["side"].to_pylist(), strict=True)
    ]
    table = kept.select(["pair_id", "side"]).append_column("names", pa.array(said, pa.string()))
    return table.sort_by([("pair_id", "ascending"), ("side", "ascending")]).cast(NAMED_GROUPS)


def _sides(swapper: Swapper, texts: pa.ChunkedArray) -> list[str | None]:
    """The group that each text names: a, b, both, or None. Each distinct text is read once."""
    encoded = texts.combine_chunks().dictionary_encode()
    found = list(swapper.named(encoded.dictionary))
    return [found[place] for place in encoded.indices.to_pylist()]


def compare_naming(named: pa.Table, alpha: float, clusters: Clusterings = ()) -> Comparison:
    """The row of the significance table.

    Values are the shares, in percent, of each side's answers that name the other group only, of those that name one.
    `difference` and its interval are those of the side with the larger share, below 0 where that is side b: a model
    that exchanges the groups has no difference of the two. `biased`: the share of one side is shown to be above
    `MARGIN` (p, twice the smaller one, as there are two). `fair`: both are shown to be below. The row stands beside
    Holm's family.

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
    told = named.filter(pc.not_equal(named["names"], NOBODY))
    sides = [_Side.of(told.filter(pc.equal(told["side"], side)), clusters) for side in "ab"]
    worse = int(sides[1].share > sides[0].share)
    sign = -1.0 if worse else 1.0
    counts = [own.answers for own in sides]
    row = replace(
        bare_row(NAMES_OTHER, "percent"),
        n=len(pc.unique(told["pair_id"])),
        value_a=sides[0].share,
        value_b=sides[1].share,
        difference=sign * sides[worse].share,
        margin=MARGIN,
        paired_test="t of the share",
    )
    if not row.n:
        return replace(row, note="no answer names a group")
    low, high = sorted(sign * bound for bound in sides[worse].interval)
    p, p_fair = min(1.0, 2 * min(own.p_above for own in sides)), max(own.p_below for own in sides)
    number = sides[worse].words
    few = min(counts) < FEWEST
    least = None if number is None else min(own.words or 0 for own in sides)
    equivalent = p_fair <= alpha and not few and (least is None or least >= FEWEST_FOR_FAIR)
    return replace(
        row,
        ci_low=finite(low),
        ci_high=finite(high),
        p_holm=p,
        p_bh=p,
        p_paired=p,
        p_equivalence=p_fair,
        p_clusters=p if clusters else None,
        clusters=number,
        verdict=verdict(equivalent=equivalent, p_holm=p, alpha=alpha, clusters=number),
        note=f"{' and '.join(f'{count:,}' for count in counts)} answers to the two sides name a group; fair needs "
        f"{FEWEST} of each"
        if few
        else "",
    )


class _Side(NamedTuple):
    """The answers to a side that name a group.

    Attributes:
        answers: How many there are.
        share: The share that names the other group only, in percent.
        interval: Its 95% interval.
        p_above: The p of the hypothesis that it is at most `MARGIN`.
        p_below: The p of the hypothesis that it is at least `MARGIN`.
        words: How many exchanged words they are about; None where pairs do not move together.
    """

    answers: int
    share: float
    interval: tuple[float, float]
    p_above: float
    p_below: float
    words: int | None

    @classmethod
    def of(cls, told: pa.Table, clusters: Clusterings) -> "_Side":
        """From a side's rows of `NAMED_GROUPS`.

        Few words that differ much make a small share look surer than it is. So the error at the margin, which decides
        whether a share is below it, is that of a share as large as the margin, times what words add to this one's.
        """
        if not told.num_rows:
            return cls(0, 0.0, (0.0, 100.0), 1.0, 1.0, 0 if clusters else None)
        other, places = np.asarray(pc.equal(told["names"], OTHER)).astype(float), told["pair_id"].to_numpy()
        own = [each[places] for each in clusters]
        over_answers = count_difference(other, np.zeros(len(other)))
        found = cautious_mean(other, own, over_answers)
        at_margin = math.sqrt(MARGIN / 100 * (1 - MARGIN / 100) / len(other)) * found.error / over_answers.error
        cautious = found._replace(error=max(found.error, at_margin)).scaled(100)
        found = found.scaled(100)
        low, high = (min(100.0, max(0.0, bound)) for bound in found.interval(0.95))
        words = min((len(np.unique(each)) for each in own), default=None)
        return cls(
            len(other), 100 * float(other.mean()), (low, high), found.p_below(MARGIN), cautious.p_above(MARGIN), words
        )


def naming_changes(before: pa.Table, after: pa.Table) -> dict[str, float | None]:
    """What a method did to the names, in shares: of the answers of both models that name a group, how many name the
    other one only (of the side where they are more); and how many name nobody where the base's answer named a group.

    Args:
        before: The base's names, as `NAMED_GROUPS`.
        after: The debiased model's, of the same pairs.
    """
    joined = before.join(after, ["pair_id", "side"], right_suffix="_after", join_type="inner")
    named = joined.filter(pc.not_equal(joined["names"], NOBODY))
    silent = pc.mean(pc.equal(named["names_after"], NOBODY)).as_py()
    return {"names_other_before": _worse(before), "names_other_after": _worse(after), "names_nobody_now": silent}


def _worse(named: pa.Table) -> float | None:
    """The larger of both sides' shares; None where nobody is named."""
    row = compare_naming(named, 0.05)
    return max(row.value_a, row.value_b) / 100 if row.n else None
