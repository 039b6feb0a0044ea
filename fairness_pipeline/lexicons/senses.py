"""Decides in which uses a listed word means a person of the group, and which contexts cannot be exchanged word by word.

A mere list of words exchanges `White House` and `went straight home` too. A dimension's `senses` say, in patterns over
the neighbouring words, where a word is exchanged and for what. `docs/pairs.md` reports how often a pair is wrong with
and without them, and why rules decide instead of a tagger.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.foundation.errors import unknown
from fairness_pipeline.foundation.guard import read_once
from fairness_pipeline.foundation.yaml_files import Specification, load
from fairness_pipeline.lexicons.dictionary import is_word
from fairness_pipeline.lexicons.text import fold as folded

CLASSES = "lexicon/word_classes.yaml"
WORD, _CAPITALISED, _NAME = "_", "_CAP", "NAME"
_NEAR = 40
"""The number of characters before a word in which one token of a pattern is searched."""
_PARTS = frozenset(' \t\r\n"“”*~')
_GAP = r"[\s\"“”*~]+"
_INSIDE_A_SENTENCE = r"(?-i:(?<=[a-z0-9,;)'’] )[A-Z][a-z][\w’'-]*)"
_SPECIAL = {
    "ANY": r"\w[\w’'-]*",
    "NUM": r"\d[\w.,]*",
    "CAP": r"(?-i:[A-Z][a-z][\w’'-]*)",
    "^": r"(?:^|[.!?:;…>(\[\"“”*\n/~—-][\s\"“”*]*|@user\s+)",
    "$": r"[\"”’'*_)]*\s*(?:$|[.,;:!?)\]…\n\"“”*/—&|<#~-]|[^\x00-\u2fff])",
}

Classes = Mapping[str, tuple[str, ...]]


class WordClasses(Specification):
    """Lists of words that patterns name in capitals: `data/lexicon/word_classes.yaml`."""

    classes: dict[Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Z][A-Z_]+$")], tuple[str, ...]]
    """Words and phrases, by the name of the class. A final `*` stands for any ending."""


class Use(Specification):
    """A use of some words in which they are exchanged."""

    pairs: tuple[tuple[str, str], ...]
    """A word of side a and its counterpart of side b in this use. Both may be missing from the dimension's `pairs`."""
    where: tuple[str, ...] = ()
    """Patterns, one of which must hold. Without patterns the use is every use."""
    not_where: tuple[str, ...] = ()
    """Patterns, none of which may hold."""
    only: Literal["a", "b"] | None = None
    """The side whose words the use is for, where only one of them has several meanings (`her`, but not `him`)."""


