"""Contexts put together from frames and persons: what a model is asked that has no corpus of its own."""

from collections.abc import Iterator
from typing import Self

import pydantic

from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import Specification, load

_PERSON = "{person}"


class NamedGroup(Specification):
    """A dimension's `persons`, who are put into the frames."""

    persons: tuple[str, ...]
    """Noun phrases, each with one word of the dimension's list."""


class FramedContexts(Specification):
    """A file of `data/contexts`; the file that ships explains its keys.

    Examples:
        >>> made = FramedContexts(frames=["{person} sings."], dimensions={"gender": {"persons": ["my aunt"]}})
        >>> list(made.texts())
        ['My aunt sings.']
    """

    frames: tuple[str, ...]
    """Texts with a `{person}`."""
    dimensions: dict[str, NamedGroup]
    """By dimension."""

    @pydantic.field_validator("frames")
    @classmethod
    def _have_a_place(cls, frames: tuple[str, ...]) -> tuple[str, ...]:
        for frame in frames:
            if _PERSON not in frame:
                raise ValueError(f"expected {_PERSON} in each, found none in '{frame}'")
        return frames

    @classmethod
    def load(cls, name: str) -> Self:
        """Those in the data file `name`; raises FairnessError if there is none or it is wrong."""
        return load(cls, data_file(name))

    def texts(self) -> Iterator[str]:
        """Every frame with every person, dimension by dimension."""
        for group in self.dimensions.values():
            for frame in self.frames:
                for person in group.persons:
                    text = frame.replace(_PERSON, person)
                    yield text[0].upper() + text[1:]
