"""What a file of `data/groups` says: groups of any number, and the spans that say who somebody is."""

from typing import Annotated, NamedTuple, Self

import pydantic

from fairness_pipeline.foundation.yaml_files import Specification

UNMARKED = "not said"
"""The level of a group column in questions that say nothing of a group."""
_NOTHING = "(nothing)"
SLOTS = ("person", "me", "text")
"""Where a message takes a span: who is spoken of, what the user says of themselves, a text that somebody wrote."""


class Span(NamedTuple):
    """What is exchanged whole.

    Attributes:
        name: What the span is called: a person's name, or the words themselves.
        words: What stands in the message; empty if the line says it all.
        line: A line of the chat's system prompt; empty if there is none.
        by_name: Whether a person's name says the group.
    """

    name: str
    words: str
    line: str = ""
    by_name: bool = False


class Spans(Specification):
    """The ways to say one group."""

    person: tuple[str, ...] = ()
    """Who is spoken of: noun phrases of one person, for `{person}`."""
    me: tuple[str, ...] = ()
    """What the user says of themselves before a message, for `{me}`."""
    system: tuple[str, ...] = ()
    """Lines of the chat's system prompt that say it of the user, for `{me}`."""
    names: tuple[str, ...] = ()
    """Names of persons, in place of `person`, of `me` ("My name is ...") and of `system` ("User's name: ..."). They are
    used where every group that is asked about has names."""
    text: tuple[str, ...] = ()
    """What somebody wrote, for `{text}`."""

    def of(self, slot: str, number: int) -> list[Span]:
        """The spans for a place in a message, in the file's order.

        Args:
            slot: One of `SLOTS`.
            number: That of the message: of two, one has a user's name in the message and one in the system prompt.
        """
        if slot == "text":
            return [Span(text, text) for text in self.text]
        if slot == "person":
            return [*(Span(own, own, by_name=True) for own in self.names), *(Span(own, own) for own in self.person)]
        named = [
            Span(name, "", f"User's name: {name}.", by_name=True)
            if number % 2
            else Span(name, f"My name is {name}.", by_name=True)
            for name in self.names
        ]
        return [
            *named,
            *(Span(own or _NOTHING, own) for own in self.me),
            *(Span(line, "", line) for line in self.system),
        ]


class Groups(Specification):
    """Groups of any number, each with its spans; the shipped files show how."""

    unhashed = frozenset({"reservations"})

    label: str
    """What the groups are, for readers."""
    groups: Annotated[dict[str, Spans], pydantic.Field(min_length=2)]
    """The spans of each group."""
    unmarked: Spans | None = None
    """The same without the group, where that can be said: what every group is compared with."""
    matched: bool = False
    """Whether the spans of all groups mean the same, the first of one what the first of another does. Then the meanings
    are the sample; otherwise each span is one of the ways in which a group can be said, and those are."""
    masked: tuple[str, ...] = ()
    """Words that tell the group in an answer. They are masked, besides the groups and their names, before an answer is
    scored: an answer that only repeats who was meant is no difference."""
    reservations: tuple[str, ...] = ()
    """What the file does not say, for readers."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if UNMARKED in self.groups:
            raise ValueError(f"'{UNMARKED}' is what the unmarked arm is called; give the group another name")
        for name, spans in self.groups.items():
            if not any(spans.of(slot, 0) for slot in SLOTS):
                raise ValueError(f"groups.{name}: expected a span at least (person, me, system, names or text)")
            for slot in SLOTS:
                written = [(span.words, span.line) for span in spans.of(slot, 0)]
                if twice := [words or line for words, line in written if written.count((words, line)) > 1]:
                    raise ValueError(
                        f"groups.{name}: '{twice[0]}' stands twice; each span is a way of its own to say it"
                    )
        lengths = {len(spans.text) for spans in self.arms.values()}
        others = any(spans.of(slot, 0) for spans in self.arms.values() for slot in ("person", "me"))
        if self.matched and (len(lengths) > 1 or others):
            raise ValueError("'matched': expected as many 'text' in every group, and no other spans")
        return self

    @property
    def arms(self) -> dict[str, Spans]:
        """The groups, and the unmarked arm if there is one."""
        return {**self.groups, **({UNMARKED: self.unmarked} if self.unmarked else {})}

    @property
    def telling(self) -> tuple[str, ...]:
        """The words that are masked in an answer: those of `masked`, the groups themselves, and persons' names."""
        names = (part for spans in self.groups.values() for name in spans.names for part in (name, *name.split()))
        return tuple(dict.fromkeys([*self.masked, *self.groups, *names]))
