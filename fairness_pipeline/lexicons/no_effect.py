"""Changes contexts in ways that should have no effect: another word of the same group, and another wording.

Such changes show how much a model's answers vary without a change of group: the baseline for a change of group.
"""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS
from fairness_pipeline.lexicons.dimensions import InterchangeableWords, Side
from fairness_pipeline.lexicons.matching import TermMatcher
from fairness_pipeline.lexicons.swapping import replaced
from fairness_pipeline.lexicons.text import fold

GROUP, SAME_GROUP, REWORDING = "group", "same_group", "rewording"

NO_EFFECT_CONTEXTS = schema(
    **fields(CONTEXT_PAIRS, "pair_id"),
    **fields(CONTEXTS, "side", "context"),
    change=(pa.string(), "same_group (another word of the same group) or rewording"),
    changed=(pa.string(), "the context after the change"),
)
"""One of a pair's contexts, and the same context after a change that keeps the group; one row per pair and change."""

MOST = 2000
"""The maximum number of pairs that are changed: enough for a difference of one point in similarity."""

_CONTRACTIONS = {
    "i am": "I'm", "i have": "I've", "i will": "I'll", "i would": "I'd", "do not": "don't", "does not": "doesn't",
    "did not": "didn't", "is not": "isn't", "are not": "aren't", "was not": "wasn't", "cannot": "can't",
    "could not": "couldn't", "would not": "wouldn't", "will not": "won't", "have not": "haven't", "it is": "it's",
    "that is": "that's", "we are": "we're", "they are": "they're", "you are": "you're", "there is": "there's",
    "what is": "what's", "let us": "let's",
}  # fmt: skip
_EXPANSIONS = {short.lower(): re.sub("^i ", "I ", long) for long, short in _CONTRACTIONS.items() if short != "I'd"}
_REWORDINGS = [
    (re.compile(rf"(?<![\w'’])({'|'.join(map(re.escape, table))})(?![\w'’])", re.IGNORECASE), table)
    for table in (_CONTRACTIONS, _EXPANSIONS)
]
_BEGINNINGS = ("Hi. ", "Hey. ", "OK. ", "One more thing. ")


def make_no_effect(pairs: pa.Table, dimension: InterchangeableWords, *, share: float, seed: int) -> pa.Table:
    """A table of `NO_EFFECT_CONTEXTS` for a share of the pairs.

    A pair whose word has no `interchangeable` one is reworded only.

    Args:
        pairs: A table of `CONTEXT_PAIRS`.
        dimension: Says which words are interchangeable.
        share: The share of the pairs; at most `MOST` are taken.
        seed: The seed of the draws.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> row = {"pair_id": 0, "dialogue_id": "0", "source_side": "b", "context_a": "My uncle did not call.",
        ...        "context_b": "My aunt did not call.", "terms": [{"a": "uncle", "b": "aunt"}]}
        >>> made = make_no_effect(pa.Table.from_pylist([row]), load_dimension("gender").fitting, share=1, seed=1)
        >>> made["change"].to_pylist(), made["changed"].to_pylist()[1]
        (['same_group', 'rewording'], "My aunt didn't call.")
    """
    count = min(MOST, int(np.ceil(share * pairs.num_rows)))
    ranks = np.array([_draw(seed, identity) for identity in pairs["dialogue_id"].to_pylist()], dtype=np.uint64)
    chosen = pairs.take(np.sort(np.argsort(ranks, kind="stable")[:count]))
    interchangeable = _Interchangeable(dimension)
    rows = []
    for pair in chosen.to_pylist():
        # About half of the pairs are changed on side a and half on side b, so that gaps can be compared.
        side: Side = "a" if _draw(seed, f"side\x1f{pair['dialogue_id']}") % 2 else "b"
        context, key = pair[f"context_{side}"], f"{pair['dialogue_id']}\x1f{side}"
        changes = {
            SAME_GROUP: interchangeable.changed(
                context, side, [term[side] for term in pair["terms"]], _draw(seed, key)
            ),
            REWORDING: reworded(context, _draw(seed, key), [term[side] for term in pair["terms"]]),
        }
        rows += [
            {"pair_id": pair["pair_id"], "side": side, "context": context, "change": change, "changed": changed}
            for change, changed in changes.items()
            if changed is not None and changed != context
        ]
    return pa.Table.from_pylist(rows, schema=NO_EFFECT_CONTEXTS)


def reworded(text: str, draw: int, kept: Sequence[str] = ()) -> str:
    """The text in another wording: a contraction made or undone, or else a greeting before it.

    Args:
        text: Any text.
        draw: A number that decides which greeting.
        kept: Words that stay as they are: those that name the group.

    Examples:
        >>> reworded("I'm here.", 0), reworded("Who stole my bike?", 0)
        ('I am here.', 'Hi. Who stole my bike?')
    """
    kept_words = {word for term in kept for word in fold(term).split()}
    for pattern, table in _REWORDINGS:
        match = pattern.search(text.replace("’", "'"))
        if match and not kept_words.intersection(fold(match.group()).split()):
            replacement = table[match.group().lower()]
            if match.group()[0].isupper():
                replacement = replacement[0].upper() + replacement[1:]
            return text[: match.start()] + replacement + text[match.end() :]
    return _BEGINNINGS[draw % len(_BEGINNINGS)] + text


class _Interchangeable:
    """Exchanges a word for another one of the same group."""

    def __init__(self, dimension: InterchangeableWords) -> None:
        counterparts = {fold(a): b for a, b in reversed(dimension.all_pairs("extended", further=True))}
        of_a = [list(words) for words in dimension.interchangeable]
        of_b = [[counterparts[fold(word)] for word in words] for words in of_a]
        self._alternatives = {
            side: {
                fold(word): [alternative for alternative in words if alternative != word]
                for words in word_lists
                for word in words
            }
            for side, word_lists in (("a", of_a), ("b", of_b))
        }

    def changed(self, text: str, side: Side, terms: list[str], draw: int) -> str | None:
        """The text with its word exchanged; None if it has several words, or its word has no alternative."""
        words = {fold(term) for term in terms}
        alternatives = self._alternatives[side].get(next(iter(words))) if len(words) == 1 else None
        if not alternatives:
            return None
        matches = self._matcher(*words).find(text)
        return replaced(text, [(match.start, match.end) for match in matches], alternatives[draw % len(alternatives)])

    @staticmethod
    @cache
    def _matcher(word: str) -> TermMatcher:
        return TermMatcher([word])


def _draw(seed: int, key: str) -> int:
    return int.from_bytes(blake2b(f"no effect\x1f{seed}\x1f{key}".encode(), digest_size=8).digest())


def changed_contexts(contexts: pa.Table) -> pa.Array:
    """The contexts after their changes, each once."""
    return pc.unique(contexts["changed"])
