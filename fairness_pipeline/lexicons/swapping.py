"""Counterfactual swapping: the same text with the other group's words (Liu et al. 2020, section 2.3)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Literal, NamedTuple

import pyarrow as pa

from fairness_pipeline.lexicons.dimensions import SIDES, Side, Words
from fairness_pipeline.lexicons.lemmas import is_noun
from fairness_pipeline.lexicons.matching import Match, TermMatcher
from fairness_pipeline.lexicons.senses import Not, SenseRules
from fairness_pipeline.lexicons.text import TOKEN, fold

PronounRule = Literal["published", "extended"]
PersonSpans = Mapping[str, Sequence[tuple[int, int]]]
"""The spans in which persons were put into a text, by text."""
Matches = Sequence[tuple[int, int, str]]
"""Listed words in a text: start, end, and word."""

# Words that never start a noun phrase. Before one of them `her` is an object (`told her that`), not a possessive.
_CLOSED_CLASS = frozenset(
    """
    a about after again all alone already also always am an and any anyway are around as at away back based be because
    become been before but by came can come could did do does down during either else even ever every everything
    everywhere except for from gave get getting give go goes gonna had haha hahaha has have he here him his how
    however i idk if imo in instead into is it its just know later like lmao lmfao lol may maybe me might more much
    must my n't never no nor not nothing now of off omg on once onto or our out over please pls plz rather really rn s
    say she should since smh so some somehow something sometime soon still such tbh than that the their them then
    there these they this tho those though through till to today together tomorrow tonight too ugh under until up very
    was we well were what when where whether which while who whom why will with within without would wtf yesterday yet
    you your
    """.split()
)
# `makes her look`, `let her go`: a bare infinitive follows, although its word may be a noun too.
_OBJECT = re.compile(
    r"(?is).*\b(?:ma(?:k(?:es?|ing)|de)|let(?:s|ting)?|help(?:s|ed)?|see(?:s|n)?|saw|watch(?:ed|ing)?|hear[ds]?) her "
    r"(?:look|feel|go|do|take|say|run|cry|want|think|know|play|eat|sleep|walk|talk|drive|win|lose|pay|kill|kiss|smile|"
    r"laugh|work|act|sing|dance|move|stop|leave|die|live|fight|try|wait|finish|stay|start|sit|stand|fall|drink)\b"
)
_PARTICIPLES = frozenset(
    """
    being coming crying doing eating getting giving going having laughing looking making playing running saying sitting
    smiling standing taking talking trying walking
    """.split()
)
"""Participles that WordNet lists as nouns too; after `her` they are hardly ever nouns."""
_AFTER_HIS = frozenset("back down like might past say will".split())
"""Function words that are nouns or adjectives after `his`, which is never an object."""
_ADJECTIVES = frozenset(
    """
    amazing annoying boring charming existing exciting failing following growing interesting leading living loving
    missing ongoing outstanding remaining stunning supporting surprising touching underlying upcoming winning working
    """.split()
)
_LAST_LETTER = 0x2FFF
"""Later code points are counted as pictures."""
_CLAUSE_ENDS = frozenset(".,;:!?)]<>-–—…@'’\"”")


class SwappedTerm(NamedTuple):
    """One replacement as both sides spell it, in the case of the text."""

    a: str
    b: str


class Swap(NamedTuple):
    """A swapped text, its replacements from left to right, and how many of them had several possible counterparts."""

    text: str
    terms: list[SwappedTerm]
    ambiguous: int


class Meant(NamedTuple):
    """The decision of the rules of sense about a text: the listed words that are exchanged, those that stay, and the
    word because of which the whole text is left out."""

    matches: Matches
    stay: Matches
    left_out_by: str | None


class Swapper:
    """Recognises and exchanges the words of a dimension's two groups.

    Args:
        dimension: The word pairs.
        pronouns: `extended` adds the pronouns that the published list lacks.
        seed: The seed of the draws between several counterparts. The seed and a text's key fix the draws.
        adapt_articles: Whether `a` and `an` are adapted to the next word (`an actor`, but `a waiter`).
        senses: Whether the dimension's rules of sense decide where a word is exchanged, and for what.
        further: Whether the dimension's further ways to name the groups are exchanged too.

    Examples:
        >>> from fairness_pipeline.project.project import load_dimension
        >>> swapper = Swapper(load_dimension("gender"))
        >>> swapper.swap("My dad’s a POLICEMAN.", "a", key="tweet-1").text
        'My mom’s a POLICEWOMAN.'
    """

    def __init__(
        self,
        dimension: Words,
        *,
        pronouns: PronounRule = "published",
        seed: int = 0,
        adapt_articles: bool = True,
        senses: bool = False,
        further: bool = False,
    ) -> None:
        self._rebuild = partial(
            Swapper,
            dimension,
            pronouns=pronouns,
            seed=seed,
            adapt_articles=adapt_articles,
            senses=senses,
            further=further,
        )
        self.seed = seed
        self._adapt_articles = adapt_articles
        rules = dimension.senses if senses else None
        self._counterparts: dict[Side, dict[str, list[str]]] = {"a": {}, "b": {}}
        for a, b in dict.fromkeys(
            (*dimension.all_pairs(pronouns, further=further), *(rules.all_pairs() if rules else ()))
        ):
            self._counterparts["a"].setdefault(_normal(a), []).append(b)
            self._counterparts["b"].setdefault(_normal(b), []).append(a)
        self.matcher = TermMatcher([*self._counterparts["a"], *self._counterparts["b"]])
        self._spelled = {_normal(word): word for pair in dimension.further if further for word in pair}
        listed = {_normal(word) for pair in (*dimension.pairs, *(rules.all_pairs() if rules else ())) for word in pair}
        self._rules = SenseRules(rules, self.matcher.terms, _normal, self._spelled.keys() - listed) if rules else None
        pronoun_rules = dimension.pronouns if pronouns == "extended" else None
        self._before_noun_phrase = pronoun_rules.before_noun_phrase if pronoun_rules else {}
        self._elsewhere = pronoun_rules.elsewhere if pronoun_rules else {}
        self._entries = {term: self._entry(side, term) for side in SIDES[::-1] for term in self._counterparts[side]}

    def __reduce__(self) -> tuple[object, ...]:
        return self._rebuild, ()

    def _entry(self, side: Side, term: str) -> tuple[Side, str | None, list[str]]:
        """A word's side; its counterpart if it has exactly one; otherwise its options (none if the context decides)."""
        options = self._counterparts[side][term]
        if term in self._before_noun_phrase:
            return side, None, []
        if self._rules and term in self._rules.counterparts:
            options = [self._rules.counterparts[term]]
        return (side, options[0], []) if len(options) == 1 else (side, None, options)

    def find(self, text: str) -> list[tuple[Match, Side]]:
        """The listed words in `text`, with the side of each."""
        return [(match, self._entries[match.term][0]) for match in self.matcher.find(text)]

    def find_all(
        self, texts: pa.Array
    ) -> Iterator[tuple[Sequence[tuple[int, int, str]], Side | Literal["both"] | None]]:
        """The listed words of each text in turn, and the group that they name."""
        for matches in self.matcher.find_all(texts):
            yield matches, self.side_of(matches)

    def named(self, texts: pa.Array) -> Iterator[Side | Literal["both"] | None]:
        """The group that each text names in turn, by the dimension's rules of sense. A pronoun names its group in any
        use.

        Examples:
            >>> from fairness_pipeline.project.project import load_dimension
            >>> swapper = Swapper(load_dimension("gender"), pronouns="extended", senses=True)
            >>> list(swapper.named(pa.array(["that woman sounds kind", "man up", "tell her hi", "she's 17"])))
            ['b', None, 'b', 'b']
        """
        rules, pronouns = self._rules, self._before_noun_phrase.keys() | self._elsewhere.keys()
        if rules:
            pronouns |= rules.among_ordinary_words

        def names(text: pa.StringScalar, match: tuple[int, int, str]) -> bool:
            return not rules or match[2] in pronouns or rules.names(text.as_py(), *match)

        for text, matches in zip(texts, self.matcher.find_all(texts), strict=True):
            yield self.side_of(matches, partial(names, text))

    def meant(self, texts: pa.Array, spans: PersonSpans | None = None) -> Iterator[Meant]:
        """Which listed words of each text mean the group, by the dimension's rules of sense; all of them without rules.

        Args:
            texts: The texts.
            spans: Where a person was put into each text. If given, words are exchanged there only, and a text whose
                other words name a group is left out.

        Examples:
            >>> from fairness_pipeline.project.project import load_dimension
            >>> swapper = Swapper(load_dimension("race"), senses=True)
            >>> [len(decision.matches) for decision in swapper.meant(pa.array(["the white house", "a white man"]))]
            [0, 1]
        """
        rules = self._rules
        rows = zip(texts.to_pylist(), self.matcher.find_all(texts), strict=True)
        if spans is not None:
            decisions = [self._decide_inside(text, matches, spans.get(text, ())) for text, matches in rows]
        elif rules is None:
            yield from (Meant(matches, [], None) for _, matches in rows)
            return
        else:
            decisions = [self._decide(rules, text, matches) for text, matches in rows]
        undecided = [index for index, decision in enumerate(decisions) if decision.matches and not decision.left_out_by]
        reasons = self._companions(texts, [decisions[index].matches for index in undecided], undecided, spans)
        for index, decision in enumerate(decisions):
            reason = reasons.get(index)
            yield decision._replace(left_out_by=reason) if reason else decision

    def _companions(
        self, texts: pa.Array, matches: Sequence[Matches], rows: Sequence[int], spans: PersonSpans | None
    ) -> dict[int, str]:
        """The word because of which a text is left out, by row. If persons were put into the texts, only names inside
        them count in general, and exchanged words are no reason."""
        rules = self._rules
        if rules is None:
            return {}
        row_texts = [texts[row].as_py() for row in rows]
        named = [rules.may_be_named(term for _, _, term in text_matches) for text_matches in matches]
        if spans is None:
            searches = [(row_texts, named)]
        else:
            rest = [_without(text, text_matches) for text, text_matches in zip(row_texts, matches, strict=True)]
            inside = [
                " ".join(blank[start:end] for start, end in spans[text])
                for text, blank in zip(row_texts, rest, strict=True)
            ]
            searches = [(rest, [False] * len(rest)), (inside, named)]
        reasons: dict[int, str] = {}
        for searched, names in searches:
            words = rules.companions(pa.array(searched, pa.string()), names, topics=spans is None)
            reasons = {row: word for row, word in zip(rows, words, strict=True) if word} | reasons
        return reasons

    def _decide_inside(self, text: str, matches: Matches, spans: Sequence[tuple[int, int]]) -> Meant:
        """The decision about a text into which persons were put, by the words inside them; another word that names a
        group leaves the text out."""
        inside = [match for match in matches if any(start <= match[0] and match[1] <= end for start, end in spans)]
        outside = [match for match in matches if match not in inside]
        rules = self._rules
        decision = self._decide(rules, text, inside) if rules else Meant(inside, [], None)
        if rules and inside and not decision.matches and all(" " in text[start:end] for start, end in spans):
            decision = self._decide_alone(rules, text, spans)
        if not decision.matches:
            return decision
        stay = [match for match in outside if rules and rules.use(text, *match) is Not.STAYS]
        group_word = next((match[2] for match in outside if match not in stay), None)
        return Meant(decision.matches, [*decision.stay, *stay], decision.left_out_by or group_word)

    def _decide_alone(self, rules: SenseRules, text: str, spans: Sequence[tuple[int, int]]) -> Meant:
        """The decision about persons without their sentence: the words around `a Christian` do not belong to it."""
        kept, stay, reasons = [], [], []
        for begin, stop in spans:
            person = text[begin:stop]
            decision = self._decide(rules, person, self.matcher.find(person))
            kept += [(begin + start, begin + end, term) for start, end, term in decision.matches]
            stay += [(begin + start, begin + end, term) for start, end, term in decision.stay]
            reasons += [decision.left_out_by] if decision.left_out_by else []
        return Meant(kept, stay, reasons[0] if reasons else None)

    def _decide(self, rules: SenseRules, text: str, matches: Matches) -> Meant:
        """The decision about the listed words of a text; a word whose use is unclear leaves the text out."""
        kept: list[tuple[int, int, str]] = []
        stay: list[tuple[int, int, str]] = []
        unclear: list[tuple[int, int, str]] = []
        for match in matches:
            outcome = rules.use(text, *match)
            if isinstance(outcome, str) and match[2] in self._before_noun_phrase and not _is_clear(text, *match[1:]):
                outcome = Not.LEFT_OUT
            (kept if isinstance(outcome, str) else stay if outcome is Not.STAYS else unclear).append(match)
        if not kept:
            return Meant([], [*stay, *unclear], None)
        return Meant(kept, stay, unclear[0][2] if unclear else None)

    def side_of(
        self,
        matches: Iterable[tuple[int, int, str]],
        names: Callable[[tuple[int, int, str]], bool] = lambda match: True,
    ) -> Side | Literal["both"] | None:
        """The group that listed words name: one side, both, or none.

        Args:
            matches: Where the words are.
            names: Whether one of them names its group there; called until one of each side does.
        """
        named: Side | None = None
        for match in matches:
            side = self._entries[match[2]][0]
            if side != named and names(match):
                if named:
                    return "both"
                named = side
        return named

    def swap(self, text: str, source: Side | Literal["both"], key: str) -> Swap:
        """`text`, with the words of side `source` replaced by their counterparts. `both` replaces the words of both
        sides.

        Args:
            text: Any text.
            source: The side whose words are replaced.
            key: The id of the text (of its dialogue). If a word has several counterparts, only `key` and the seed
                decide, so the choice is the same in every run and every order.
        """
        return self.exchange(text, self.matcher.find(text), source, key)

    def exchange(
        self, text: str, matches: Iterable[tuple[int, int, str]], source: Side | Literal["both"], key: str
    ) -> Swap:
        """Like `swap`, for a text whose listed words are already found."""
        pieces: list[str] = []
        terms: list[SwappedTerm] = []
        ambiguous = position = 0
        for start, end, term in matches:
            side, counterpart, options = self._entries[term]
            if source != side and source != "both":
                continue
            original = text[start:end]
            if self._rules and term in self._rules.decided and term not in self._before_noun_phrase:
                for context in (text, text[:end]):  # without what follows if necessary: it may be a frame
                    outcome = self._rules.use(context, start, end, term)
                    if isinstance(outcome, str):
                        counterpart = outcome or counterpart
                        break
            if counterpart is None and options:
                ambiguous += 1
                counterpart = options[self._draw(key, len(terms), len(options))]
            elif counterpart is None:
                possessive = _noun_phrase_follows(text, end, participles=term != "his") and not (
                    term == "her" and _OBJECT.match(text[max(0, start - 12) : end + 12])
                )
                rule = self._before_noun_phrase if possessive else self._elsewhere
                counterpart = rule[term]
            # A further way to name a group keeps its own capitals (`goes to church on Sundays`).
            as_listed = self._spelled.get(term) == original
            replacement = counterpart if as_listed else _in_the_form_of(original, counterpart)
            before = text[position:start]
            if self._adapt_articles and _begins_with_vowel(original) != _begins_with_vowel(replacement):
                before = _with_article(before, original, replacement)
            pieces += before, replacement
            terms.append(SwappedTerm(original, replacement) if side == "a" else SwappedTerm(replacement, original))
            position = end
        return Swap("".join([*pieces, text[position:]]), terms, ambiguous)

    def _draw(self, key: str, index: int, options: int) -> int:
        digest = blake2b(f"{self.seed}\x1f{key}\x1f{index}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % options


_ARTICLE = re.compile(r"(?<![^\W_])(a|an|An|AN|A)(?=\s+[\"“‘'(\[]?$)")
_BEGINS = re.compile(r"(^|[.!?:]\s+|[\"“(]\s*)$")
_CONSONANT_SOUND = re.compile(r"(?i)(eu|ewe|uni(?![nm])|us[aeiu]|ut[aeio]|ug[a]|uy|one\b|once\b|ubi|uk)")
_SILENT_H = re.compile(r"(?i)(heir|hones|honou?r|hour)")


def _begins_with_vowel(word: str) -> bool:
    """Whether `an` precedes a word, judged by its spelling."""
    return bool(_SILENT_H.match(word)) or (word[:1].lower() in "aeiou" and not _CONSONANT_SOUND.match(word))


def _with_article(before: str, original: str, replacement: str) -> str:
    """The text before a word, with its article adapted to the word that replaces it.

    A capital `A` in the middle of a sentence is not an article (`plan A`).
    """
    match = _ARTICLE.search(before)
    if not match:
        return before
    article, shouted = match.group(), len(original) > 1 and original.isupper()
    if article == "A" and not shouted and not _BEGINS.search(before[: match.start()]):
        return before
    if not _begins_with_vowel(replacement):
        adapted = article[0]
    else:
        adapted = f"{article[0]}{'N' if shouted and article[0] == 'A' else 'n'}"
    return before[: match.start()] + adapted + before[match.end() :]


def replaced(text: str, spans: Iterable[tuple[int, int]], word: str) -> str:
    """The text with another word in some spans. The word takes the form of the text that it replaces, and articles are
    adapted.

    Examples:
        >>> replaced("An uncle of mine, UNCLE Bob", [(3, 8), (18, 23)], "cousin")
        'A cousin of mine, COUSIN Bob'
    """
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        original, before = text[start:end], text[position:start]
        replacement = word if any(letter.isupper() for letter in word[1:]) else _in_the_form_of(original, word)
        if _begins_with_vowel(original) != _begins_with_vowel(replacement):
            before = _with_article(before, original, replacement)
        pieces += before, replacement
        position = end
    return "".join([*pieces, text[position:]])


def _without(text: str, matches: Matches) -> str:
    """A text with a mark for each letter of the matches."""
    for start, end, _ in matches:
        text = f"{text[:start]}{'~' * (end - start)}{text[end:]}"
    return text


def _normal(term: str) -> str:
    return " ".join(fold(term).split())


def _noun_phrase_follows(text: str, position: int, *, participles: bool) -> bool:
    """Whether the next word can start a noun phrase: any word but a function word (`her old car`, not `her to go`).

    With `participles`, one that WordNet does not list as a noun follows an object (`saw her running`, but `his sizzling
    heat`). Marks that open a quotation, hashtags and ornaments are skipped. Marks that end a clause are not.
    """
    for following in TOKEN.finditer(text, position):
        word = fold(following.group())
        if word[0].isalnum():
            verb = participles and word.endswith("ing") and "-" not in word and not is_noun(word)
            verb = (verb and word not in _ADJECTIVES) or (participles and word in _PARTICIPLES)
            closed = word in _CLOSED_CLASS and (participles or word not in _AFTER_HIS)
            return not (closed or verb)
        opens = text[following.start() - 1].isspace() and text[following.end() : following.end() + 1].isalnum()
        if word[0] in _CLAUSE_ENDS and not (word[0] in "\"'" and opens):
            return False
    return False


def _is_clear(text: str, end: int, term: str) -> bool:
    """Whether the next token shows if a pronoun is an object or belongs to a noun: the end of a clause, a noun, or
    after `her` a function word. `getting her fired` and `her fired colleague` look the same to a reader of one word."""
    for following in TOKEN.finditer(text, end):
        word = fold(following.group())
        if not word[0].isalnum():
            return word[0] in _CLAUSE_ENDS or ord(word[0]) > _LAST_LETTER
        if term == "his":
            return word not in _CLOSED_CLASS or word in _AFTER_HIS
        return word in _CLOSED_CLASS or (is_noun(word) and word not in _PARTICIPLES)
    return True


@lru_cache(maxsize=1 << 16)
def _in_the_form_of(original: str, replacement: str) -> str:
    """`replacement` with the case and the apostrophes of `original`."""
    cased = _with_case_of(original, replacement)
    return cased.replace("'", "’") if "’" in original else cased


def _with_case_of(original: str, replacement: str) -> str:
    """`replacement` in the case of `original`: UPPER, Title In Every Word, Capitalised, or lower."""
    runs = re.findall(r"[^\W\d_]+", original)
    letters = "".join(runs)
    if len(letters) > 1 and letters.isupper():
        return replacement.upper()
    if len(runs) > 1 and all(run[0].isupper() for run in runs):
        return re.sub(r"(?<![^\W_])[^\W\d_]", lambda match: match.group().upper(), replacement.lower())
    if letters[:1].isupper():
        first = re.search(r"[^\W\d_]", replacement)
        if first:
            lowered = replacement.lower()
            return lowered[: first.start()] + lowered[first.start()].upper() + lowered[first.end() :]
    return replacement.lower()
