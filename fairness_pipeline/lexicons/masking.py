"""Texts that do not reveal which group is named: the neutral reading of an answer."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.lexicons.matching import AT_ONCE, TermMatcher
from fairness_pipeline.lexicons.swapping import Swapper

MASK = "_"
"""The mark that replaces a listed word. Scorers ignore it."""


def masked(texts: pa.Array | pa.ChunkedArray, dimension: MaskedWords) -> pa.ChunkedArray:
    """The texts with `MASK` in place of every listed word of either group, including pronouns that the list lacks and
    further ways to name the groups.

    Plurals and compounds of single words that the list lacks are masked too (`queers`, `homosexuality`, `gay-owned`).
    The last result is cached, because each measure of a partition masks the same answers.

    Args:
        texts: Any texts.
        dimension: The words that are masked.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> masked(pa.array(["my aunt likes him", "it rains"]), load_dimension("gender").masked).to_pylist()
        ['my _ likes _', 'it rains']
    """
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    digests = [None if part is None else blake2b(part, digest_size=16).digest() for part in whole.buffers()]
    key = str(whole.type), whole.offset, len(whole), dimension, *digests
    if _last.get("key") != key:
        _last.clear()  # first, so that only one is held at a time
        _last.update(key=key, masked=_masked(whole, dimension))
    return pa.chunked_array([_last["masked"]])


_last: dict[str, Any] = {}


def _masked(whole: pa.Array, dimension: MaskedWords) -> pa.Array:
    encoded = whole.dictionary_encode()
    indices, distinct = encoded.indices, encoded.dictionary
    matcher = Swapper(dimension, pronouns="extended", further=True).matcher
    further = [_Cover(words) for words in (_derived(dimension), *_unpaired(dimension))]
    parts = [_of_part(distinct.slice(start, AT_ONCE), matcher, further) for start in range(0, len(distinct), AT_ONCE)]
    covered = pa.concat_arrays(parts) if parts else distinct
    del encoded, distinct, parts  # long texts are most of a partition's memory
    return covered.take(indices)


def _of_part(texts: pa.Array, matcher: TermMatcher, further: "Sequence[_Cover]") -> pa.Array:
    likely = pc.match_substring_regex(texts, matcher.prefilter())
    candidates = texts.filter(likely)
    matched = zip(candidates.to_pylist(), matcher.find_all(candidates), strict=True)
    covered = pa.array([_covered(text, matches) if matches else text for text, matches in matched], pa.string())
    texts = pc.replace_with_mask(texts, likely, covered)
    for cover in further:
        texts = cover(texts)
    return texts


def without_words(texts: pa.Array | pa.ChunkedArray, words: Sequence[str]) -> pa.ChunkedArray:
    """The texts with `MASK` in place of every given word, also in the plural or possessive.

    Args:
        texts: Any texts.
        words: Words and phrases.

    Examples:
        >>> without_words(pa.array(["Two Sikhs came to the gurdwara."]), ["Sikh", "gurdwara"]).to_pylist()
        ['Two _ came to the _.']
    """
    longest_first = sorted((re.escape(word).replace("'", "['’]") for word in words), key=len, reverse=True)
    pattern = rf"(?i)\b(?:{'|'.join(longest_first)})(?:s|es|['’]s?)?\b"
    covered = pc.replace_substring_regex(texts, pattern, MASK) if words else texts
    return covered if isinstance(covered, pa.ChunkedArray) else pa.chunked_array([covered])


class _Further(NamedTuple):
    """What is masked besides listed words: an expression, one that all texts match in which it finds something, and
    whether it finds parts of single words only, hyphens and apostrophes included."""

    pattern: re.Pattern[str]
    likely: str
    in_words: bool = True


_WORD = re.compile(r"[\w'’-]+")


class _Cover:
    """Masks what an expression finds in texts. It remembers what becomes of a piece between two spaces."""

    def __init__(self, further: _Further) -> None:
        self._further = further
        self._of_piece = cache(self._masked)

    def __call__(self, texts: pa.Array) -> pa.Array:
        likely = pc.match_substring_regex(texts, self._further.likely, ignore_case=True)
        candidates = texts.filter(likely)
        if self._further.in_words:
            pieces = pc.split_pattern(candidates, " ")
            flat = pieces.flatten().dictionary_encode()
            covered = pa.array(map(self._of_piece, flat.dictionary.to_pylist()), pa.string()).take(flat.indices)
            masked = pc.binary_join(pa.ListArray.from_arrays(pieces.offsets, covered), " ")
        else:
            masked = pa.array(map(self._masked, candidates.to_pylist()), pa.string())
        return pc.replace_with_mask(texts, likely, masked)

    def _masked(self, text: str) -> str:
        pattern = self._further.pattern
        if not self._further.in_words:
            return pattern.sub(MASK, text)
        return _WORD.sub(lambda word: pattern.sub(MASK, word.group()), text)


def _unpaired(dimension: MaskedWords) -> Iterator[_Further]:
    """Finds words that tell the group without a counterpart, in the plural or possessive; phrases come first."""
    words = dimension.unpaired or ()
    for in_words in (False, True):
        chosen = [word for word in words if bool(_WORD.fullmatch(word)) is in_words]
        longest_first = sorted(chosen, key=len, reverse=True)
        either = "|".join(re.escape(word).replace("'", "['’]") for word in longest_first)
        if chosen:
            found = rf"(?:{either})(?:s|es|['’]s?)?"
            pattern = re.compile(rf"(?<![\w'’-]){found}(?![\w-])", re.IGNORECASE)
            yield _Further(pattern, rf"\b{found}{_END}", in_words)


_ENDINGS = "es|s|ity|ness|ism"
_END = "(?:[^a-zA-Z0-9_-]|$)"
"""Where a word may end, for RE2."""
_SHORTEST = 3
"""Derivatives are searched only for words of at least this many letters."""


def _derived(dimension: MaskedWords) -> _Further:
    """Finds words that are derived from a listed word or compounded with it."""
    listed = {word.lower() for pair in dimension.all_pairs("extended") for word in pair} | _telling(dimension)
    if dimension.names_the_group:  # either word of `anglo american` alone names the group
        listed |= {part for word in listed for part in re.split(r"[ -]", word)}
    single = sorted(
        (re.escape(word) for word in listed if word.isalpha() and len(word) >= _SHORTEST), key=len, reverse=True
    )
    words = "|".join(single) or "(?!)"
    bare = "?" if dimension.names_the_group else ""
    compound = rf"(?:\w+-)+(?:{words})(?:{_ENDINGS})?|(?:{words})(?:{_ENDINGS})?(?:-\w+)+"
    pattern = re.compile(rf"(?<![\w'’-])(?:{compound}|(?:{words})(?:{_ENDINGS}){bare})(?![\w-])", re.IGNORECASE)
    likely = rf"\b(?:{words})(?:(?:{_ENDINGS})?-|(?:{_ENDINGS}){bare}{_END})|-(?:{words})(?:{_ENDINGS})?{_END}"
    return _Further(pattern, likely if single else "$^")


def _telling(dimension: MaskedWords) -> set[str]:
    """The words in which the two phrases of a further way to name the groups differ: either of them tells the group."""
    found: set[str] = set()
    for a, b in dimension.further:
        of_a, of_b = (set(re.findall(r"[^\W\d_]{3,}", phrase.lower())) for phrase in (a, b))
        found |= of_a ^ of_b
    return found - {"with", "from", "the"}


def _covered(text: str, matches: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, _ in matches:
        pieces += text[position:start], MASK
        position = end
    return "".join([*pieces, text[position:]])
