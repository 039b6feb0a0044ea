"""From dialogues to parallel context pairs (Liu et al. 2020, section 2.3), with figures on their quality."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.collector import collector_paused
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.lexicons.dimensions import Dimension, Side
from fairness_pipeline.lexicons.matching import TermMatcher
from fairness_pipeline.lexicons.swapping import PronounRule, Swapper

CONTEXTS = schema(
    dialogue_id=(pa.string(), "a hash of corpus, context and response"),
    context=(pa.string(), "what is said to the model"),
    side=(pa.string(), "a (the dominant group) or b"),
    matches=(
        pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("term", pa.string())])),
        "the dimension's words in the context: where each starts and ends, and which it is",
    ),
)
"""A context's listed words, with the characters at which each starts and ends."""

CONTEXT_PAIRS = schema(
    pair_id=(pa.int64(), "of the pair of contexts, from 0 in each corpus and dimension"),
    dialogue_id=(pa.string(), "a hash of corpus, context and response"),
    source_side=(pa.string(), "the side whose words the original context holds"),
    context_a=(pa.string(), "the context with the words of side a"),
    context_b=(pa.string(), "the context with the words of side b"),
    terms=(
        pa.list_(pa.struct([("a", pa.string()), ("b", pa.string())])),
        "the words that were exchanged, as both sides have them",
    ),
)
_BATCH = 20_000


class PairSettings(Specification):
    """How context pairs are made."""

    maximum: Positive = 300_000
    """The maximum number of pairs per corpus and dimension. The papers use 300,000."""
    both_sides: Literal["drop", "swap"] = "drop"
    """What to do with a context that names both groups: leave it out, or swap both ways at once."""
    pronouns: Literal["published", "extended"] = "extended"
    """`extended` adds the pronouns that the published list lacks (him, himself, hers). `published` keeps to the
    list."""
    articles: Literal["adapt", "keep"] = "adapt"
    """Whether `a` and `an` are adapted to the next word."""


class Contexts(NamedTuple):
    """A table of `CONTEXTS`, and how many contexts were examined and left out before matching."""

    table: pa.Table
    figures: dict[str, Any]


class ContextPairs(NamedTuple):
    """A table of `CONTEXT_PAIRS`, and the figures on the quality of the pairs."""

    table: pa.Table
    figures: dict[str, Any]


@collector_paused()
def find_contexts(dialogues: pa.Table, swapper: Swapper, progress: Progress | None = None) -> Contexts:
    """The distinct contexts of the `audit` split that hold at least one listed word.

    A context that a model may have seen in training is left out too: it occurs, word for word, in another split. Short
    tweets recur in threads that are otherwise unrelated.

    Args:
        dialogues: Columns `dialogue_id`, `context` and `split`.
        swapper: Recognises the words.
        progress: Receives the number of contexts examined so far.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> rows = {"dialogue_id": ["1", "2"], "context": ["she left", "it rains"], "split": ["audit", "audit"]}
        >>> found = find_contexts(pa.table(rows), Swapper(load_dimension("gender")))
        >>> found.table["context"].to_pylist(), found.table["side"].to_pylist()
        (['she left'], ['b'])
    """
    audit = dialogues.filter(pc.equal(dialogues["split"], "audit")).select(["dialogue_id", "context"])
    others = dialogues.filter(pc.not_equal(dialogues["split"], "audit"))["context"]
    likely = audit.filter(pc.match_substring_regex(audit["context"], swapper.matcher.prefilter()))
    seen = pc.is_in(likely["context"], others.unique())
    distinct = _first_of_each(likely.filter(pc.invert(seen)), ["context"])
    batches = []
    done = 0
    for batch in distinct.to_batches(_BATCH):
        found = list(swapper.find_all(batch["context"]))
        sides = pa.array([side for _, side in found], pa.string())
        matches = _lists([matches for matches, _ in found], CONTEXTS.field("matches").type)
        whole = pa.table([batch["dialogue_id"], batch["context"], sides, matches], CONTEXTS.names)
        batches.append(whole.filter(sides.is_valid()).cast(CONTEXTS))
        done += batch.num_rows
        report(progress, done, distinct.num_rows)
    table = pa.concat_tables(batches) if batches else CONTEXTS.empty_table()
    return Contexts(
        table,
        {
            "audit_dialogues": audit.num_rows,
            "left_out_no_listed_word": audit.num_rows - likely.num_rows + distinct.num_rows - table.num_rows,
            "left_out_also_in_training": pc.sum(seen).as_py() or 0,
            "left_out_same_context_again": likely.num_rows - (pc.sum(seen).as_py() or 0) - distinct.num_rows,
        },
    )


