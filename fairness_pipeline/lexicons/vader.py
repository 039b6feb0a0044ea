"""VADER's compound scores of many texts (Hutto and Gilbert 2014), several times as fast as its library.

The library applies all its rules to every word. Here a word that no rule can affect takes its value from the lexicon.
The others go through the library's own code, once for each combination of words nearby; the scores are the same to the
last bit.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HIT, _MODIFIES, _IN_PHRASE, _CAPITALS, _BUT, _CONDITION = 1, 2, 4, 8, 16, 32
_BEFORE, _AFTER = 3, 2  # how many words before and after a word its rules look at
_GAP, _NEUTRAL = "", "the"
"""Stands between texts; and for any word that no rule looks for."""
_LETTERS = 4_000_000
"""Letters of the texts that are scored together."""
_CACHE_SIZE = 200_000
_ASCII = bytes(range(128))


class _Words(NamedTuple):
    """What the library's rules read of a text."""

    words_and_emoticons: list[str]
    is_cap_diff: bool


class _Tokens(dict[str, int]):
    """Numbers tokens in the order in which they are first seen.

    Args:
        read: Returns a token's word, its marks and its value in the lexicon.
    """

    def __init__(self, read: Callable[[str], tuple[str, int, float]]) -> None:
        self._read = read
        self.words: list[str] = []
        self.marks: list[int] = []
        self.lexicon_values: list[float] = []
        self.gap, self.neutral = self[_GAP], self[_NEUTRAL]

    def __missing__(self, token: str) -> int:
        word, marks, value = self._read(token)
        self.words.append(word)
        self.marks.append(marks)
        self.lexicon_values.append(value)
        self[token] = number = len(self)
        return number


