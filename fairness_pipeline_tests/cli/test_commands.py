"""The command line as a whole: few commands, each with an example, and the names of version 0.1."""

import argparse
import shlex
import warnings
from collections.abc import Iterator

import pytest

from fairness_pipeline.cli import _parser, with_present_names


def parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command with its parser, also the kinds of `export`."""
    choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not choices:
        yield name.strip(), parser
    for word, inner in [pair for found in choices for pair in found.items()]:
        yield from parsers(inner, f"{name} {word}")


def test_the_help_names_every_command_in_a_group() -> None:
    shown = _parser().format_help()
    names = {name.split()[0] for name, _ in parsers(_parser())}
    assert len(names) <= 16
    listed = {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and not line.startswith("  -")}
    assert listed == names
    assert max(map(len, shown.splitlines())) <= 90


@pytest.mark.parametrize(("name", "parser"), [pytest.param(*each, id=each[0]) for each in parsers(_parser())])
def test_every_command_shows_an_example_that_parses(name: str, parser: argparse.ArgumentParser) -> None:
    example = (parser.epilog or "").removeprefix("Example: fairness-pipeline ")
    assert example.startswith(name)
    assert _parser().parse_args(shlex.split(example)).command
    untold = [action.option_strings for action in parser._actions if not action.help]
    assert not untold


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("export-pairs --output p.csv", "export pairs --output p.csv"),
        ("export-phrase-texts --output p.csv", "export phrase-texts --output p.csv"),
        ("import-responses a.csv --model bot", "import a.csv --name bot"),
        ("import-scores a.csv --system=ours", "import a.csv --name=ours"),
        ("import-predictions a.csv --classifier ours --corpus c", "import a.csv --name ours --corpus c"),
        ("import-annotations a.csv --annotator ann --dimension d", "import a.csv --name ann --dimension d"),
        ("check-sentences a.csv", "check --sentences a.csv"),
    ],
)
def test_names_of_version_0_1_still_work(before: str, now: str) -> None:
    with pytest.warns(FutureWarning, match="is now 'fairness-pipeline"):
        assert with_present_names(before.split()) == now.split()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert with_present_names(now.split()) == now.split()
    assert _parser().parse_args(now.split()).command
