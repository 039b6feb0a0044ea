"""Declares an architecture: which sections a model's file needs, and which module holds the code."""

from collections.abc import Collection
from typing import NamedTuple


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: The module in the folder of its kind. It is empty if the results come from a file.
        needs: The sections that a model's file must have.
        may_have: Other sections that it may have.
        libraries: The libraries that influence its results; their versions are recorded.
        trained: Whether the pipeline trains it; of dialogue models their files say so.
        greedy: Whether a dialogue model takes a batch size instead of decoding settings.
    """

    module: str
    needs: Collection[str] = ()
    may_have: Collection[str] = ()
    libraries: tuple[str, ...] = ()
    trained: bool = False
    greedy: bool = False
