"""What several commands take."""

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.errors import FairnessError

if TYPE_CHECKING:
    from fairness_pipeline.lineage.plan import Selection

FORMATS = ("table", "csv", "json")


class Once(argparse.Action):
    """As argparse does by itself, but another value for the same option is an error: else one is dropped, unsaid."""

    _given: Any = None

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Takes the value; raises an `ArgumentError`, which argparse prints, where it was given another before."""
        if self._given not in (None, values):
            raise argparse.ArgumentError(self, f"given twice: '{self._given}' and '{values}'")
        self._given = values
        setattr(namespace, self.dest, values)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Which part of a profile is meant."""
    parser.add_argument("--study", help="only this study")
    parser.add_argument("--dimension", help="only this dimension")
    parser.add_argument("--model", help="only this model, or whatever else the study audits")


def add_format(parser: argparse.ArgumentParser) -> None:
    """How rows are printed."""
    parser.add_argument("--format", choices=FORMATS, default="table")


def selection(arguments: argparse.Namespace) -> "Selection":
    """The part of a profile that is asked for."""
    from fairness_pipeline.lineage.plan import Selection

    everything, asset = getattr(arguments, "all", False), getattr(arguments, "select", None)
    return Selection(arguments.study, arguments.dimension, arguments.model, asset, everything)


def count(text: str) -> int:
    """A number from 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found '{text}'")
    return int(text)


ALL_PAIRS = 1_000_000_000
"""More than there are."""


def number_of_pairs(text: str) -> int:
    """A number from 1, or `all`, for argparse."""
    return ALL_PAIRS if text == "all" else count(text)


def profile(text: str) -> str:
    """A profile's name, for argparse; an empty one (a shell variable that is not set) is no choice of `sample`."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a profile's name, found an empty text")
    return text


def check_output(path: Path, forms: Collection[str], *, force: bool) -> None:
    """Raises FairnessError if a file cannot be written: its ending is none of `forms`, there is no such folder, or
    the file is there and is to stay."""
    if path.suffix not in forms:
        raise FairnessError(f"--output: expected a file that ends in {' or '.join(forms)}, found {path.name}")
    if not path.absolute().parent.is_dir():
        raise FairnessError(f"--output: there is no folder {path.absolute().parent}; make it, or name another file")
    if path.exists() and not force:
        raise FairnessError(
            f"--output: {path} is there already, and may hold what was filled in; name another file, or say --force"
        )
