"""Stereotyped phrases: finds them in comments, and makes their counterfactuals (Barikeri et al. 2021)."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.dimensions import Dimension, ExchangedWords, WordPair, with_plurals
from fairness_pipeline.lexicons.matching import Match, TermMatcher
from fairness_pipeline.lexicons.swapping import Swap, Swapper
from fairness_pipeline.lexicons.text import fold

WINDOW = 7
"""Tokens on either side of a target's first word (section 2.2)."""
_TOKEN = re.compile(r"\S+")


class Phrase(NamedTuple):
    """A target in a comment: its words, the window around it, and whether the window holds a term of the stereotype."""

    target: str
    text: str
    attribute_in_window: bool


@dataclass(frozen=True)
class StereotypeTerms:
    """The part of a dimension that finds stereotyped phrases and makes their counterfactuals; the fields are those of
    `Stereotypes`."""

    targets: tuple[str, ...]
    attributes: tuple[str, ...]
    pairs: tuple[WordPair, ...]
    idioms: tuple[str, ...]
    opposites: tuple[WordPair, ...]


class Lexicon:
    """Searches texts for the terms of a dimension's stereotypes, and exchanges them.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> lexicon = Lexicon(stereotypes_of(load_dimension("religion2")))
        >>> [phrase.text for phrase in lexicon.phrases("they say that islam is violent")]
        ['they say that islam is violent']
        >>> lexicon.counterfactual("muslims' lawful wives are not an islamic threat", "1").text
        "christians' lawful wives are not a christian threat"
    """

    def __init__(self, terms: StereotypeTerms) -> None:
        self.attributes = terms.attributes
        self.pairs = terms.pairs
        self._targets = TermMatcher(terms.targets)
        self._attribute = re.compile(rf"(?<!\w)(?:{'|'.join(map(_pattern, self.attributes))})(?!\w)")
        self._pairs = with_plurals(terms.pairs)
        self._swapper = self._make_swapper(self._pairs)
        self._idioms = TermMatcher(terms.idioms) if terms.idioms else None
        self._swappers: dict[frozenset[str], Swapper] = {}
        opposites = tuple((opposite, term) for term, opposite in terms.opposites)
        self._opposites = self._make_swapper(with_plurals(opposites)) if opposites else None

    def prefilter(self) -> str:
        """An RE2 pattern for a whole column. It matches every lower-cased text with a target, and some others."""
        return self._targets.prefilter()

    def is_candidate(self, comment: str) -> bool:
        """Whether a cleaned comment holds a target and a term of the stereotype."""
        return bool(self._targets.find(comment)) and self.holds_attribute(comment)

    def holds_attribute(self, text: str) -> bool:
        """Whether a text holds a term of the stereotype."""
        return self._attribute.search(fold(text)) is not None

    def attribute_spans(self, text: str) -> list[tuple[int, int]]:
        """The positions of the stereotype's terms in a text."""
        return [match.span() for match in self._attribute.finditer(fold(text))]

    def term_spans(self, text: str) -> list[Match]:
        """The positions of both groups' words in a text."""
        return [match for match, _ in self._swapper.find(text)]

    def phrases(self, comment: str) -> list[Phrase]:
        """The window of seven tokens on either side of each target's first word."""
        tokens = [token.span() for token in _TOKEN.finditer(comment)]
        phrases = []
        for match in self._targets.find(comment):
            index = next(i for i, (_, end) in enumerate(tokens) if end > match.start)
            first, last = tokens[max(0, index - WINDOW)], tokens[min(len(tokens) - 1, index + WINDOW)]
            text = comment[first[0] : last[1]]
            phrases.append(Phrase(match.term, text, self.holds_attribute(text)))
        return phrases

    def counterfactual(self, phrase: str, key: str) -> Swap:
        """The same phrase about side a.

        A word of side a becomes the word of side b with which it is paired, if that word occurs in the phrase: `blacks
        are worse than whites` is turned into its converse. But the `he` in a phrase in which `mom` becomes `dad` stays,
        as in the released counterfactuals.
        """
        present = frozenset(_stem(match.term) for match, side in self._swapper.find(phrase) if side == "b")
        if present not in self._swappers:
            pairs = tuple(pair for pair in self._pairs if _stem(pair[1]) in present)
            self._swappers[present] = self._make_swapper(pairs) if pairs else self._swapper
        swapper = self._swappers[present]
        idioms = self._idioms.find(phrase) if self._idioms else []
        matches = [
            match
            for match in swapper.matcher.find(phrase)
            if not any(idiom.start < match.end and match.start < idiom.end for idiom in idioms)
        ]
        return swapper.exchange(phrase, matches, "both" if present else "b", key)

    def opposite(self, phrase: str, key: str) -> Swap:
        """The same phrase, with each term of the stereotype replaced by its opposite if it has one. The terms are `b`
        of the exchanged ones.
        """
        if self._opposites is None:
            return Swap(phrase, [], 0)
        return self._opposites.swap(phrase, "b", key)

    def names_b(self, text: str) -> bool:
        """Whether a text holds a word of side b."""
        return any(side == "b" for _, side in self._swapper.find(text))

    def names_both(self, text: str) -> bool:
        """Whether a text holds words of both sides."""
        return len({side for _, side in self._swapper.find(text)}) == 2

    def _make_swapper(self, pairs: tuple[WordPair, ...]) -> Swapper:
        return Swapper(ExchangedWords(pairs, None, (), None, ()))


def stereotypes_of(dimension: Dimension, *, printed: bool = False) -> StereotypeTerms:
    """The search terms of a dimension's stereotyped phrases: its section `stereotypes`, or its pairs and its list
    `stereotypical`.

    Args:
        dimension: The dimension.
        printed: Whether the pairs are those of the paper's list alone.

    Raises:
        FairnessError: the dimension has neither.
    """
    section = dimension.stereotypes
    if section:
        attributes = (
            dimension.attribute_words[section.attributes] if isinstance(section.attributes, str) else section.attributes
        )
        pairs = section.pairs if printed else (*section.pairs, *section.further)
        return StereotypeTerms(section.targets, attributes, pairs, section.idioms, section.opposites)
    if "stereotypical" not in dimension.attribute_words:
        raise FairnessError(
            f"dimension '{dimension.label}' has no stereotypes: give its file a section 'stereotypes' (targets, "
            "attributes, pairs), or a list 'stereotypical' under 'attribute_words'"
        )
    targets = tuple(dict.fromkeys(b for _, b in dimension.pairs))
    return StereotypeTerms(targets, dimension.attribute_words["stereotypical"], dimension.pairs, (), ())


def has_stereotypes(dimension: Dimension) -> bool:
    """Whether language models can be audited in a dimension."""
    return dimension.stereotypes is not None or "stereotypical" in dimension.attribute_words


def _stem(term: str) -> str:
    return " ".join(fold(term).split()).removesuffix("s")


def _pattern(term: str) -> str:
    words = re.escape(fold(term).removesuffix("*")).replace(r"\ ", r"\s+")
    return words + (r"\w*" if term.endswith("*") else "")