class Senses(Specification):
    """In which uses a dimension's words are exchanged. A word that is not named here is exchanged wherever it occurs.

    A pattern is a row of words around `_`, the listed word: `_ PERSON` is the listed word before a word of the class
    PERSON. `a|b` is either, a final `?` means perhaps, `*` any ending, `ANY` any word, `CAP` a capitalised one, `NUM`
    a number, `^` the beginning and `$` the end of a sentence or clause, `'s` the possessive of the listed word, and
    `_CAP` the listed word if it is capitalised.
    """

    classes: dict[str, tuple[str, ...]] = {}
    """Further classes of words, by a name in capitals."""
    never: tuple[str, ...] = ()
    """Words of the list that stay: they seldom mean a member of the group, or the other group has no such word."""
    uses: tuple[Use, ...] = ()
    """Uses, tried in order. A word that is named here is exchanged in these uses only."""
    not_where: tuple[str, ...] = ()
    """Patterns in which no word is exchanged: names, titles, idioms."""
    names: tuple[Use, ...] = ()
    """Further uses in which a text names the group, though no word is exchanged there."""
    otherwise: Literal["stay", "leave_out"] = "stay"
    """What happens to a word in none of its uses, or in one of `not_where`: it stays as it is, or the whole context is
    left out, because the word may belong to a person whose other words are exchanged."""
    left_out_with: tuple[str, ...] = ()
    """Words and classes. A context that holds one is left out, because it would have to be exchanged too. `NAME` is a
    person's name: a first name, a known person, or a capitalised word that is not in CAPITALISED, inside a sentence or
    as its subject."""
    topics: tuple[str, ...] = ()
    """Words and classes that are said of one group alone. A context that holds one is left out, unless it was made of a
    frame and a person, because nobody would write it about the other group."""
    ordinary_words_with: tuple[str, ...] = ()
    """Words that are exchanged only where no other word of the context can be a name: pronouns, which may mean
    somebody whose name no list knows. If there are any, `NAME` in `left_out_with` concerns them alone."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        uses = (*self.uses, *self.names)
        patterns = [*self.not_where, *(pattern for use in uses for pattern in (*use.where, *use.not_where))]
        for pattern in patterns:
            if sum(token in (WORD, _CAPITALISED) for token in pattern.split()) != 1:
                raise ValueError(f"'{pattern}': expected the place of the word once, as {WORD} or {_CAPITALISED}")
        known = {*_SPECIAL, *self.classes, *_shared_classes(), _NAME}
        tokens = {
            word for entry in (*patterns, *self.left_out_with, *self.topics) for word in re.findall(r"[^\s|?]+", entry)
        }
        if others := sorted(word for word in tokens if re.fullmatch(r"[A-Z][A-Z_]+", word) and word not in known):
            raise ValueError(unknown("class of words", others[0], sorted(known)))
        return self

    @property
    def looks_for_names(self) -> bool:
        """Whether names matter, so that a dictionary is needed."""
        return bool(self.ordinary_words_with) or _NAME in self.left_out_with

    def all_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of every use."""
        return tuple(dict.fromkeys(pair for use in self.uses for pair in use.pairs))


class Not(Enum):
    """What happens to a listed word that is not exchanged."""

    STAYS = "stays"
    LEFT_OUT = "left out"


class SenseRules:
    """The compiled rules of a dimension.

    Args:
        senses: The rules.
        exchanged: Every word that may be exchanged. None of them is a reason to leave a context out.
        further: Words that name a group wherever they stand, whatever the rules say.
        fold: Returns the spelling of a word in which lists are compared.

    Examples:
        >>> rules = SenseRules(Senses(uses=[Use(pairs=[("white", "black")], where=["_ man|woman"])]))
        >>> text = "a white man in the white house"
        >>> rules.use(text, 2, 7, "white"), rules.use(text, 19, 24, "white")
        ('black', <Not.STAYS: 'stays'>)
    """

    def __init__(
        self,
        senses: Senses,
        exchanged: Collection[str] = (),
        fold: Callable[[str], str] = str.lower,
        further: Collection[str] = (),
    ) -> None:
        classes = {**_shared_classes(), **senses.classes}
        self._further = frozenset(further)
        self._never = frozenset(map(fold, senses.never))
        self._uses = _by_word(senses.uses, classes, fold)
        self._naming_uses = _by_word(senses.names, classes, fold)
        self._not_where = _Patterns(senses.not_where, classes)
        self._otherwise = Not.LEFT_OUT if senses.otherwise == "leave_out" else Not.STAYS
        exchangeable = {*exchanged} - self._never
        self._companions = _companions(senses.left_out_with, exchangeable, classes)
        self._companions_and_topics = _companions((*senses.left_out_with, *senses.topics), exchangeable, classes)
        self._listed_names = _listed_names(classes) if _NAME in senses.left_out_with else None
        self._names = _Names(classes)
        options = {term: {use.counterpart for use in uses} for term, uses in self._uses.items()}
        self.counterparts = {term: next(iter(words)) for term, words in options.items() if len(words) == 1}
        """The words with the same counterpart in all their uses, and that counterpart."""
        self.among_ordinary_words = frozenset(map(fold, senses.ordinary_words_with))
        """The words that are exchanged among words of the dictionary only."""
        self.decided = self._uses.keys() - self.counterparts
        """The words whose counterpart the use decides."""

    def use(self, text: str, start: int, end: int, term: str) -> str | Not:
        """The counterpart of a listed word at its position (empty if the list decides), or what happens to it
        instead."""
        if term in self._further:
            return ""
        if term in self._never:
            return Not.STAYS
        position = (text, start, end, _previous_word(text, start))
        if self._not_where and self._not_where.hold(*position):
            return self._otherwise
        uses = self._uses.get(term)
        if uses is None:
            return ""
        return next((use.counterpart for use in uses if use.holds(position)), self._otherwise)

    def names(self, text: str, start: int, end: int, term: str) -> bool:
        """Whether a listed word names the group at its position, even if it is unclear how it is exchanged there."""
        if isinstance(self.use(text, start, end, term), str):
            return True
        position = (text, start, end, _previous_word(text, start))
        return any(use.holds(position) for use in self._naming_uses.get(term, ()))

    def may_be_named(self, terms: Iterable[str]) -> bool:
        """Whether one of the exchanged words may mean somebody who is named elsewhere in the text."""
        if not self.among_ordinary_words:
            return self._listed_names is not None
        return not self.among_ordinary_words.isdisjoint(terms)

    def companions(self, texts: pa.Array, named: Sequence[bool], *, topics: bool = True) -> list[str | None]:
        """The first word of each text because of which the text is left out; None if there is none.

        Args:
            texts: The texts.
            named: For each text, whether any name in it is a reason; otherwise only names whose bearer the text
                describes.
            topics: Whether topics are a reason.
        """
        words, names = (
            pc.struct_field(pc.extract_regex(texts, expression), "word").to_pylist()
            if expression
            else [None] * len(texts)
            for expression in (self._companions_and_topics if topics else self._companions, self._listed_names)
        )
        reasons: list[str | None] = []
        for text, word, name, any_name in zip(texts.to_pylist(), words, names, named, strict=True):
            reason: str | None = word or (name if name and (any_name or _identifies_bearer(name, text)) else None)
            remaining = self._names.without_things(text) if any_name and not reason else ""
            if remaining and self._listed_names:
                reason = self._names.first(remaining)
            if remaining and not reason and self.among_ordinary_words:
                reason = self._names.first_unknown(remaining)
            reasons.append(reason or None)
        return reasons


