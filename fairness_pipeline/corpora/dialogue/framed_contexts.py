"""Contexts built from frames and persons, for models that have no corpus of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pydantic

from fairness_pipeline.corpora.specification import DataFile
from fairness_pipeline.foundation.yaml_files import Specification, load

_PERSON = "{person}"
_BEGIN, _END = "\ue000", "\ue001"
"""Marks around a person, while a text is cleaned."""


class NamedGroup(Specification):
    """The `persons` of a dimension, who fill the frames."""

    persons: tuple[str, ...]
    """Noun phrases or names of one person, each with one word of the dimension's `pairs` or `further`. A person whose
    word has no counterpart (by the rules of sense) gives no pair, and is reported with the reason."""


class FramedContexts(DataFile):
    """A file of `data/contexts`; the shipped file explains its keys.

    Examples:
        >>> contexts = FramedContexts(frames=["{person} sings."], dimensions={"gender": {"persons": ["my aunt"]}})
        >>> list(contexts.texts())
        [('gender', 0, 'My aunt sings.')]
    """

    frames: tuple[str, ...]
    """Texts with a `{person}` placeholder. Their own words are never exchanged; a frame that itself tells a group gives
    no pair, and is reported with the reason."""
    dimensions: dict[str, NamedGroup]
    """The persons, by dimension."""

    @pydantic.field_validator("frames")
    @classmethod
    def _have_placeholders(cls, frames: tuple[str, ...]) -> tuple[str, ...]:
        for frame in frames:
            if _PERSON not in frame:
                raise ValueError(f"expected {_PERSON} in each, found none in '{frame}'")
        return frames

    def texts(self) -> Iterator[tuple[str, int, str]]:
        """Every frame with every person, dimension by dimension: the dimension, the frame's number and the text."""
        for dimension, group in self.dimensions.items():
            for number, frame in enumerate(self.frames):
                for person in group.persons:
                    yield dimension, number, _capitalised(frame.replace(_PERSON, person))

    def spans(self, dimension: str, prepare: Callable[[str], str] = str) -> dict[str, list[tuple[int, int]]]:
        """The character spans of a dimension's persons, by text.

        Args:
            dimension: The dimension; one without persons has no texts.
            prepare: Prepares a text as the corpus's reader does.

        Examples:
            >>> contexts = FramedContexts(frames=["{person} sings."], dimensions={"gender": {"persons": ["my aunt"]}})
            >>> contexts.spans("gender")
            {'My aunt sings.': [(0, 7)]}
        """
        spans_by_text: dict[str, list[tuple[int, int]]] = {}
        persons = self.dimensions[dimension].persons if dimension in self.dimensions else ()
        for frame in self.frames:
            for person in persons:
                first = _capitalised(person) if frame.startswith(_PERSON) else person
                text = frame.replace(_PERSON, f"{_BEGIN}{first}{_END}", 1).replace(_PERSON, f"{_BEGIN}{person}{_END}")
                pieces = prepare(_capitalised(text)).split(_BEGIN)
                plain, spans = pieces[0], []
                for piece in pieces[1:]:
                    name, _, after = piece.partition(_END)
                    spans.append((len(plain), len(plain) + len(name)))
                    plain += name + after
                spans_by_text.setdefault(plain, spans)
        return spans_by_text


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def read_frames(path: Path) -> FramedContexts:
    """Reads a file of frames and persons."""
    return load(FramedContexts, path)
