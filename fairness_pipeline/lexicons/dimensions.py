"""A bias dimension: two groups, the word pairs that distinguish them, and the attribute lists to count in answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Protocol, Self

import pydantic

from fairness_pipeline.foundation.inputs import DataFile, optional
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons import dictionary, lemmas
from fairness_pipeline.lexicons.senses import CLASSES, Senses
from fairness_pipeline.lexicons.text import fold

Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")

Term = Annotated[str, pydantic.StringConstraints(min_length=1, pattern=r"^\S(.*\S)?$")]
WordPair = tuple[Term, Term]


class Groups(Specification):
    """The names of the two groups."""

    a: str
    """The dominant group."""
    b: str
    """The other group."""


class Pronouns(Specification):
    """Pairs that the published list lacks."""

    pairs: tuple[WordPair, ...]
    """The word of side a and the word of side b."""
    before_noun_phrase: dict[Term, Term]
    """For a form with two meanings: its counterpart if a noun follows."""
    elsewhere: dict[Term, Term]
    """Its counterpart in all other places."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if set(self.before_noun_phrase) != set(self.elsewhere):
            raise ValueError("'before_noun_phrase' and 'elsewhere' must tell the same words apart")
        return self


class Stereotypes(Specification):
    """The terms with which stereotyped phrases about side b are searched, and how the phrases are turned into
    phrases about side a."""

    targets: tuple[Term, ...]
    """The terms of side b with which comments are searched (T1)."""
    attributes: str | tuple[Term, ...]
    """The terms of the stereotype (A1), or the name of a list in `attribute_words`. A final `*` stands for any
    ending."""
    pairs: tuple[WordPair, ...]
    """A word or phrase of side a, and its counterpart of side b. A final `s` is handled automatically."""
    further: tuple[WordPair, ...] = ()
    """Further pairs, which phrases need and the paper's list lacks."""
    idioms: tuple[Term, ...] = ()
    """Phrases in which a word of `pairs` means nobody (`straight up`): it is not exchanged there."""
    opposites: tuple[WordPair, ...] = ()
    """A term of the stereotype and its opposite (`[greedy, generous]`). A final `s` is handled automatically.
    Without opposites no verdict is drawn, because the likelihood of the group's words alone would decide it."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("targets", "attributes", "pairs"):
            if not getattr(self, name):
                raise ValueError(f"'{name}': expected one at least, found none")
        _checked((*self.pairs, *self.further))
        group_words = {fold(word) for pair in (*self.pairs, *self.further) for word in pair}
        if wrong := [word for pair in self.opposites for word in pair if fold(word) in group_words]:
            raise ValueError(f"'opposites': '{wrong[0]}' names a group ('pairs'); it can be no term of the stereotype")
        return self


class Words(Protocol):
    """The words that name the two groups, and the rules about them; a `Dimension` has all of these."""

    @property
    def pairs(self) -> tuple[WordPair, ...]:
        """A word or phrase of side a, and its counterpart of side b."""

    @property
    def pronouns(self) -> Pronouns | None:
        """Pronouns that the list lacks."""

    @property
    def further(self) -> tuple[WordPair, ...]:
        """Further ways to name the groups."""

    @property
    def senses(self) -> Senses | None:
        """In which uses a word means a person of the group."""

    def all_pairs(
        self, pronouns: Literal["published", "extended"] = "published", *, further: bool = False
    ) -> tuple[WordPair, ...]:
        """The pairs in use. `extended` adds the pronouns that the published list lacks, `further` the further ways to
        name the groups."""


class _Pairs:
    section: ClassVar = "dimension"

    def all_pairs(
        self: Words, pronouns: Literal["published", "extended"] = "published", *, further: bool = False
    ) -> tuple[WordPair, ...]:
        """The pairs in use. `extended` adds the pronouns that the published list lacks, `further` the further ways to
        name the groups."""
        extra = self.pronouns.pairs if self.pronouns and pronouns == "extended" else ()
        return (*self.pairs, *extra, *(self.further if further else ()))


@dataclass(frozen=True)
class ExchangedWords(_Pairs):
    """The part of a dimension that decides which words are exchanged, and where; with the data files for it."""

    pairs: tuple[WordPair, ...]
    pronouns: Pronouns | None
    further: tuple[WordPair, ...]
    senses: Senses | None
    files: tuple[DataFile, ...]


@dataclass(frozen=True)
class MaskedWords(_Pairs):
    """The part of a dimension that decides which words are masked, and how pairs move together."""

    pairs: tuple[WordPair, ...]
    pronouns: Pronouns | None
    further: tuple[WordPair, ...]
    names_the_group: bool
    unpaired: tuple[Term, ...] | None = optional()
    senses: ClassVar[None] = None


@dataclass(frozen=True)
class InterchangeableWords(_Pairs):
    """The part of a dimension that says which words of one group fit into the same places."""

    pairs: tuple[WordPair, ...]
    pronouns: Pronouns | None
    further: tuple[WordPair, ...]
    interchangeable: tuple[tuple[Term, ...], ...]
    senses: ClassVar[None] = None


class Dimension(_Pairs, Specification):
    """One file of `data/dimensions`.

    `pairs` are (word of a, word of b), each a word or a phrase. A word may have several counterparts, but it may not
    occur on both sides: it would name neither group. In `attribute_words` a final `*` stands for any ending.
    """

    label: str
    """The name that a reader sees."""
    groups: Groups
    """The names of the two groups."""
    pairs: tuple[WordPair, ...]
    """A word or phrase of side a, and its counterpart of side b."""
    attribute_words: dict[str, tuple[Term, ...]]
    """Lists to count in answers, by name. A final `*` stands for any ending."""
    sources: tuple[str, ...]
    """The sources of the lists. They are printed in the report."""
    caveats: tuple[str, ...] = ()
    """The limits of the lists. They are printed in the report."""
    published_as: str | None = None
    """The name of the dimension in the papers."""
    names_the_group: bool = False
    """Whether the words are the group's own name (`jewish`, `black`). If so, a verdict is about these words, and a
    test over pairs is enough. Otherwise the words represent a group in many ways (`aunt`, `she`) and are a sample:
    any verdict needs at least eight of them, and `fair` needs ten."""
    names_people: bool = True
    """Whether the words name people. Words that only mark a way of speaking name nobody, so that no answer can name
    the wrong group."""
    further: tuple[WordPair, ...] = ()
    """Further ways to name the groups, such as first names: used in contexts that were written for the audit, and
    masked in answers. In real texts they are not exchanged, because a name there is somebody's."""
    unpaired: tuple[Term, ...] = ()
    """Words that tell the group in an answer and are exchanged nowhere, such as further first names and forms of
    address: masked in answers."""
    interchangeable: tuple[tuple[Term, ...], ...] = ()
    """Words of side a (of `pairs` or `further`) that fit into the same places, such as `uncle` and `nephew`; so do
    their counterparts. One is exchanged for another to see how much answers differ without a change of group."""
    titles: tuple[Term, ...] = ()
    """Words of the list that are mostly titles or idioms and do not name a member of the group (`god`, `king`).
    Verdicts are drawn again without them."""
    pronouns: Pronouns | None = None
    """Used if a profile says `pronouns: extended`."""
    senses: Senses | None = None
    """In which uses a word means a person of the group, and is exchanged. Used unless a profile says `senses: list`."""
    stereotypes: Stereotypes | None = None
    """The terms with which language models are audited."""

    @pydantic.field_validator("pairs")
    @classmethod
    def _check_pairs(cls, pairs: tuple[WordPair, ...]) -> tuple[WordPair, ...]:
        if not pairs:
            raise ValueError("expected at least one pair of words, found none")
        return _checked(pairs)

    @pydantic.field_validator("attribute_words")
    @classmethod
    def _check_attributes(cls, lists: dict[str, tuple[Term, ...]]) -> dict[str, tuple[Term, ...]]:
        if not lists:
            raise ValueError("expected at least one list, found none")
        owner: dict[str, str] = {}
        for name, words in lists.items():
            if not words:
                raise ValueError(f"list '{name}' is empty")
            for word in map(fold, words):
                if word in owner:
                    raise ValueError(f"'{word}' is on list '{owner[word]}' and again on '{name}'; keep one")
                owner[word] = name
        return lists

    @pydantic.model_validator(mode="after")
    def _check_words(self) -> Self:
        pairs, all_pairs = self.all_pairs("extended"), self.all_pairs("extended", further=True)
        listed = {fold(word) for pair in pairs for word in pair}
        if unknown := [title for title in self.titles if fold(title) not in listed]:
            raise ValueError(f"'titles': '{unknown[0]}' is no word of 'pairs'")
        _checked(all_pairs)
        of_a = {fold(a) for a, _ in all_pairs}
        if unknown := [word for words in self.interchangeable for word in words if fold(word) not in of_a]:
            raise ValueError(f"'interchangeable': '{unknown[0]}' is no word of side a in 'pairs' or 'further'")
        if self.senses:
            more = self.senses.all_pairs()
            _checked(tuple(dict.fromkeys((*pairs, *more))))
            listed |= {fold(word) for pair in more for word in pair}
            if unknown := [word for word in self.senses.never if fold(word) not in listed]:
                raise ValueError(f"'senses.never': '{unknown[0]}' is no word of 'pairs'")
        attributes = self.stereotypes.attributes if self.stereotypes else None
        if isinstance(attributes, str) and attributes not in self.attribute_words:
            raise ValueError(f"'stereotypes.attributes': '{attributes}' is no list of 'attribute_words'")
        return self

    @property
    def named(self) -> ExchangedWords:
        """The words that decide whether a text names a group, if no word is exchanged."""
        return ExchangedWords(self.pairs, self.pronouns, (), None, ())

    def exchanged(self, *, senses: bool = False, further: bool = False, searched: bool = False) -> ExchangedWords:
        """The words and rules that decide which words are exchanged.

        Args:
            senses: Whether the rules of sense decide where.
            further: Whether the further ways to name the groups are exchanged too.
            searched: Whether texts are searched for words that mean the group (`Swapper.meant`).
        """
        rules = self.senses if senses else None
        names = [
            *(lemmas.FILES if self.pronouns else ()),
            *([CLASSES] if rules else ()),
            *(dictionary.FILES if searched and rules and rules.looks_for_names else ()),
        ]
        files = tuple(map(DataFile.of, names))
        return ExchangedWords(self.pairs, self.pronouns, self.further if further else (), rules, files)

    @cached_property
    def masked(self) -> MaskedWords:
        """The words that decide which words are masked."""
        return MaskedWords(self.pairs, self.pronouns, self.further, self.names_the_group, self.unpaired or None)

    @property
    def fitting(self) -> InterchangeableWords:
        """The words that decide which word is exchanged for another of the same group."""
        return InterchangeableWords(self.pairs, self.pronouns, self.further, self.interchangeable)


