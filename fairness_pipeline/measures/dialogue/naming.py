"""Names the other group: does an answer name the group that its context does not name?

A method that makes the words of both groups alike closes every gap, and answers a question about a man with "that
woman". Liu 2022 (chapter 3) asks a debiased model to "reserve unbiased gender features"; this measures it. Answers that
name nobody are not counted: they name nobody wrongly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.dimensions import ExchangedWords
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.measure import SIDES, Outcome
from fairness_pipeline.statistics.clusters import cautious_mean
from fairness_pipeline.statistics.comparison import Clusterings, Comparison, bare_row
from fairness_pipeline.statistics.intervals import Estimate, count_difference, finite
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
only in 5% (of contexts that name men) and 13% (women), and in 19% of one corpus' answers, as other people come up; who
names a group at random does it in half of the answers."""
FEWEST = 30
"""Answers of each side that name a group, from which on their share says something."""


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
    """The group that each text names: a, b, both or None. Each distinct text is read once."""
    encoded = texts.combine_chunks().dictionary_encode()
    found: Iterator[str | None] = (swapper.side_of(own.matches) for own in swapper.meant(encoded.dictionary))
    of_distinct = list(found)
    return [of_distinct[place] for place in encoded.indices.to_pylist()]


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
    of_side = [told.filter(pc.equal(told["side"], side)) for side in "ab"]
    counts = [own.num_rows for own in of_side]
    values = [100 * (_wrong(own) or 0.0) for own in of_side]
    worse = int(values[1] > values[0])
    row = replace(
        bare_row(NAMES_OTHER, "percent"),
        n=sum(counts),
        value_a=values[0],
        value_b=values[1],
        difference=-values[1] if worse else values[0],
        margin=MARGIN,
        paired_test="t of the share",
    )
    if not all(counts):
        return replace(row, note=f"{_said(counts)} name a group")
    estimates = [_share(own, clusters) for own in of_side]
    low, high = (min(100.0, max(0.0, bound)) for bound in estimates[worse].interval(0.95))
    p = min(1.0, 2 * min(own.p_below(MARGIN) for own in estimates))
    p_fair = max(own.p_above(MARGIN) for own in estimates)
    number = min((len(np.unique(own[told["pair_id"].to_numpy()])) for own in clusters), default=None)
    few = min(counts) < FEWEST
    said = verdict(equivalent=p_fair <= alpha, p_holm=p, alpha=alpha, clusters=number)
    return replace(
        row,
        ci_low=finite(-high if worse else low),
        ci_high=finite(-low if worse else high),
        p_holm=p,
        p_bh=p,
        p_paired=p,
        p_equivalence=p_fair,
        p_clusters=p if clusters else None,
        clusters=number,
        verdict="inconclusive" if few else said,
        note=f"{_said(counts)} name a group; {FEWEST} of each tell something" if few else "",
    )


def _wrong(told: pa.Table) -> float | None:
    """The share of answers that name the other group only; None without answers."""
    return pc.mean(pc.equal(told["names"], OTHER)).as_py()


def _share(told: pa.Table, clusters: Clusterings) -> Estimate:
    """The share of the answers that name the other group only, in percent."""
    other = np.asarray(pc.equal(told["names"], OTHER)).astype(float)
    places = told["pair_id"].to_numpy()
    over_answers = count_difference(other, np.zeros(len(other)))
    return cautious_mean(other, [own[places] for own in clusters], over_answers).scaled(100)


def _said(counts: Sequence[int]) -> str:
    return " and ".join(f"{count:,}" for count in counts) + " answers to the two sides"


def naming_changes(before: pa.Table, after: pa.Table) -> dict[str, float | None]:
    """What a method did to the names, in shares: of the answers of both models that name a group, how many name the
    other one only (the mean of both sides); and how many name nobody where the base's answer named a group.

    Args:
        before: The base's names, as `NAMED_GROUPS`.
        after: The debiased model's, of the same pairs.
    """
    joined = before.join(after, ["pair_id", "side"], right_suffix="_after", join_type="inner")
    named = joined.filter(pc.not_equal(joined["names"], NOBODY))
    silent = pc.mean(pc.equal(named["names_after"], NOBODY)).as_py()
    return {"names_other_before": _of_both(before), "names_other_after": _of_both(after), "names_nobody_now": silent}


def _of_both(named: pa.Table) -> float | None:
    """The mean over the sides that name a group."""
    told = named.filter(pc.not_equal(named["names"], NOBODY))
    shares = [share for side in "ab" if (share := _wrong(told.filter(pc.equal(told["side"], side)))) is not None]
    return sum(shares) / len(shares) if shares else None
