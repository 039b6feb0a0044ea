"""Contexts built from frames and persons, for models that have no corpus of their own."""

from collections.abc import Iterator
from typing import Self

import pydantic

from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import Specification, load

_PERSON = "{person}"


class NamedGroup(Specification):
    """The `persons` of a dimension, who fill the frames."""

    persons: tuple[str, ...]
    """Noun phrases or names of one person, each with one word of the dimension's `pairs` or `further`."""


class FramedContexts(Specification):
    """A file of `data/contexts`; the shipped file explains its keys.

    Examples:
        >>> made = FramedContexts(frames=["{person} sings."], dimensions={"gender": {"persons": ["my aunt"]}})
        >>> list(made.texts())
        [('gender', 'My aunt sings.')]
    """

    frames: tuple[str, ...]
    """Texts with a `{person}` placeholder."""
    dimensions: dict[str, NamedGroup]
    """The persons, by dimension."""

    @pydantic.field_validator("frames")
    @classmethod
    def _have_a_place(cls, frames: tuple[str, ...]) -> tuple[str, ...]:
        for frame in frames:
            if _PERSON not in frame:
                raise ValueError(f"expected {_PERSON} in each, found none in '{frame}'")
        return frames

    @classmethod
    def load(cls, name: str) -> Self:
        """Loads the contexts in the data file `name`; raises FairnessError if it does not exist or is wrong."""
        return load(cls, data_file(name))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every frame with every person, and the dimension that it is for, one dimension after the other."""
        for dimension, group in self.dimensions.items():
            for frame in self.frames:
                for person in group.persons:
                    text = frame.replace(_PERSON, person)
                    yield dimension, text[0].upper() + text[1:]