def with_plurals(pairs: Sequence[WordPair]) -> tuple[WordPair, ...]:
    """The pairs, and each pair of single words again with an `s` appended to both, unless the plural is listed already.

    This covers plurals, and possessives in text without apostrophes: `muslims`, `moms` (mom's).

    >>> with_plurals([("christian", "jewish"), ("christian", "jew"), ("christians", "jews")])
    (('christian', 'jewish'), ('christian', 'jew'), ('christians', 'jews'))
    """
    listed = {fold(b) for _, b in pairs}
    more = [(f"{a}s", f"{b}s") for a, b in pairs if " " not in a + b and fold(f"{b}s") not in listed]
    return (*pairs, *(pair for pair in more if not pair[1].endswith(("ss", "shs", "chs", "xs", "zs"))))


CLITICS = ("'s", "'ll", "'d", "'ve", "'re", "'m")
"""Endings that are attached to the preceding word and count as part of it."""


def with_clitics(pairs: Sequence[WordPair]) -> tuple[WordPair, ...]:
    """The pairs, and each pair of single words again with each clitic appended to both: `he'll` and `she'll`.

    Examples:
        >>> with_clitics([("he", "she")])[:3]
        (('he', 'she'), ("he's", "she's"), ("he'll", "she'll"))
    """
    forms = [(a + end, b + end) for a, b in pairs if " " not in a + b and "'" not in fold(a + b) for end in CLITICS]
    listed = set(pairs)
    return (*pairs, *(form for form in forms if form not in listed))


def _checked(pairs: tuple[WordPair, ...]) -> tuple[WordPair, ...]:
    seen: set[tuple[str, str]] = set()
    for a, b in ((fold(a), fold(b)) for a, b in pairs):
        if a == b:
            raise ValueError(f"'{a}' is mapped to itself; a pair needs two different words")
        if (a, b) in seen:
            raise ValueError(f"the pair '{a}' - '{b}' is listed twice; keep one")
        seen.add((a, b))
    both = {a for a, _ in seen} & {b for _, b in seen}
    if both:
        raise ValueError(f"on both sides: {', '.join(sorted(both))}; a word that names both groups names neither")
    return pairs
