"""What declares an architecture of systems or classifiers: what its file may say, and where it lives."""

from collections.abc import Sequence
from typing import NamedTuple

import pydantic


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: Of its kind's folder. Empty for a file of what somebody else's made.
        section: Of a file, if it has one of its own.
        needed: Whether that section must be there; what it holds has defaults otherwise.
        trained: Whether it is trained here.
        libraries: Whose versions decide what it gives.
    """

    module: str
    section: str | None = None
    needed: bool = False
    trained: bool = False
    libraries: tuple[str, ...] = ()

    def check_sections(self, name: str, file: pydantic.BaseModel, sections: Sequence[str]) -> None:
        """Refuses a section that the architecture does not take, and the lack of one that it needs.

        Args:
            name: The architecture's.
            file: What was read.
            sections: All that files of its kind may have.

        Raises:
            ValueError: says which, for pydantic.
        """
        for section in sections:
            if getattr(file, section) is not None and section != self.section:
                raise ValueError(f"architecture '{name}' does not take '{section}'")
        if self.needed and getattr(file, self.section or "") is None:
            raise ValueError(f"architecture '{name}' needs '{self.section}'")
