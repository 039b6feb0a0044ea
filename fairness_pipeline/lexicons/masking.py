"""Masks the words that reveal which group a text names: the neutral reading of an answer."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

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

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> masked(pa.array(["my aunt likes him", "it rains"]), load_dimension("gender").masked).to_pylist()
        ['my _ likes _', 'it rains']
    """
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = whole.dictionary_encode()
    indices, distinct = encoded.indices, encoded.dictionary
    matcher = Swapper(dimension, pronouns="extended", further=True).matcher
    further = [_Cover(words) for words in (_derived(dimension), *_unpaired(dimension))]
    parts = [_of_part(distinct.slice(start, AT_ONCE), matcher, further) for start in range(0, len(distinct), AT_ONCE)]
    covered = pa.concat_arrays(parts) if parts else distinct
    del whole, encoded, distinct, parts  # long texts are most of a partition's memory
    return pa.chunked_array([covered.take(indices)])


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

    Examples:
        >>> without_words(pa.array(["Two Sikhs came to the gurdwara."]), ["Sikh", "gurdwara"]).to_pylist()
        ['Two _ came to the _.']
    """
    covered = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    for inflected in _inflected(words, r"(?<!\w)", r"(?!\w)"):
        covered = _Cover(inflected)(covered)
    return pa.chunked_array([covered])


class _Further(NamedTuple):
    """Words to mask besides the listed ones: an expression, a prefilter that every text with a match fulfils, and
    whether matches lie within single words, hyphens and apostrophes included."""

    pattern: re.Pattern[str]
    prefilter: str
    in_words: bool = True


_WORD = re.compile(r"[\w'’-]+")


class _Cover:
    """Masks the matches of an expression. The result for each piece between two spaces is cached."""

    def __init__(self, further: _Further) -> None:
        self._further = further
        self._of_piece = cache(self._masked)

    def __call__(self, texts: pa.Array) -> pa.Array:
        likely = pc.match_substring_regex(texts, self._further.prefilter, ignore_case=True)
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
    """Finds words without a counterpart that reveal the group, also in the plural or possessive."""
    return _inflected(dimension.unpaired or (), r"(?<![\w'’-])", r"(?![\w-])")


def _inflected(words: Sequence[str], before: str, after: str) -> Iterator[_Further]:
    """Finds words, also in the plural or possessive; phrases come first.

    Args:
        words: Words and phrases.
        before: The condition on what stands before a word, as an expression of Python.
        after: The condition on what stands after it.
    """
    for in_words in (False, True):
        chosen = sorted((word for word in words if bool(_WORD.fullmatch(word)) is in_words), key=len, reverse=True)
        either = [re.escape(word).replace("'", "['’]") for word in chosen]
        if chosen:
            ending = "(?:s|es|['’]s?)?"
            pattern = re.compile(f"{before}(?:{'|'.join(either)}){ending}{after}", re.IGNORECASE)
            yield _Further(pattern, rf"{_at_a_start(either)}{ending}(?:\W|$)", in_words)


def _at_a_start(expressions: Sequence[str]) -> str:
    """An RE2 expression for words that begin here. RE2's `\\b` knows ASCII letters only."""
    plain = "|".join(expression for expression in expressions if _IS_ASCII.match(expression))
    others = "|".join(expression for expression in expressions if not _IS_ASCII.match(expression))
    return f"(?:{'|'.join(filter(None, (plain and rf'{_START}(?:{plain})', others)))})"


_START, _IS_ASCII = r"\b", re.compile("[A-Za-z0-9_]")
_ENDINGS = "es|s|ity|ness|ism"
_END = "(?:[^a-zA-Z0-9_-]|$)"
"""Where a word may end, for RE2."""
_SHORTEST = 3
"""Derivatives are searched only for words of at least this many letters."""


def _derived(dimension: MaskedWords) -> _Further:
    """Finds words that are derived from a listed word or compounded with it."""
    listed = {word.lower() for pair in dimension.all_pairs("extended") for word in pair} | _revealing_words(dimension)
    if dimension.names_the_group:  # either word of `anglo american` alone names the group
        listed |= {part for word in listed for part in re.split(r"[ -]", word)}
    single = sorted((word for word in listed if word.isalpha() and len(word) >= _SHORTEST), key=len, reverse=True)
    words = "|".join(single) or "(?!)"
    bare = "?" if dimension.names_the_group else ""
    compound = rf"(?:\w+-)+(?:{words})(?:{_ENDINGS})?|(?:{words})(?:{_ENDINGS})?(?:-\w+)+"
    pattern = re.compile(rf"(?<![\w'’-])(?:{compound}|(?:{words})(?:{_ENDINGS}){bare})(?![\w-])", re.IGNORECASE)
    start = _at_a_start(single) if single else ""
    prefilter = rf"{start}(?:(?:{_ENDINGS})?-|(?:{_ENDINGS}){bare}{_END})|-(?:{words})(?:{_ENDINGS})?{_END}"
    return _Further(pattern, prefilter if single else "$^")


def _revealing_words(dimension: MaskedWords) -> set[str]:
    """The words in which the two phrases of a further way to name the groups differ: each reveals the group."""
    words: set[str] = set()
    for a, b in dimension.further:
        of_a, of_b = (set(re.findall(r"[^\W\d_]{3,}", phrase.lower())) for phrase in (a, b))
        words |= of_a ^ of_b
    return words - {"with", "from", "the"}


def _covered(text: str, matches: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, _ in matches:
        pieces += text[position:start], MASK
        position = end
    return "".join([*pieces, text[position:]])