class Vader:
    """Scores texts. It caches which rules can affect each token, and what they make of its neighbours.

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
            (_CONDITION, {"at", "doubt"}),  # `at least` and `without doubt` negate nothing
        ):
            for word in words:
                self._known[word] = self._known.get(word, 0) | mark
        self._forget()

    def _forget(self) -> None:
        self._tokens = _Tokens(self._read)
        self._ruled: dict[bytes, float] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Vader, ()

    def compound(self, texts: Sequence[str]) -> list[float]:
        """The compound score of each text, from -1 to 1."""
        if len(self._tokens) + len(self._ruled) > _CACHE_SIZE:
            self._forget()
        described = [text if text.isascii() else self._with_emoji_described(text) for text in texts]
        ends = np.cumsum([len(text) for text in described])
        cuts = [0, *np.searchsorted(ends, np.arange(_LETTERS, ends[-1] if texts else 0, _LETTERS)), len(texts)]
        return [score for start, end in pairwise(cuts) for score in self._scores(described[start:end])]

    def _with_emoji_described(self, text: str) -> str:
        """The text with its emoji in words, separated from the preceding character."""
        for emoji in self._emoji.intersection(text.encode().translate(None, _ASCII).decode()):
            words = self._analyzer.emojis[emoji]
            if text.startswith(emoji):
                text = words + text[1:]
            text = text.replace(f" {emoji}", f" {words}").replace(emoji, f" {words}")
        return text

    def _read(self, token: str) -> tuple[str, int, float]:
        """A token's word; its marks: it has a value, changes the words after it, may belong to a phrase, is in
        capitals, is 'but', or is a condition of a rule; and its value in the lexicon."""
        word = self._library.SentiText._strip_punc_if_word(token)
        lower = word.lower()
        marks = self._known.get(lower, 0) | (_MODIFIES if "n't" in lower else 0) | (_CAPITALS if word.isupper() else 0)
        return word, marks, self._analyzer.lexicon.get(lower, 0.0)

    def _scores(self, texts: Sequence[str]) -> Iterator[float]:
        split = pc.utf8_split_whitespace(pa.array(texts, pa.string()))
        encoded = split.flatten().dictionary_encode()
        numbers = np.array([self._tokens[token] for token in encoded.dictionary.to_pylist()], dtype=np.int32)
        tokens, owners = numbers[np.asarray(encoded.indices)], np.asarray(pc.list_parent_indices(split))
        words = tokens != self._tokens.gap  # no white space at either end
        tokens, owners = tokens[words], owners[words]
        lengths = np.bincount(owners, minlength=len(texts))
        # Between texts is a gap beyond which no rule looks.
        codes = np.full(len(tokens) + _BEFORE * (len(texts) + 1), self._tokens.gap, np.int32)
        codes[np.arange(len(tokens)) + _BEFORE * (owners + 1)] = tokens
        owners = np.concatenate([[0] * _BEFORE, np.repeat(np.arange(len(texts)), lengths + _BEFORE)])
        marks = np.array(self._tokens.marks, dtype=np.uint8)[codes]
        capitals = np.bincount(owners[marks & _CAPITALS > 0], minlength=len(texts))
        mixed = (capitals > 0) & (capitals < lengths)
        hits = np.flatnonzero(marks & _HIT)
        values = self._values(codes, marks, hits, mixed[owners[hits]])
        first_but = np.full(len(texts), -1)
        buts = np.flatnonzero(marks & _BUT)[::-1]
        first_but[owners[buts]] = buts
        bounds = np.searchsorted(owners[hits], np.arange(len(texts) + 1)).tolist()
        for text, (start, end), but in zip(texts, pairwise(bounds), first_but.tolist(), strict=True):
            of_text = values[start:end]
            if but >= 0:
                self._weigh(of_text, hits[start:end].tolist(), but)
            yield self._normalised(sum(of_text), text) if of_text else 0.0

    def _values(self, codes: np.ndarray, marks: np.ndarray, hits: np.ndarray, mixed: np.ndarray) -> list[float]:
        """The value of each word that has one: the lexicon's if no rule can affect it, otherwise the library's.

        Args:
            codes: The tokens of all texts.
            marks: Their marks.
            hits: Where the words with a value are.
            mixed: For each of them, whether only some words of its text are in capitals.
        """
        values = np.array(self._tokens.lexicon_values)[codes[hits]]
        increment = np.where(values > 0, self._library.C_INCR, -self._library.C_INCR)
        values += np.where(mixed & (marks[hits] & _CAPITALS > 0), increment, 0.0)
        windows = hits[:, None] + np.arange(-_BEFORE, _AFTER + 1)
        near = marks[windows]
        in_phrase = np.any(near & _IN_PHRASE > 0, axis=1)
        ruled = np.flatnonzero(in_phrase | np.any(near[:, :_BEFORE] & _MODIFIES > 0, axis=1))
        near, in_phrase, words = near[ruled], in_phrase[ruled], codes[windows[ruled]]
        # Without a phrase only marked words before it affect a word.
        unmarked = (near & (_HIT | _MODIFIES | _CONDITION) == 0) & (words != self._tokens.gap)
        words[~in_phrase[:, None] & unmarked] = self._tokens.neutral
        words[~in_phrase, _BEFORE + 1 :] = self._tokens.gap
        keys = np.column_stack([words, mixed[ruled]]).astype(np.int32)
        for index, key in zip(
            ruled.tolist(), keys.view(f"V{keys.itemsize * keys.shape[1]}").ravel().tolist(), strict=True
        ):
            value = self._ruled.get(key)
            if value is None:
                self._ruled[key] = value = self._by_the_rules(np.frombuffer(key, np.int32))
            values[index] = value
        return values.tolist()

    def _by_the_rules(self, key: np.ndarray) -> float:
        """The library's value of the word in the middle of a window, whose tokens are followed by `mixed`."""
        *window, mixed = key.tolist()
        index = sum(code != self._tokens.gap for code in window[:_BEFORE])
        words = [self._tokens.words[code] for code in window if code != self._tokens.gap]
        if words[index].lower() == "kind" and index + 1 < len(words) and words[index + 1].lower() == "of":
            return 0.0
        value: float = self._analyzer.sentiment_valence(0, _Words(words, bool(mixed)), words[index], index, [])[0]
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
