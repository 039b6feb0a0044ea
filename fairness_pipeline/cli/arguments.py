"""Defines arguments that several commands share."""

import argparse
import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import yaml_files

if TYPE_CHECKING:
    from fairness_pipeline.lineage.plan import Selection

FORMATS = ("table", "csv", "json", "markdown", "latex")
NAMES, WORSE = "names", "worse"
REFUSABLE = ("biased", "inconclusive", NAMES, WORSE)
"""What may close a gate: verdicts, findings about single names, and gaps that became worse than a baseline's."""


class Once(argparse.Action):
    """Like argparse's default, but a repeated option with another value is an error; argparse would drop one value."""

    _given: Any = None

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Stores the value; raises an `ArgumentError`, which argparse prints, if another value was given before."""
        if self._given not in (None, values):
            raise argparse.ArgumentError(self, f"given twice: '{self._given}' and '{values}'")
        self._given = values
        setattr(namespace, self.dest, values)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select a part of a profile."""
    parser.add_argument("--study", help="only this study")
    parser.add_argument("--dimension", help="only this dimension")
    parser.add_argument("--model", help="only this model, or whatever else the study audits")
    parser.add_argument("--corpus", help="only this corpus")
    parser.add_argument("--condition", help="only this condition of the study `outcomes`")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the output format of rows."""
    parser.add_argument(
        "--format", choices=FORMATS, default="table", help="how rows are printed; CSV and JSON have all columns"
    )


def selection(arguments: argparse.Namespace) -> "Selection":
    """Returns the selected part of a profile."""
    from fairness_pipeline.lineage.plan import Selection

    everything, asset = getattr(arguments, "all", False), getattr(arguments, "select", None)
    values = {axis: getattr(arguments, axis) for axis in ("study", "dimension", "model", "corpus", "condition")}
    return Selection(**values, asset=asset, everything=everything)


def refusals(text: str) -> tuple[str, ...]:
    """Parses what closes the gate, for argparse: names separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in names if name not in REFUSABLE]:
        raise argparse.ArgumentTypeError(f"invalid choice: '{unknown[0]}' (choose from {', '.join(REFUSABLE)})")
    return names


def points(text: str) -> float:
    """Parses percentage points, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"expected percentage points from 0 to 100, found '{text}'")
    return number


def count(text: str) -> int:
    """Parses a number from 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found '{text}'")
    return int(text)


ALL_PAIRS = 1_000_000_000
"""A number larger than any number of pairs."""


def number_of_pairs(text: str) -> int:
    """Parses a number from 1, or `all`, for argparse."""
    return ALL_PAIRS if text == "all" else count(text)


def profile(text: str) -> str:
    """Parses a profile's name, for argparse. An empty name (an unset shell variable) does not mean `sample`."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a profile's name, found an empty text")
    return text


def check_output(path: Path, forms: Collection[str], *, force: bool) -> None:
    """Checks that a file can be written. Raises FairnessError if its ending is not one of `forms`, its folder does not
    exist, or the file exists and may not be replaced."""
    if path.suffix not in forms:
        raise FairnessError(f"--output: expected a file that ends in {' or '.join(forms)}, found {path.name}")
    if not path.absolute().parent.is_dir():
        raise FairnessError(f"--output: there is no folder {path.absolute().parent}; make it, or name another file")
    if path.exists() and not force:
        raise FairnessError(
            f"--output: {path} already exists and may contain entries by hand; choose another file, or add --force"
        )


def add_group_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Adds the options for questions about groups."""
    parser.add_argument(
        "--groups",
        metavar="NAME[,NAME]",
        required=required,
        help=f"groups to ask about: {', '.join(yaml_files('groups'))}, or a YAML file like those of data/groups; two "
        "files are crossed by the names or other wordings that occur in both (race,gender)",
    )
    parser.add_argument(
        "--messages",
        metavar="FILE",
        help="the messages that are asked: YAML as in data/messages, or CSV (default: messages of today)",
    )
    parser.add_argument(
        "--spans",
        metavar="N",
        type=count,
        help="number of wordings (spans) of each group with which a message is asked (default: 1)",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say what the columns of a table are."""
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument(
        "--column",
        metavar="ROLE=COLUMN",
        help="of a table: what a column is (item, group, cluster, name, draw, condition, label, asked, answer, "
        "ignore); of labels: rater, item, label, text, gold, trait",
        **repeatable,
    )
    parser.add_argument(
        "--outcome",
        metavar="COLUMN=KIND",
        help="of a table: an outcome and its kind (yes_no, number, count, rank, signed, preference, text); "
        "`yes_no:VALUE` says which value counts, `A minus B=number` and `A over B=preference` take two columns",
        **repeatable,
    )
    parser.add_argument(
        "--baseline-condition", metavar="VALUE", help="of a table: what other conditions are compared with"
    )
    parser.add_argument("--control-condition", metavar="VALUE", help="of a table: a condition that hides the groups")
