"""From dialogues to parallel context pairs (Liu et al. 2020, section 2.3), with the figures that tell their quality."""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.dimensions import Dimension, Side
from fairness_pipeline.lexicons.matching import TermMatcher
from fairness_pipeline.lexicons.swapping import PronounRule, Swap, Swapper
from fairness_pipeline.progress import Progress, report
from fairness_pipeline.tables import schema

CONTEXTS = schema(
    dialogue_id=pa.string(),
    context=pa.string(),
    side=pa.string(),
    matches=pa.list_(pa.string()),
)
CONTEXT_PAIRS = schema(
    pair_id=pa.int64(),
    dialogue_id=pa.string(),
    source_side=pa.string(),
    context_a=pa.string(),
    context_b=pa.string(),
    terms=pa.list_(pa.struct([("a", pa.string()), ("b", pa.string())])),
)
_BATCH = 50_000


class Contexts(NamedTuple):
    """A table of `CONTEXTS`, and how many contexts were looked at and left out before matching."""

    table: pa.Table
    figures: dict[str, Any]


class ContextPairs(NamedTuple):
    """A table of `CONTEXT_PAIRS`, and the pair-quality figures."""

    table: pa.Table
    figures: dict[str, Any]


def find_contexts(dialogues: pa.Table, swapper: Swapper, progress: Progress | None = None) -> Contexts:
    """The distinct contexts of the `audit` split that hold at least one listed word.

    A context that a model may have trained on (it stands, word for word, in another split) is left out too: short
    tweets recur in threads that have nothing else in common.

    Args:
        dialogues: Columns `dialogue_id`, `context` and `split`.
        swapper: Recognises the words.
        progress: Told how many contexts have been looked at.
    """
    audit = dialogues.filter(pc.equal(dialogues["split"], "audit")).select(["dialogue_id", "context"])
    others = dialogues.filter(pc.not_equal(dialogues["split"], "audit"))["context"]
    unseen = audit.filter(pc.invert(pc.is_in(audit["context"], others.unique())))
    first = unseen.group_by("context", use_threads=False).aggregate([("dialogue_id", "first")])
    hits = first.filter(pc.match_substring_regex(first["context"], swapper.matcher.prefilter()))
    rows: dict[str, list[Any]] = {name: [] for name in CONTEXTS.names}
    done = 0
    for batch in hits.to_batches(_BATCH):
        for identity, context in zip(batch["dialogue_id_first"].to_pylist(), batch["context"].to_pylist(), strict=True):
            found = swapper.find(context)
            if found:
                sides = {side for _, side in found}
                row = (
                    identity,
                    context,
                    "both" if len(sides) == 2 else sides.pop(),
                    [match.term for match, _ in found],
                )
                for name, value in zip(rows, row, strict=True):
                    rows[name].append(value)
        done += batch.num_rows
        report(progress, done, hits.num_rows)
    table = pa.table(rows, schema=CONTEXTS)
    return Contexts(
        table,
        {
            "audit_dialogues": audit.num_rows,
            "left_out_also_in_training": audit.num_rows - unseen.num_rows,
            "left_out_same_context_again": unseen.num_rows - first.num_rows,
            "left_out_no_listed_word": first.num_rows - table.num_rows,
        },
    )


