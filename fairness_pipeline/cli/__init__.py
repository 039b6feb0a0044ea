"""The command `fairness-pipeline`. Commands that all studies share have one file each; a study adds its own."""

import argparse
import gc
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from types import FrameType

from fairness_pipeline import __version__
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import visible

_COMMANDS = ("audit", "init", "run", "results", "sql", "check", "report", "view", "evidence", "publish", "ui", "forget")


def main(words: list[str] | None = None) -> None:
    """Runs the command line.

    It exits with 0 on success, 1 if something failed, 2 if the call was wrong, and 3 if `--fail-on` closes the gate.
    """
    gc.set_threshold(20_000, 50, 50)  # what is loaded at the start holds no cycles, and each search visits all of it
    warnings.formatwarning = _told
    _end_in_order()
    try:
        words = sys.argv[1:] if words is None else words
        arguments = _parser(words[0] if words else "").parse_args(words)
        status = arguments.command(arguments)
    except FairnessError as error:
        print(f"fairness-pipeline: {visible(str(error), lines=True)}", file=sys.stderr)
        status = 1
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except KeyboardInterrupt:
        print("\nfairness-pipeline: stopped; run the same command again to go on from here", file=sys.stderr)
        status = 130
    sys.exit(status)


def _end_in_order() -> None:
    """Lets the signals of a service manager, and of a terminal that closes, end a command as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # `nohup` ignores the second
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _told(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """A warning as a user reads it: without the line of code for warnings that are meant for users."""
    where = "" if issubclass(category, FutureWarning) else f"{filename}:{lineno}: {category.__name__}: "
    return f"fairness-pipeline: {where}{message}\n"


def _parser(named: str = "") -> argparse.ArgumentParser:
    """The command line; only with the command that is `named`, if all studies share it: then no study need be
    loaded for it."""
    from fairness_pipeline.cli.arguments import Once, profile
    from fairness_pipeline.project.project import profile_of_environment
    from fairness_pipeline.project.study import studies

    parser = argparse.ArgumentParser(
        prog="fairness-pipeline",
        description="Audit dialogue models, language models, sentiment systems and text classifiers for social bias.",
        epilog="The shortest way: fairness-pipeline audit MODEL (a folder, an id, an address, a file of answers).",
    )
    parser.add_argument("--version", action="version", version=f"fairness-pipeline {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, default_profile: str | None = None
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.register("action", None, Once)
        added.add_argument(
            "--profile",
            type=profile,
            default=default_profile or profile_of_environment(),
            help="which profile (default: %(default)s)",
        )
        added.set_defaults(command=run)
        return added

    for name in [named] if named in _COMMANDS else _COMMANDS:
        import_module(f"fairness_pipeline.cli.{name}").add(command)
    if named in _COMMANDS:
        return parser
    for study in studies():
        if module := study.load("commands"):
            module.add_commands(command)
    return parser