@collector_paused()
def make_pairs(
    contexts: pa.Table,
    dimension: Dimension,
    *,
    maximum: int,
    seed: int,
    both_sides: Literal["drop", "swap"] = "drop",
    pronouns: PronounRule = "published",
    articles: Literal["adapt", "keep"] = "adapt",
    progress: Progress | None = None,
) -> ContextPairs:
    """Parallel context pairs: each context and its counterfactual.

    Args:
        contexts: A table of `CONTEXTS`.
        dimension: The dimension whose words are swapped.
        maximum: The maximum number of pairs. The draw depends on the ids of the dialogues, not on their order.
        seed: The seed of that draw, and of the choice when a word has several counterparts.
        both_sides: What to do with a context that names both groups: leave it out, or swap both ways at once.
        pronouns: `extended` adds the pronouns that the published list lacks.
        articles: Whether `a` and `an` are adapted to the next word, or stay as they are.
        progress: Receives the number of contexts swapped so far.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> rows = {"dialogue_id": ["1", "2"], "context": ["she left", "it rains"], "split": ["audit", "audit"]}
        >>> gender = load_dimension("gender")
        >>> pairs = make_pairs(find_contexts(pa.table(rows), Swapper(gender)).table, gender, maximum=10, seed=0)
        >>> pairs.table.select(["context_a", "context_b"]).to_pylist()
        [{'context_a': 'he left', 'context_b': 'she left'}]
    """
    swapper = Swapper(dimension, pronouns=pronouns, seed=seed, adapt_articles=articles == "adapt")
    both = pc.equal(contexts["side"], "both")
    used = contexts.filter(pc.invert(both)) if both_sides == "drop" else contexts
    batches = []
    done = 0
    for batch in used.to_batches(_BATCH):
        batches.append(_swap_batch(batch, swapper))
        done += batch.num_rows
        report(progress, done, used.num_rows)
    swapped = pa.concat_tables(batches) if batches else _SWAPPED.empty_table()
    unequal = swapped.filter(pc.not_equal(swapped["context_a"], swapped["context_b"]))
    distinct = _first_of_each(unequal, ["context_a", "context_b"])
    kept = _draw(distinct, maximum, seed)
    words = pc.value_counts(pc.struct_field(pc.list_flatten(kept["matches"]), "term")).to_pylist()
    pairs = kept.add_column(0, "pair_id", pa.array(np.arange(kept.num_rows)))
    return ContextPairs(
        pairs.select(CONTEXT_PAIRS.names).cast(CONTEXT_PAIRS).combine_chunks(),
        {
            "contexts_with_a_listed_word": contexts.num_rows,
            "left_out_both_groups": contexts.num_rows - used.num_rows,
            "left_out_same_pair_again": unequal.num_rows - distinct.num_rows,
            "left_out_equal_sides": swapped.num_rows - unequal.num_rows,
            "left_out_beyond_maximum": distinct.num_rows - kept.num_rows,
            "pairs": kept.num_rows,
            "ambiguous_choices": pc.sum(kept["ambiguous"]).as_py() or 0,
            "round_trip_rate": _round_trip_rate(kept, swapper),
            "holds_unlisted_pronoun": _hold_unlisted_pronoun(kept, dimension, pronouns),
            "contexts_by_word": {
                row["values"]: row["counts"] for row in sorted(words, key=lambda row: (-row["counts"], row["values"]))
            },
        },
    )


_SWAPPED = pa.schema(
    {
        **{name: pa.string() for name in ("dialogue_id", "source_side", "context_a", "context_b")},
        "terms": CONTEXT_PAIRS.field("terms").type,
        "matches": CONTEXTS.field("matches").type,
        "ambiguous": pa.int64(),
        "side": pa.string(),
    }
)
"""Context pairs, with the columns that the quality figures count."""

_TRIED = 300
"""The number of pairs on which the round trip is tried."""

_BACK: dict[str, Side | Literal["both"]] = {"a": "b", "b": "a", "both": "both"}


