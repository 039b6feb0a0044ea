"""Declares an architecture of systems or classifiers: what its file may contain, and which module holds its code."""

from collections.abc import Sequence
from typing import NamedTuple

import pydantic


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: The module in the folder of its kind. It is empty if the results come from a file.
        section: The section of the file that belongs to the architecture, if there is one.
        needed: Whether that section is required; otherwise its keys have defaults.
        trained: Whether the pipeline trains it.
        libraries: The libraries that influence its results; their versions are recorded.
    """

    module: str
    section: str | None = None
    needed: bool = False
    trained: bool = False
    libraries: tuple[str, ...] = ()

    def check_sections(self, name: str, file: pydantic.BaseModel, sections: Sequence[str]) -> None:
        """Checks that a file has the section that the architecture needs, and none that it does not take.

        Args:
            name: The architecture's name.
            file: The file as read.
            sections: All sections that files of this kind may have.

        Raises:
            ValueError: a section is missing or not allowed; pydantic reports which one.
        """
        for section in sections:
            if getattr(file, section) is not None and section != self.section:
                raise ValueError(f"architecture '{name}' does not take '{section}'")
        if self.needed and getattr(file, self.section or "") is None:
            raise ValueError(f"architecture '{name}' needs '{self.section}'")