def _identifies_bearer(name: str, text: str) -> bool:
    """Whether a text says who the bearer of a name is: `Karen is my wife`, `Karen, my wife`, `my wife Karen`."""
    bearer, determiner = re.escape(name), r"(?:an?|the|my|his|her|your|our|their)"
    return (
        re.search(rf"\b{bearer}(?:['’]s|,| is| was) {determiner}\b|\b{determiner} [\w~-]+,? {bearer}\b", text, re.I)
        is not None
    )


_Position = tuple[str, int, int, str]
"""A text, the start and end of a word in it, and the previous word."""


class _WordUse(NamedTuple):
    """A word's counterpart in a use, and the patterns of that use."""

    counterpart: str
    where: "_Patterns"
    not_where: "_Patterns"

    def holds(self, position: _Position) -> bool:
        """Whether the word at a position has this use."""
        return (not self.where or self.where.hold(*position)) and not (
            self.not_where and self.not_where.hold(*position)
        )


def _by_word(uses: Iterable[Use], classes: Classes, fold: Callable[[str], str]) -> dict[str, list[_WordUse]]:
    by_word: dict[str, list[_WordUse]] = {}
    for use in uses:
        where, not_where = _Patterns(use.where, classes), _Patterns(use.not_where, classes)
        for a, b in use.pairs:
            for side, word, counterpart in (("a", a, b), ("b", b, a)):
                if use.only in (None, side):
                    by_word.setdefault(fold(word), []).append(_WordUse(counterpart, where, not_where))
    return by_word


class _Pattern(NamedTuple):
    """The expressions before and after a word; the number of tokens before it; whether the word must be capitalised;
    and the words, if the pattern only asks that one of them comes before."""

    before: str
    after: str
    tokens: int
    capital: bool
    previous: frozenset[str]


