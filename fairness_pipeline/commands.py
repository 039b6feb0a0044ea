"""How a study adds commands of its own to the command line."""

import argparse
from collections.abc import Callable
from typing import Protocol


class Command(Protocol):
    """Adds a command with `--profile`, and gives its parser for further arguments."""

    def __call__(self, name: str, run: Callable[[argparse.Namespace], int], text: str, /) -> argparse.ArgumentParser:
        """The command's name, what it does (an exit status comes back), and its help."""
