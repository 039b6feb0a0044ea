"""Makes parallel context pairs from dialogues (Liu et al. 2020, section 2.3), with figures on their quality."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.foundation.collector import collector_paused
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.foundation.side_by_side import in_processes, in_threads
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.lexicons.dimensions import Side, Words
from fairness_pipeline.lexicons.matching import TermMatcher
from fairness_pipeline.lexicons.swapping import Meant, PersonSpans, PronounRule, Swapper

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
RULED = schema(
    word=(pa.string(), "a listed word that stays, the word because of which a context is left out, or a person"),
    outcome=(pa.string(), "`stays`, `left out`, or `no counterpart` (of a person who was put into a frame)"),
    contexts=(pa.int64(), "in how many contexts"),
    example=(pa.string(), "the first of them, in part"),
)
"""The effects of the rules of sense: a row for each word, the most frequent ones first."""

_LINES = 100_000
_BATCH = 20_000
_LEAST = 5
"""Fewer batches are searched in one process."""
_ENOUGH = 1000
"""The number of pairs that balancing always leaves."""
_AROUND = 40
"""Characters of an example on either side of a word."""


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
    senses: Literal["rules", "list"] = "rules"
    """`rules` exchanges a word only where it means a person of the group, by the `senses` of the dimension's file.
    `list` exchanges it wherever it occurs, as the papers do. Contexts made of frames and persons always follow the
    rules, and only the person's words are exchanged."""
    one_word: bool = True
    """Whether a pair may exchange one word only (as often as it occurs there). Pairs of several words belong to several
    clusters."""
    no_effect: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.2
    """Share of the pairs whose contexts are asked again with changes that should make no difference: another word of
    the same group, and another wording; 2,000 pairs at most. They show how much any change moves the answers. 0 for
    none."""
    largest_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.08
    """The largest share of a dimension's pairs that may exchange the same word; 1 for any. The share is exceeded where
    fewer than a thousand pairs would be left, and where there are too few words."""


class Contexts(NamedTuple):
    """A table of `CONTEXTS`, how many contexts were examined and left out, and a table of `RULED`."""

    table: pa.Table
    figures: dict[str, Any]
    ruled: pa.Table


class ContextPairs(NamedTuple):
    """A table of `CONTEXT_PAIRS`, and the figures on the quality of the pairs."""

    table: pa.Table
    figures: dict[str, Any]


@collector_paused()
def find_contexts(
    dialogues: pa.Table, swapper: Swapper, progress: Progress | None = None, spans: PersonSpans | None = None
) -> Contexts:
    """The distinct contexts of the `audit` split that hold at least one listed word.

    A context that occurs, word for word, in another split is left out too, because a model may have seen it in
    training. Short tweets recur in threads that are otherwise unrelated.

    Args:
        dialogues: Columns `dialogue_id`, `context` and `split`.
        swapper: Recognises the words.
        progress: Receives the number of contexts examined so far.
        spans: Where a person was put into each context, if contexts were made of frames: words are exchanged there
            only.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> rows = {"dialogue_id": ["1", "2"], "context": ["she left", "it rains"], "split": ["audit", "audit"]}
        >>> contexts = find_contexts(pa.table(rows), Swapper(load_dimension("gender")))
        >>> contexts.table["context"].to_pylist(), contexts.table["side"].to_pylist()
        (['she left'], ['b'])
    """
    audit = dialogues.filter(pc.equal(dialogues["split"], "audit")).select(["dialogue_id", "context"])
    other_splits = dialogues.filter(pc.not_equal(dialogues["split"], "audit"))["context"]
    likely = _matching(audit, swapper.matcher.prefilter()) if spans is None else audit
    seen = pc.is_in(likely["context"], other_splits.unique())
    distinct = _first_of_each(likely.filter(pc.invert(seen)), ["context"])
    batches = []
    done = 0
    ruled = _Ruled()
    parts = distinct.to_batches(_BATCH)
    results = in_processes(partial(_find_in, swapper, spans), parts, _LEAST, _detached)
    for batch, (kept, batch_ruled) in zip(parts, results, strict=True):
        batches.append(kept)
        ruled.add(batch_ruled)
        done += batch.num_rows
        report(progress, done, distinct.num_rows)
    table = pa.concat_tables(batches) if batches else CONTEXTS.empty_table()
    return Contexts(
        table,
        {
            "audit_dialogues": audit.num_rows,
            "left_out_no_listed_word": audit.num_rows
            - likely.num_rows
            + distinct.num_rows
            - table.num_rows
            - ruled.left_out
            - ruled.in_no_use,
            "left_out_also_in_training": pc.sum(seen).as_py() or 0,
            "left_out_same_context_again": likely.num_rows - (pc.sum(seen).as_py() or 0) - distinct.num_rows,
            "left_out_by_rules": ruled.left_out,
            "left_out_no_word_in_a_use": ruled.in_no_use,
        },
        ruled.table(),
    )


