"""How a command, of all studies or of one, is added to the command line."""

import argparse
from collections.abc import Callable
from typing import Protocol


class Command(Protocol):
    """Adds a command with `--profile`, and gives its parser for further arguments."""

    def __call__(
        self, name: str, run: Callable[[argparse.Namespace], int], text: str, /, *, default_profile: str | None = None
    ) -> argparse.ArgumentParser:
        """The command's name, what it does (an exit status comes back), its help, and the profile if not the usual."""
