"""VADER's compound scores of many texts (Hutto and Gilbert 2014), two to three times as fast as its library.

The library applies all its rules to every word. Here a word that no rule can affect takes its value from the lexicon,
and only the others go through the library's own code; the scores are the same to the last bit.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

_HIT, _MODIFIES, _IN_PHRASE, _CAPITALS, _BUT = 1, 2, 4, 8, 16
_BEFORE, _AFTER = 3, 2  # how many words before and after a word its rules look at
_CACHE_SIZE = 200_000
T = TypeVar("T")


class _Words(NamedTuple):
    """What the library's rules read of a text."""

    words_and_emoticons: list[str]
    is_cap_diff: bool


class _Cache(dict[str, T]):
    """The results of a function of each token."""

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find

    def __missing__(self, token: str) -> T:
        self[token] = value = self._find(token)
        return value


class Vader:
    """Scores texts. It caches which rules can affect each token.

    Examples:
        >>> Vader().compound(["I love this, wonderful!", "the bus is here"])
        [0.871, 0.0]
    """

    def __init__(self) -> None:
        from vaderSentiment import vaderSentiment as library

        self._library = library
        self._analyzer = library.SentimentIntensityAnalyzer()
        self._emoji = frozenset(emoji for emoji in self._analyzer.emojis if len(emoji) == 1)
        phrases = [*library.SPECIAL_CASES, *(booster for booster in library.BOOSTER_DICT if " " in booster)]
        phrase_words = {max(phrase.split(), key=len) for phrase in phrases} | {"no"}
        self._known: dict[str, int] = {}
        for mark, words in (
            (_HIT, self._analyzer.lexicon.keys() - library.BOOSTER_DICT.keys()),
            (_MODIFIES, {*library.BOOSTER_DICT, *library.NEGATE, "least", "this"}),
            (_IN_PHRASE, phrase_words),
            (_BUT, {"but"}),
        ):
            for word in words:
                self._known[word] = self._known.get(word, 0) | mark
        self._words: _Cache[str] = _Cache(self._library.SentiText._strip_punc_if_word)
        self._marks: _Cache[int] = _Cache(self._mark)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vader, ()

    def compound(self, texts: Iterable[str]) -> list[float]:
        """The compound score of each text, from -1 to 1."""
        if len(self._words) > _CACHE_SIZE:
            self._words.clear()
            self._marks.clear()
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> float:
        if not text.isascii() and (emojis := self._emoji.intersection(text)):
            text = re.sub(f"[{''.join(map(re.escape, sorted(emojis)))}]", self._described, text)
        tokens = text.split()
        marks = bytes(map(self._marks.__getitem__, tokens))
        hits = [index for index, mark in enumerate(marks) if mark & _HIT]
        if not hits:
            return 0.0
        mixed = 0 < sum(mark & _CAPITALS for mark in marks) < _CAPITALS * len(marks)
        values = [self._value(tokens, marks, index, mixed) for index in hits]
        if max(marks) >= _BUT:
            but = next(index for index, mark in enumerate(marks) if mark & _BUT)
            self._weigh(values, hits, but)
        return self._normalised(sum(values), text)

    def _described(self, match: re.Match[str]) -> str:
        """An emoji in words, separated from the preceding character."""
        text, start = match.string, match.start()
        return ("" if start == 0 or text[start - 1] == " " else " ") + self._analyzer.emojis[match[0]]

    def _mark(self, token: str) -> int:
        """The marks of a token: it has a value, changes the words after it, may belong to a phrase, is in capitals, or
        is 'but'."""
        word = self._words[token]
        lower = word.lower()
        return self._known.get(lower, 0) | (_MODIFIES if "n't" in lower else 0) | (_CAPITALS if word.isupper() else 0)

    def _value(self, tokens: list[str], marks: bytes, index: int, mixed: bool) -> float:
        """The value of the word at an index: the lexicon's if no rule can affect it, otherwise the library's."""
        start, end = max(0, index - _BEFORE), index + _AFTER + 1
        rules = 0
        for mark in marks[start:index]:
            rules |= mark & (_MODIFIES | _IN_PHRASE)
        for mark in marks[index:end]:
            rules |= mark & _IN_PHRASE
        if rules:
            words = [self._words[token] for token in tokens[start:end]]
            return self._by_the_rules(_Words(words, mixed), index - start)
        value: float = self._analyzer.lexicon[self._words[tokens[index]].lower()]
        if mixed and marks[index] & _CAPITALS:
            value += self._library.C_INCR if value > 0 else -self._library.C_INCR
        return value

    def _by_the_rules(self, window: _Words, index: int) -> float:
        words = window.words_and_emoticons
        if words[index].lower() == "kind" and index + 1 < len(words) and words[index + 1].lower() == "of":
            return 0.0
        value: float = self._analyzer.sentiment_valence(0, window, words[index], index, [])[0]
        return value

    @staticmethod
    def _weigh(values: list[float], positions: list[int], but: int) -> None:
        """Lowers the values before 'but' and raises those after it. As in the library, the first of several equal
        values gets the weight."""
        for index in range(len(values)):
            value = values[index]
            first = values.index(value)
            if positions[first] != but:
                values[first] = value * (0.5 if positions[first] < but else 1.5)

    def _normalised(self, total: float, text: str) -> float:
        """A sum of values with the emphasis of ! and ?, from -1 to 1."""
        emphasis = self._analyzer._punctuation_emphasis(text) if total else 0
        normalised: float = self._library.normalize(total + emphasis if total > 0 else total - emphasis)
        return round(normalised, 4)
