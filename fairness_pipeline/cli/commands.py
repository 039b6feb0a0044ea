"""Defines the interface for adding a command, shared or of one study, to the command line."""

import argparse
from collections.abc import Callable
from typing import Protocol


class Command(Protocol):
    """Adds a command with `--profile`, and returns its parser for further arguments."""

    def __call__(
        self,
        name: str,
        run: Callable[[argparse.Namespace], int],
        text: str,
        /,
        *,
        example: str = "",
        default_profile: str | None = None,
    ) -> argparse.ArgumentParser:
        """Takes the command's name, its function (which returns an exit status), its help, the arguments of an example
        call, and its default profile. The name `export KIND` adds a kind of file that `export` writes."""
