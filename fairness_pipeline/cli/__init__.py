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

_GROUPS = {
    "Audit": ("audit", "doctor", "init"),
    "Run": ("run", "check", "forget", "ui"),
    "Read": ("results", "report", "view", "sql"),
    "Hand over": ("export", "import", "evidence", "publish"),
}
_OF_STUDIES = ("doctor", "export", "import")
_COMMANDS = tuple(name for names in _GROUPS.values() for name in names if name not in _OF_STUDIES)
_RENAMED = dict.fromkeys(("--model", "--system", "--classifier", "--annotator"), "--name")


def main(words: list[str] | None = None) -> None:
    """Runs the command line.

    It exits with 0 on success, 1 if something failed, 2 if the call was wrong, and 3 if `--fail-on` closes the gate.
    """
    gc.set_threshold(20_000, 50, 50)  # what is loaded at the start holds no cycles, and each search visits all of it
    warnings.formatwarning = _told
    _end_in_order()
    try:
        words = with_present_names(sys.argv[1:] if words is None else words)
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


def with_present_names(words: list[str]) -> list[str]:
    """A call with the names that its command and options have had since version 0.2; those of 0.1 still work in it.

    Examples:
        >>> with_present_names(["run", "--model", "bot"])
        ['run', '--model', 'bot']
    """
    before, _, kind = words[0].partition("-") if words else ("", "", "")
    if not kind or before not in ("export", "import", "check"):
        return words
    rest = words[1:]
    if before == "import":
        split = [word.partition("=") for word in rest]
        rest = [_RENAMED.get(name, name) + mark + value for name, mark, value in split]
    now = {"export": ["export", kind], "import": ["import"], "check": ["check", "--sentences"]}[before] + rest
    warnings.warn(f"'{words[0]}' is now 'fairness-pipeline {' '.join(now)}'", FutureWarning, stacklevel=1)
    return now


def _parser(named: str = "") -> argparse.ArgumentParser:
    """The command line; only with the command that is `named`, if all studies share it: then no study need be
    loaded for it."""
    from fairness_pipeline.cli.arguments import Once, profile
    from fairness_pipeline.project.project import profile_of_environment
    from fairness_pipeline.project.study import studies

    texts: dict[str, str] = {}
    parser = argparse.ArgumentParser(
        prog="fairness-pipeline",
        usage="fairness-pipeline COMMAND ...",
        description="Audit dialogue models, language models, sentiment systems, text classifiers,\n"
        "annotators and tables of outcomes for social bias.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairness-pipeline {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", help=argparse.SUPPRESS, prog="fairness-pipeline")
    kinds: argparse._SubParsersAction[argparse.ArgumentParser] | None = None

    def command(
        name: str,
        run: Callable[[argparse.Namespace], int],
        text: str,
        *,
        example: str = "",
        default_profile: str | None = None,
    ) -> argparse.ArgumentParser:
        nonlocal kinds
        texts[name] = text
        _, _, kind = name.partition(" ")
        if kind and kinds is None:
            texts["export"] = "Write files for a model, annotators or a training that run elsewhere."
            exports = commands.add_parser("export", description=texts["export"])
            kinds = exports.add_subparsers(required=True, metavar="KIND", title="kinds of files")
        shown = f"Example: fairness-pipeline {name} {example}".rstrip()
        added = (
            kinds.add_parser(kind, help=text, description=text, epilog=shown)
            if kind and kinds
            else commands.add_parser(name, description=text, epilog=shown)
        )
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
    from fairness_pipeline.cli.imports import Import, add_import

    importers: list[Import] = []
    for study in studies():
        if module := study.load("commands"):
            module.add_commands(command)
            importers += getattr(module, "IMPORTS", ())
    add_import(command, importers)
    parser.epilog = _grouped(texts)
    return parser


def _grouped(texts: dict[str, str]) -> str:
    """The commands by what they are for, as the help shows them."""
    lines: list[str] = []
    others = [name for name in texts if " " not in name and name not in sum(_GROUPS.values(), ())]
    for group, names in (*_GROUPS.items(), *([("More", others)] if others else [])):
        lines += [f"{group}:", *(f"  {name:<10}{texts[name]}" for name in names), ""]
    return "\n".join([*lines, "fairness-pipeline COMMAND --help shows a command's options and an example."])
