"""The command line as a whole: few commands, each with an example, and the names of version 0.1."""

import argparse
import shlex
import warnings
from collections.abc import Iterator

import pytest

from fairness_pipeline.cli import _parser, with_present_names
from fairness_pipeline.cli.console import RunDisplay
from fairness_pipeline.lineage.plan import Outcome, Step


def parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yields each command with its parser, and each kind of `export`."""
    choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not choices:
        yield name.strip(), parser
    for word, subparser in [pair for commands in choices for pair in commands.items()]:
        yield from parsers(subparser, f"{name} {word}")


def test_the_help_names_every_command_in_a_group() -> None:
    text = _parser().format_help()
    names = {name.split()[0] for name, _ in parsers(_parser())}
    assert len(names) <= 16
    listed = {line.split()[0] for line in text.splitlines() if line.startswith("  ") and not line.startswith("  -")}
    assert listed == names
    assert max(map(len, text.splitlines())) <= 90


@pytest.mark.parametrize(("name", "parser"), [pytest.param(*pair, id=pair[0]) for pair in parsers(_parser())])
def test_every_command_shows_an_example_that_parses(name: str, parser: argparse.ArgumentParser) -> None:
    example = (parser.epilog or "").removeprefix("Example: fairness-pipeline ")
    assert example.startswith(name)
    assert _parser().parse_args(shlex.split(example)).command
    undocumented = [action.option_strings for action in parser._actions if not action.help]
    assert not undocumented


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


def test_a_bar_is_removed_when_the_last_step_of_its_unit_ends() -> None:
    display, key = RunDisplay("p", 3, 3), {"model": "m"}
    responses, length, refusal = (Step(name, key, None) for name in ("responses", "length", "refusal"))

    def bars() -> list[tuple[str, float]]:
        return [(task.description, task.completed) for task in display.bars.tasks]

    display.starting([responses, length])
    display.starting([refusal])
    display.progress("length", key)(1, 2, "")
    assert bars() == [("length m", 1), ("refusal m", 0)]
    display.ended(Outcome(responses, "made"))
    assert len(bars()) == 2
    display.ended(Outcome(length, "failed"))
    assert bars() == [("refusal m", 0)]
    display.ended(Outcome(refusal, "skipped"))
    assert not bars()