def _detached(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch without the table that it is sliced from."""
    return pa.concat_batches([batch])


def _matching(table: pa.Table, pattern: str) -> pa.Table:
    """The rows whose context matches an RE2 pattern."""

    def matching(part: pa.Table) -> pa.Table:
        return part.filter(pc.match_substring_regex(part["context"], pattern))

    parts = (table.slice(start, _LINES) for start in range(0, table.num_rows, _LINES))
    return pa.concat_tables([table.slice(0, 0), *in_threads(matching, parts)])


@collector_paused()
def _find_in(swapper: Swapper, spans: PersonSpans | None, batch: pa.RecordBatch) -> "tuple[pa.Table, _Ruled]":
    """The contexts of a batch that hold a listed word, and the effects of the rules of sense."""
    ruled, decisions = _Ruled(), list(swapper.meant(batch["context"], spans))
    sides = pa.array(
        [None if decision.left_out_by else swapper.side_of(decision.matches) for decision in decisions], pa.string()
    )
    matches = _lists([decision.matches for decision in decisions], CONTEXTS.field("matches").type)
    ruled.note(batch["context"], decisions, spans)
    table = pa.table([batch["dialogue_id"], batch["context"], sides, matches], CONTEXTS.names)
    return table.filter(sides.is_valid()).cast(CONTEXTS), ruled


class _Ruled:
    """Counts the effects of the rules of sense, with an example of each."""

    def __init__(self) -> None:
        self.left_out = self.in_no_use = 0
        self._counts = Counter[tuple[str, str]]()
        self._examples: dict[tuple[str, str], str] = {}

    def note(self, texts: pa.Array, decisions: Sequence[Meant], spans: PersonSpans | None = None) -> None:
        """Counts one batch."""
        for index, decision in enumerate(decisions):
            self.left_out += decision.left_out_by is not None
            events = [("stays", term, start) for start, _, term in decision.stay]
            if spans is None:
                self.in_no_use += bool(decision.stay) and not decision.matches
            elif not decision.matches and not decision.left_out_by:
                text = texts[index].as_py()
                self.in_no_use += 1
                events += [("no counterpart", text[start:end].lower(), start) for start, end in spans.get(text, ())]
            if decision.left_out_by:
                events.append(("left out", decision.left_out_by.lower(), -1))
            for outcome, word, start in events:
                self._counts[outcome, word] += 1
                if (outcome, word) not in self._examples:
                    text = texts[index].as_py()
                    begin = max(0, (start if start >= 0 else text.lower().find(word)) - _AROUND)
                    self._examples[outcome, word] = text[begin : begin + 2 * _AROUND + len(word)]

    def add(self, later: "_Ruled") -> None:
        """Adds the counts of a later batch."""
        self.left_out += later.left_out
        self.in_no_use += later.in_no_use
        self._counts += later._counts
        self._examples = later._examples | self._examples

    def table(self) -> pa.Table:
        """A table of `RULED`."""
        rows = [
            {"word": word, "outcome": outcome, "contexts": count, "example": self._examples[outcome, word]}
            for (outcome, word), count in sorted(self._counts.items(), key=lambda row: (-row[1], row[0]))
        ]
        return pa.Table.from_pylist(rows, schema=RULED)


@collector_paused()
def make_pairs(
    contexts: pa.Table,
    dimension: Words,
    *,
    maximum: int,
    seed: int,
    both_sides: Literal["drop", "swap"] = "drop",
    pronouns: PronounRule = "published",
    articles: Literal["adapt", "keep"] = "adapt",
    senses: Literal["rules", "list"] = "list",
    one_word: bool = False,
    largest_share: float = 1.0,
    further: bool = False,
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
        senses: Whether the dimension's rules of sense decide, as when the contexts were found.
        one_word: Whether pairs that exchange several words are left out.
        largest_share: The largest share of pairs that exchange the same word.
        further: Whether the dimension's further ways to name the groups are exchanged too.
        progress: Receives the number of contexts swapped so far.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> rows = {"dialogue_id": ["1", "2"], "context": ["she left", "it rains"], "split": ["audit", "audit"]}
        >>> gender = load_dimension("gender")
        >>> pairs = make_pairs(find_contexts(pa.table(rows), Swapper(gender)).table, gender, maximum=10, seed=0)
        >>> pairs.table.select(["context_a", "context_b"]).to_pylist()
        [{'context_a': 'he left', 'context_b': 'she left'}]
    """
    swapper = Swapper(
        dimension,
        pronouns=pronouns,
        seed=seed,
        adapt_articles=articles == "adapt",
        senses=senses == "rules",
        further=further,
    )
    both = pc.equal(contexts["side"], "both")
    used = contexts.filter(pc.invert(both)) if both_sides == "drop" else contexts
    batches = []
    done = 0
    parts = used.to_batches(_BATCH)
    results = in_processes(partial(_swap_batch, swapper), parts, _LEAST, _detached)
    for batch, swapped_batch in zip(parts, results, strict=True):
        batches.append(swapped_batch)
        done += batch.num_rows
        report(progress, done, used.num_rows)
    swapped = pa.concat_tables(batches) if batches else _SWAPPED.empty_table()
    unequal = swapped.filter(pc.not_equal(swapped["context_a"], swapped["context_b"]))
    distinct = _first_of_each(unequal, ["context_a", "context_b"])
    words = _words_of(distinct)
    usable = distinct.filter(pa.array(words.single)) if one_word else distinct
    kept = _draw(usable, words.numbers[words.single] if one_word else words.numbers, maximum, largest_share, seed)
    counted = pc.value_counts(pc.struct_field(pc.list_flatten(kept["matches"]), "term")).to_pylist()
    pairs = kept.add_column(0, "pair_id", pa.array(np.arange(kept.num_rows)))
    return ContextPairs(
        pairs.select(CONTEXT_PAIRS.names).cast(CONTEXT_PAIRS).combine_chunks(),
        {
            "contexts_with_a_listed_word": contexts.num_rows,
            "left_out_both_groups": contexts.num_rows - used.num_rows,
            "left_out_same_pair_again": unequal.num_rows - distinct.num_rows,
            "left_out_equal_sides": swapped.num_rows - unequal.num_rows,
            "left_out_several_words": distinct.num_rows - usable.num_rows,
            "left_out_beyond_maximum": usable.num_rows - kept.num_rows,
            "pairs": kept.num_rows,
            "ambiguous_choices": pc.sum(kept["ambiguous"]).as_py() or 0,
            "round_trip_rate": _round_trip_rate(kept, swapper),
            "holds_unlisted_pronoun": _hold_unlisted_pronoun(kept, dimension, pronouns),
            "contexts_by_word": {
                row["values"]: row["counts"] for row in sorted(counted, key=lambda row: (-row["counts"], row["values"]))
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


@collector_paused()
def _swap_batch(swapper: Swapper, contexts: pa.RecordBatch) -> pa.Table:
    keys, texts, sides = (contexts[name].to_pylist() for name in ("dialogue_id", "context", "side"))
    matches = contexts["matches"].flatten().flatten()
    spans = list(zip(*(column.to_pylist() for column in matches), strict=True))
    ends = np.cumsum(contexts["matches"].value_lengths().to_numpy()).tolist()
    swaps = [
        swapper.exchange(text, spans[start:end], side, key)
        for text, start, end, side, key in zip(texts, [0, *ends[:-1]], ends, sides, keys, strict=True)
    ]
    counterfactuals = [swap.text for swap in swaps]
    # A context with words of both groups has no single side. Its original counts as side a.
    from_b = [side == "b" for side in sides]
    return pa.table(
        {
            "dialogue_id": contexts["dialogue_id"],
            "source_side": ["b" if is_b else "a" for is_b in from_b],
            "context_a": [
                counterfactual if is_b else text
                for is_b, text, counterfactual in zip(from_b, texts, counterfactuals, strict=True)
            ],
            "context_b": [
                text if is_b else counterfactual
                for is_b, text, counterfactual in zip(from_b, texts, counterfactuals, strict=True)
            ],
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
    sample = pairs.take(np.arange(0, pairs.num_rows, step)).to_pylist()
    restored_count = 0
    for row in sample:
        swapped_side, source = ("a", "b") if row["source_side"] == "b" else ("b", "a")
        restored = swapper.swap(row[f"context_{swapped_side}"], _BACK[row["side"]], row["dialogue_id"])
        restored_count += restored.text == row[f"context_{source}"]
    return restored_count / len(sample) if sample else None


def _first_of_each(table: pa.Table, columns: list[str]) -> pa.Table:
    """The first of the rows that are equal in `columns`, in the table's order."""
    codes = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        encoded = table[column].combine_chunks().dictionary_encode()
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return table.take(np.sort(first))


class _Words(NamedTuple):
    """The word that each pair exchanges (of several, the rarest).

    Its number on each side, (pairs, 2); and whether it is the only one.
    """

    numbers: np.ndarray
    single: np.ndarray


def _words_of(pairs: pa.Table) -> _Words:
    terms = pairs["terms"].combine_chunks()
    if not len(terms.flatten()):
        return _Words(np.full((pairs.num_rows, 2), -1), np.ones(pairs.num_rows, dtype=bool))
    owners = np.repeat(np.arange(pairs.num_rows), terms.value_lengths().to_numpy())
    sides = [
        np.asarray(pc.utf8_lower(terms.flatten().field(side)).dictionary_encode().indices).astype(np.int64)
        for side in ("a", "b")
    ]
    codes = np.unique(np.stack(sides, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(np.bincount(codes)[codes], kind="stable")[::-1]
    words, single = np.full((pairs.num_rows, 2), -1), np.ones(pairs.num_rows, dtype=bool)
    words[owners[order]] = np.stack(sides, axis=1)[order]  # the last write wins
    np.logical_and.at(single, owners, (np.stack(sides, axis=1) == words[owners]).all(axis=1))
    return _Words(words, single)


def _draw(pairs: pa.Table, words: np.ndarray, maximum: int, largest_share: float, seed: int) -> pa.Table:
    """Draws at most `maximum` pairs, so that no word of either side exceeds the largest share. They keep the table's
    order.

    The dialogues' ids and the seed decide which pairs are drawn.
    """
    ranks = np.array([_rank(identity, seed) for identity in pairs["dialogue_id"].to_pylist()], dtype=np.uint64)
    order = np.argsort(ranks, kind="stable")
    kept = _balanced(words[order], min(maximum, pairs.num_rows), largest_share)
    return pairs if len(kept) == pairs.num_rows else pairs.take(np.sort(order[kept]))


def _balanced(words: np.ndarray, maximum: int, largest_share: float) -> np.ndarray:
    """The first pairs, as many as possible without a word that exceeds the largest share.

    Args:
        words: (pairs, 2) the word that each pair exchanges, by side, in the order in which pairs are taken.
        maximum: The maximum number of pairs.
        largest_share: The largest share of one word. It is raised until `_ENOUGH` pairs, or all there are, can be
            drawn.
    """
    share = largest_share
    while share < 1:
        count = maximum
        while len(kept := _first(words, int(share * count))) < count:
            count = len(kept)
        if count >= min(_ENOUGH, maximum):
            return kept[:count]
        share *= 1.1
    return np.arange(maximum)


def _first(words: np.ndarray, most: int) -> np.ndarray:
    """The pairs that are left if each word of side a, and then each word of side b, keeps its first `most` pairs."""
    kept = np.arange(len(words))
    for side in (0, 1):
        by_word = np.argsort(words[kept, side], kind="stable")
        sorted_words = words[kept, side][by_word]
        begins = np.flatnonzero(np.diff(sorted_words, prepend=-2))
        rank = np.arange(len(kept)) - np.repeat(begins, np.diff([*begins, len(kept)]))
        kept = kept[np.sort(by_word[rank < most])]
    return kept


def _hold_unlisted_pronoun(pairs: pa.Table, dimension: Words, pronouns: PronounRule) -> int:
    """How many contexts hold a pronoun that the dimension knows but that is not among the pairs in use."""
    if dimension.pronouns is None or pronouns == "extended":
        return 0
    listed = {word for pair in dimension.pairs for word in pair}
    unlisted = TermMatcher({word for pair in dimension.pronouns.pairs for word in pair} - listed)
    if not unlisted.terms:
        return 0
    context = pc.if_else(pc.equal(pairs["source_side"], "b"), pairs["context_b"], pairs["context_a"])
    likely = context.filter(pc.match_substring_regex(context, unlisted.prefilter()))
    return sum(bool(matches) for matches in unlisted.find_all(likely))


def _rank(identity: str, seed: int) -> int:
    return int.from_bytes(blake2b(f"{seed}\x1f{identity}".encode(), digest_size=8).digest())