class _Patterns:
    """The patterns of one rule, joined into as few expressions as their sides allow."""

    def __init__(self, patterns: Iterable[str], classes: Classes) -> None:
        parsed = [_parsed(pattern, classes) for pattern in patterns]
        self._after = _joined([p.after for p in parsed if not p.before and not p.capital])
        capital = [p.after for p in parsed if not p.before and p.capital]
        self._after_capital = re.compile("") if "" in capital else _joined(capital)
        only_before = [p for p in parsed if p.before and not p.after and not p.capital and not p.previous]
        self._previous = frozenset(word for p in parsed for word in p.previous)
        self._before = _joined([p.before for p in only_before], r"\Z")
        self._near = _NEAR * max((p.tokens for p in only_before), default=0)
        self._around = [
            (re.compile(rf"(?:{p.before})\Z", re.IGNORECASE), _joined([p.after]), p.tokens * _NEAR, p.capital)
            for p in parsed
            if p.before and (p.after or p.capital) and not p.previous
        ]
        self._any = bool(parsed)

    def __bool__(self) -> bool:
        return self._any

    def hold(self, text: str, start: int, end: int, previous: str) -> bool:
        """Whether one of the patterns holds for the word at a position, given its previous word."""
        if self._after and self._after.match(text, end):
            return True
        if previous in self._previous:
            return True
        if self._before and self._before.search(text, max(0, start - self._near), start):
            return True
        capital = text[start].isupper()
        if capital and self._after_capital and self._after_capital.match(text, end):
            return True
        for before, after, near, only_capital in self._around:
            if only_capital and not capital:
                continue
            if (after is None or after.match(text, end)) and before.search(text, max(0, start - near), start):
                return True
        return False


def _joined(expressions: list[str], end: str = "") -> re.Pattern[str] | None:
    """One expression for any of several; None if there are none, or if all are empty."""
    present = [expression for expression in expressions if expression]
    return re.compile(f"(?:{'|'.join(present)}){end}", re.IGNORECASE) if present else None


def _parsed(pattern: str, classes: Classes) -> _Pattern:
    tokens = pattern.split()
    index = next(i for i, token in enumerate(tokens) if token in (WORD, _CAPITALISED))
    before = "".join(_token(token, classes, after=_GAP) for token in tokens[:index])
    after = "".join(_token(token, classes, before=_GAP) for token in tokens[index + 1 :])
    return _Pattern(before, after, index, tokens[index] == _CAPITALISED, _plain_words(tokens, classes))


def _plain_words(tokens: list[str], classes: Classes) -> frozenset[str]:
    """The words of a pattern that only asks that one of them comes before; an empty set for any other pattern."""
    if len(tokens) != 2 or tokens[1] != WORD or tokens[0] in "^$":
        return frozenset()
    words = [word for part in tokens[0].split("|") for word in classes.get(part, (part,))]
    return frozenset(words) if all(re.fullmatch(r"[a-z][a-z'-]*", word) for word in words) else frozenset()


def _previous_word(text: str, start: int) -> str:
    """The word before a position, folded; empty if none comes directly before it."""
    if text[start - 1 : start] not in _PARTS:
        return ""
    words = text[max(0, start - _NEAR) : start].rsplit(None, 1)
    return words[-1].strip("\"“”*~([{<>‘'").lower().replace("’", "'") if words else ""


def _token(token: str, classes: Classes, before: str = "", after: str = "") -> str:
    """The expression of one token of a pattern, with the gap on the side of the listed word."""
    if token in "^$":
        return _SPECIAL[token]
    if token == "'s":
        return r"['’]s(?![\w-])"
    if not re.search(r"\w", token):  # punctuation needs no gap
        return rf"\s*{re.escape(token)}\s*"
    name, optional = token.removesuffix("?"), token.endswith("?")
    if name == "CAP" and after:
        expression = f"{_INSIDE_A_SENTENCE}{after}"
    else:
        words = "|".join(_SPECIAL.get(part) or _words(classes.get(part, (part,))) for part in name.split("|"))
        expression = rf"{before}(?<![\w’'@-])(?:{words})(?![\w-]){after}"
    return f"(?:{expression})?" if optional else expression