def make_pairs(
    contexts: pa.Table,
    dimension: Dimension,
    *,
    maximum: int,
    seed: int,
    both_sides: Literal["drop", "swap"] = "drop",
    pronouns: PronounRule = "published",
    progress: Progress | None = None,
) -> ContextPairs:
    """Parallel context pairs: each context and its counterfactual.

    Args:
        contexts: A table of `CONTEXTS`.
        dimension: Whose words are swapped.
        maximum: Pairs kept at most; which ones is drawn by their dialogues' ids, whatever the order.
        seed: Of that draw, and of the choices between several counterparts.
        both_sides: What to do with a context that names both groups: leave it out, or swap both ways at once.
        pronouns: `extended` adds the pronouns that the published list lacks.
        progress: Told how many contexts have been swapped.
    """
    swapper = Swapper(dimension, pronouns=pronouns, seed=seed)
    unlisted = _unlisted_pronouns(dimension, pronouns)
    seen: set[tuple[str, str]] = set()
    candidates: list[_Candidate] = []
    left_out: Counter[str] = Counter()
    for done, (identity, context, side, matches) in enumerate(_rows(contexts), start=1):
        if done % 1000 == 0:
            report(progress, done, contexts.num_rows)
        if side == "both" and both_sides == "drop":
            left_out["both_groups"] += 1
            continue
        swap = swapper.swap(context, side, identity)
        # A context with both groups' words has no side of its own: as it stands it is taken for side a.
        source: Side = "b" if side == "b" else "a"
        a, b = (context, swap.text) if source == "a" else (swap.text, context)
        if a == b or (a, b) in seen:
            left_out["same_pair_again" if a != b else "equal_sides"] += 1
            continue
        seen.add((a, b))
        candidates.append(
            _Candidate(
                rank=_rank(identity, seed),
                row={
                    "dialogue_id": identity,
                    "source_side": source,
                    "context_a": a,
                    "context_b": b,
                    "terms": [term._asdict() for term in swap.terms],
                },
                words=matches,
                ambiguous=swap.ambiguous,
                swaps_back=_swaps_back(swapper, swap, side, identity, context),
                unlisted=unlisted is not None and any(True for _ in unlisted.find(context)),
            )
        )
    limit = sorted(candidate.rank for candidate in candidates)[:maximum][-1] if candidates else 0
    kept = [candidate for candidate in candidates if candidate.rank <= limit]
    words = Counter(word for candidate in kept for word in candidate.words)
    rows = [{"pair_id": i, **candidate.row} for i, candidate in enumerate(kept)]
    return ContextPairs(
        pa.Table.from_pylist(rows, schema=CONTEXT_PAIRS),
        {
            "contexts_with_a_listed_word": contexts.num_rows,
            **{f"left_out_{reason}": left_out[reason] for reason in ("both_groups", "same_pair_again", "equal_sides")},
            "left_out_beyond_maximum": len(candidates) - len(kept),
            "pairs": len(kept),
            "ambiguous_choices": sum(candidate.ambiguous for candidate in kept),
            "round_trip_rate": sum(candidate.swaps_back for candidate in kept) / len(kept) if kept else None,
            "holds_unlisted_pronoun": sum(candidate.unlisted for candidate in kept),
            "contexts_by_word": dict(sorted(words.items(), key=lambda item: (-item[1], item[0]))),
        },
    )


class _Candidate(NamedTuple):
    """A pair, the place its draw gives it, and what the quality figures count of it."""

    rank: int
    row: dict[str, Any]
    words: list[str]
    ambiguous: int
    swaps_back: bool
    unlisted: bool


def _rows(contexts: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in contexts.select(CONTEXTS.names).to_batches(_BATCH):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _swaps_back(swapper: Swapper, swap: Swap, side: Side | Literal["both"], key: str, context: str) -> bool:
    back: Side | Literal["both"] = "both" if side == "both" else ("b" if side == "a" else "a")
    return swapper.swap(swap.text, back, key).text == context


def _unlisted_pronouns(dimension: Dimension, pronouns: PronounRule) -> TermMatcher | None:
    """Finds the pronouns that the dimension knows of but whose pairs are not in use."""
    if dimension.pronouns is None or pronouns == "extended":
        return None
    listed = {word for pair in dimension.pairs for word in pair}
    return TermMatcher({word for pair in dimension.pronouns.pairs for word in pair} - listed)


def _rank(identity: str, seed: int) -> int:
    return int.from_bytes(blake2b(f"{seed}\x1f{identity}".encode(), digest_size=8).digest())