def _swap_batch(contexts: pa.RecordBatch, swapper: Swapper) -> pa.Table:
    keys, texts, sides = (contexts[name].to_pylist() for name in ("dialogue_id", "context", "side"))
    matches = contexts["matches"].flatten().flatten()
    found = list(zip(*(column.to_pylist() for column in matches), strict=True))
    ends = np.cumsum(contexts["matches"].value_lengths().to_numpy()).tolist()
    swaps = [
        swapper.exchange(text, found[start:end], side, key)
        for text, start, end, side, key in zip(texts, [0, *ends[:-1]], ends, sides, keys, strict=True)
    ]
    others = [swap.text for swap in swaps]
    # A context with words of both groups has no side of its own. Its original counts as side a.
    from_b = [side == "b" for side in sides]
    return pa.table(
        {
            "dialogue_id": contexts["dialogue_id"],
            "source_side": ["b" if b else "a" for b in from_b],
            "context_a": [other if b else text for b, text, other in zip(from_b, texts, others, strict=True)],
            "context_b": [text if b else other for b, text, other in zip(from_b, texts, others, strict=True)],
            "terms": _lists([swap.terms for swap in swaps], _SWAPPED.field("terms").type),
            "matches": contexts["matches"],
            "ambiguous": [swap.ambiguous for swap in swaps],
            "side": contexts["side"],
        },
        schema=_SWAPPED,
    )


def _lists(rows: Sequence[Sequence[Any]], kind: pa.ListType) -> pa.ListArray:
    """Lists of tuples, as an array of lists of structs."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    fields = list(kind.value_type)
    columns = list(zip(*(item for row in rows for item in row), strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(arrays, fields=fields))


def _round_trip_rate(pairs: pa.Table, swapper: Swapper) -> float | None:
    """The share of contexts that are restored by swapping back, among at most `_TRIED` evenly spread ones."""
    step = max(1, -(-pairs.num_rows // _TRIED))
    tried = pairs.take(np.arange(0, pairs.num_rows, step)).to_pylist()
    equal = 0
    for row in tried:
        there, here = ("a", "b") if row["source_side"] == "b" else ("b", "a")
        back = swapper.swap(row[f"context_{there}"], _BACK[row["side"]], row["dialogue_id"])
        equal += back.text == row[f"context_{here}"]
    return equal / len(tried) if tried else None


def _first_of_each(table: pa.Table, columns: list[str]) -> pa.Table:
    """The first of the rows that are equal in `columns`, in the table's order."""
    codes = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        encoded = table[column].combine_chunks().dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return table.take(np.sort(first))


def _draw(pairs: pa.Table, maximum: int, seed: int) -> pa.Table:
    """At most `maximum` pairs, drawn by their dialogues' ids and the seed, in the table's order."""
    if pairs.num_rows <= maximum:
        return pairs
    ranks = np.array([_rank(identity, seed) for identity in pairs["dialogue_id"].to_pylist()], dtype=np.uint64)
    return pairs.take(np.sort(np.argsort(ranks, kind="stable")[:maximum]))


def _hold_unlisted_pronoun(pairs: pa.Table, dimension: Dimension, pronouns: PronounRule) -> int:
    """How many contexts hold a pronoun that the dimension knows but that is not among the pairs in use."""
    unlisted = _unlisted_pronouns(dimension, pronouns)
    if unlisted is None or not unlisted.terms:
        return 0
    context = pc.if_else(pc.equal(pairs["source_side"], "b"), pairs["context_b"], pairs["context_a"])
    likely = context.filter(pc.match_substring_regex(context, unlisted.prefilter()))
    return sum(bool(matches) for matches in unlisted.find_all(likely))


def _unlisted_pronouns(dimension: Dimension, pronouns: PronounRule) -> TermMatcher | None:
    """Finds the pronouns that the dimension knows but that are not among the pairs in use."""
    if dimension.pronouns is None or pronouns == "extended":
        return None
    listed = {word for pair in dimension.pairs for word in pair}
    return TermMatcher({word for pair in dimension.pronouns.pairs for word in pair} - listed)


def _rank(identity: str, seed: int) -> int:
    return int.from_bytes(blake2b(f"{seed}\x1f{identity}".encode(), digest_size=8).digest())
