"""VADER's compound scores of many texts (Hutto and Gilbert 2014), two to three times as fast as its library.

The library applies all its rules to every word. Here a word that no rule can touch takes its value from the lexicon,
and only the others go through the library's own code; the scores are the same to the last bit.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

_HIT, _MODIFIES, _IN_PHRASE, _CAPITALS, _BUT = 1, 2, 4, 8, 16
_BEFORE, _AFTER = 3, 2  # how many words before and after a word its rules look at
_KEPT = 200_000
T = TypeVar("T")


class _Words(NamedTuple):
    """What the library's rules read of a text."""

    words_and_emoticons: list[str]
    is_cap_diff: bool


class _Known(dict[str, T]):
    """Something of each token, found once."""

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find

    def __missing__(self, token: str) -> T:
        self[token] = found = self._find(token)
        return found


class Vader:
    """Scores texts; it remembers of each token what can happen to it.

    Examples:
        >>> Vader().compound(["I love this, wonderful!", "the bus is here"])
        [0.871, 0.0]
    """

    def __init__(self) -> None:
        from vaderSentiment import vaderSentiment as library

        self._library = library
        self._analyzer = library.SentimentIntensityAnalyzer()
        self._emoji = frozenset(own for own in self._analyzer.emojis if len(own) == 1)
        phrases = [*library.SPECIAL_CASES, *(own for own in library.BOOSTER_DICT if " " in own)]
        of_phrases = {max(phrase.split(), key=len) for phrase in phrases} | {"no"}
        self._known: dict[str, int] = {}
        for mark, words in (
            (_HIT, self._analyzer.lexicon.keys() - library.BOOSTER_DICT.keys()),
            (_MODIFIES, {*library.BOOSTER_DICT, *library.NEGATE, "least", "this"}),
            (_IN_PHRASE, of_phrases),
            (_BUT, {"but"}),
        ):
            for word in words:
                self._known[word] = self._known.get(word, 0) | mark
        self._words: _Known[str] = _Known(self._library.SentiText._strip_punc_if_word)
        self._marks: _Known[int] = _Known(self._mark)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vader, ()

    def compound(self, texts: Iterable[str]) -> list[float]:
        """The compound score of each text, from -1 to 1."""
        if len(self._words) > _KEPT:
            self._words.clear()
            self._marks.clear()
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> float:
        if not text.isascii() and (emojis := self._emoji.intersection(text)):
            text = re.sub(f"[{''.join(map(re.escape, sorted(emojis)))}]", self._described, text)
        tokens = text.split()
        marks = bytes(map(self._marks.__getitem__, tokens))
        hits = [place for place, mark in enumerate(marks) if mark & _HIT]
        if not hits:
            return 0.0
        mixed = 0 < sum(mark & _CAPITALS for mark in marks) < _CAPITALS * len(marks)
        values = [self._value(tokens, marks, place, mixed) for place in hits]
        if max(marks) >= _BUT:
            but = next(place for place, mark in enumerate(marks) if mark & _BUT)
            self._weigh(values, hits, but)
        return self._normalised(sum(values), text)

    def _described(self, found: re.Match[str]) -> str:
        """An emoji in words, parted from what stands before it."""
        text, start = found.string, found.start()
        return ("" if start == 0 or text[start - 1] == " " else " ") + self._analyzer.emojis[found[0]]

    def _mark(self, token: str) -> int:
        """What a token is: one with a value, one that changes those after it, one that may be of a phrase, one in
        capitals, the word 'but'."""
        word = self._words[token]
        lower = word.lower()
        return self._known.get(lower, 0) | (_MODIFIES if "n't" in lower else 0) | (_CAPITALS if word.isupper() else 0)

    def _value(self, tokens: list[str], marks: bytes, place: int, mixed: bool) -> float:
        """The value of the word at a place: the lexicon's where no rule can touch it, else the library's."""
        start, end = max(0, place - _BEFORE), place + _AFTER + 1
        rules = 0
        for mark in marks[start:place]:
            rules |= mark & (_MODIFIES | _IN_PHRASE)
        for mark in marks[place:end]:
            rules |= mark & _IN_PHRASE
        if rules:
            words = [self._words[token] for token in tokens[start:end]]
            return self._by_the_rules(_Words(words, mixed), place - start)
        value: float = self._analyzer.lexicon[self._words[tokens[place]].lower()]
        if mixed and marks[place] & _CAPITALS:
            value += self._library.C_INCR if value > 0 else -self._library.C_INCR
        return value

    def _by_the_rules(self, near: _Words, place: int) -> float:
        words = near.words_and_emoticons
        if words[place].lower() == "kind" and place + 1 < len(words) and words[place + 1].lower() == "of":
            return 0.0
        value: float = self._analyzer.sentiment_valence(0, near, words[place], place, [])[0]
        return value

    @staticmethod
    def _weigh(values: list[float], places: list[int], but: int) -> None:
        """Less weight before 'but' and more after it. By the library's rule the weight goes to the first of several
        equal values."""
        for number in range(len(values)):
            value = values[number]
            first = values.index(value)
            if places[first] != but:
                values[first] = value * (0.5 if places[first] < but else 1.5)

    def _normalised(self, total: float, text: str) -> float:
        """A sum of values with the emphasis of ! and ?, from -1 to 1."""
        emphasis = self._analyzer._punctuation_emphasis(text) if total else 0
        normalised: float = self._library.normalize(total + emphasis if total > 0 else total - emphasis)
        return round(normalised, 4)
