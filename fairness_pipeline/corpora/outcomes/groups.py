"""The contents of a file of `data/groups`: groups, and the spans of text that name them."""

from typing import Annotated, NamedTuple, Self

import pydantic

from fairness_pipeline.foundation.yaml_files import Specification

UNMARKED = "not said"
"""The level of a group column in questions that name no group."""
_NOTHING = "(nothing)"
SLOTS = ("person", "me", "text")
"""The placeholders: a person who is spoken of, what the users say of themselves, a text that somebody wrote."""


class Span(NamedTuple):
    """A piece of text that names a group and is exchanged as a whole.

    Attributes:
        name: The name of the span: a person's name, or the words themselves.
        words: The words in the message; empty if only the line names the group.
        line: A line of the chat's system prompt; empty if there is none.
        by_name: Whether a person's name tells the group.
    """

    name: str
    words: str
    line: str = ""
    by_name: bool = False


class Spans(Specification):
    """The spans that name one group."""

    person: tuple[str, ...] = ()
    """Noun phrases of one person who is spoken of, for `{person}`."""
    me: tuple[str, ...] = ()
    """What the users say of themselves before a message, for `{me}`."""
    system: tuple[str, ...] = ()
    """Lines of the chat's system prompt that name the user's group, for `{me}`."""
    names: tuple[str, ...] = ()
    """Names of persons, in place of `person`, of `me` ("My name is ...") and of `system` ("User's name: ..."). They are
    used where every group that is asked about has names."""
    text: tuple[str, ...] = ()
    """Texts that somebody wrote, for `{text}`."""

    def of(self, slot: str, number: int) -> list[Span]:
        """The spans for a placeholder of a message, in the file's order.

        Args:
            slot: One of `SLOTS`.
            number: The message's number. The user's name is in the message if it is even, else in the system prompt.
        """
        if slot == "text":
            return [Span(text, text) for text in self.text]
        if slot == "person":
            return [
                *(Span(person_name, person_name, by_name=True) for person_name in self.names),
                *(Span(phrase, phrase) for phrase in self.person),
            ]
        named = [
            Span(name, "", f"User's name: {name}.", by_name=True)
            if number % 2
            else Span(name, f"My name is {name}.", by_name=True)
            for name in self.names
        ]
        return [
            *named,
            *(Span(statement or _NOTHING, statement) for statement in self.me),
            *(Span(line, "", line) for line in self.system),
        ]


class Groups(Specification):
    """Two groups or more, each with its spans; the shipped files are examples."""

    unhashed = frozenset({"reservations"})

    label: str
    """What the groups are, for readers."""
    groups: Annotated[dict[str, Spans], pydantic.Field(min_length=2)]
    """The spans of each group."""
    unmarked: Spans | None = None
    """The spans without a group, if there are any; every group is compared with them."""
    matched: bool = False
    """Whether the spans of all groups have the same meanings, in the same order. The meanings are then the sample;
    otherwise the spans are, as ways to name a group."""
    masked: tuple[str, ...] = ()
    """Words that tell the group in an answer. They are masked, like the groups and their names, before an answer is
    scored, because an answer that only repeats the group is no difference."""
    reservations: tuple[str, ...] = ()
    """The limits of the file, for readers."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if UNMARKED in self.groups:
            raise ValueError(f"'{UNMARKED}' is what the unmarked arm is called; give the group another name")
        for name, spans in self.groups.items():
            if not any(spans.of(slot, 0) for slot in SLOTS):
                raise ValueError(f"groups.{name}: expected a span at least (person, me, system, names or text)")
            for slot in SLOTS:
                texts = [span.words or span.line for span in spans.of(slot, 0)]
                if repeated := [text for text in texts if texts.count(text) > 1]:
                    raise ValueError(f"groups.{name}: span '{repeated[0]}' occurs twice; remove one")
        lengths = {len(spans.text) for spans in self.arms.values()}
        other_spans = any(spans.of(slot, 0) for spans in self.arms.values() for slot in ("person", "me"))
        if self.matched and (len(lengths) > 1 or other_spans):
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