def _words(words: Iterable[str]) -> str:
    """An alternation of words, the longest first; `*` is any letters, a space any white space."""
    spelled = [
        re.escape(word).replace("'", "['’]").replace(r"\*", r"[\w’'-]*").replace(r"\ ", r"\s+")
        for word in sorted(words, key=lambda entry: (-len(entry), entry))
    ]
    return f"(?:{'|'.join(spelled)})" if spelled else "(?!)"


def _companions(listed: Iterable[str], exchanged: Collection[str], classes: Classes) -> str | None:
    """An RE2 expression for the listed words."""
    words = [
        word for entry in listed if entry != _NAME for word in classes.get(entry, (entry,)) if word not in exchanged
    ]
    return _whole_word(f"(?i:{_words(words)})") if words else None


def _listed_names(classes: Classes) -> str:
    """An RE2 expression for the first names and the known persons."""
    names = [name for class_name in ("KNOWN_PERSON", "GIVEN_NAME") for name in classes[class_name]]
    return _whole_word(f"(?i:{_words(names)})|{_words(classes['NAME_OR_WORD'])}")


def _whole_word(expression: str) -> str:
    return rf"(?:^|\W)(?P<word>{expression})(?:['’]?s)?(?:[^\w-]|--|$)"


class _Names:
    """Finds words that may be somebody's name: capitalised words that are not ordinary, inside a sentence or as its
    subject; and words that are in no dictionary."""

    _INSIDE = re.compile(r"(?<!@user)(?<=[a-z0-9,;)'’]) ([A-Z][a-z]+)")
    _SUBJECT = re.compile(r"(?:^|[.!?:>…] )([A-Z][a-z]+)(?:['’](s)\b|\s+([a-z']+))")
    _WORD = re.compile(r"(?<![\w@#])(?!_)[^\W\d_]\w*(?:['’-]\w+)*")
    _NO_PERSON = re.compile(r"\b(?:[Ii]n|[Aa]t|[Aa]n?|[Tt]he) [A-Z][\w-]+(?!['’]|\w)")
    """A place, a thing or a title: `in Guelph`, `a Bentley`, `The Mask`."""
    _CASED = re.compile(r"\b[A-Z][a-z]")

    def __init__(self, classes: Classes) -> None:
        ordinary = classes["CAPITALISED"]
        self._words = frozenset(word for word in ordinary if "*" not in word)
        self._beginnings = tuple(word.removesuffix("*") for word in ordinary if "*" in word)
        self._verbs = frozenset(classes["NOT_NOUN"])
        self._ordinary = lru_cache(1 << 16)(self._is_ordinary)

    def without_things(self, text: str) -> str:
        """A text without the capitalised words that are places, things or titles."""
        return self._NO_PERSON.sub(" ", text)

    def first(self, text: str) -> str | None:
        """The first capitalised name in a text; None if there is none. At the beginning of a sentence a word of the
        dictionary is a name only in the possessive."""
        for name in self._INSIDE.findall(text):
            if not self._ordinary(name):
                return str(name)
        for name, possessive, verb in self._SUBJECT.findall(text):
            subject = (verb in self._verbs or verb.endswith("ed")) and not is_word(name.lower())
            if (possessive or subject) and not self._ordinary(name):
                return str(name)
        return None

    def first_unknown(self, text: str) -> str | None:
        """The first word that is in no dictionary and may be a name; None if there is none.

        A text with capitals capitalises names too: a word in lower case is then a term or a typing error.
        Abbreviations, hashtags, and words with a digit are not names of persons.
        """
        cased = self._CASED.search(text) is not None
        for word in self._WORD.findall(text):
            if cased and (word.islower() or (len(word) < 6 and word.split("'")[0].isupper())):
                continue
            plain = folded(word)
            if (
                not is_word(plain)
                and not self._ordinary(word[0].upper() + plain[1:])
                and not any(map(str.isdigit, word))
            ):
                return plain
        return None

    def _is_ordinary(self, word: str) -> bool:
        return word in self._words or word.startswith(self._beginnings)


def _shared_classes() -> Classes:
    return read_once(CLASSES, _classes)


def _classes(path: Path) -> Classes:
    return load(WordClasses, path).classes
