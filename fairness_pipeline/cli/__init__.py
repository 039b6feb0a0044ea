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
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.plain_text import visible

_GROUPS = {
    "Audit": ("audit", "doctor", "init"),
    "Run": ("run", "check", "forget", "ui"),
    "Read": ("results", "report", "view", "sql"),
    "Hand over": ("export", "import", "evidence", "publish"),
}
_STUDY_COMMANDS = ("doctor", "export", "import")
_COMMANDS = tuple(name for names in _GROUPS.values() for name in names if name not in _STUDY_COMMANDS)
_RENAMED = dict.fromkeys(("--model", "--system", "--classifier", "--annotator"), "--name")


def main(words: list[str] | None = None) -> None:
    """Runs the command line.

    It exits with 0 on success, 1 if something failed, 2 if the call was wrong, and 3 if `--fail-on` closes the gate.
    """
    # The modules loaded at the start hold no cycles, yet each collection visits all of them.
    gc.set_threshold(20_000, 50, 50)
    warnings.formatwarning = _format_warning
    _handle_signals()
    try:
        words = with_present_names(sys.argv[1:] if words is None else words)
        arguments, others = _parser(words[0] if words else "").parse_known_args(words)
        if others:
            word = others[0].partition("=")[0]
            options = [option for action in arguments.parser._actions for option in action.option_strings]
            arguments.parser.error(
                visible(unknown("option", word, options) if word.startswith("-") else f"'{word}' is one word too many")
            )
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


def _handle_signals() -> None:
    """Makes SIGTERM (of a service manager) and SIGHUP (of a closing terminal) end a command as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # `nohup` ignores SIGHUP
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Returns a warning for the terminal; warnings for users come without the line of code."""
    location = "" if issubclass(category, FutureWarning) else f"{filename}:{lineno}: {category.__name__}: "
    return f"fairness-pipeline: {location}{message}\n"


def with_present_names(words: list[str]) -> list[str]:
    """Returns a call with the current names of its command and options; names of version 0.1 still work.

    Examples:
        >>> with_present_names(["run", "--model", "bot"])
        ['run', '--model', 'bot']
    """
    command, _, kind = words[0].partition("-") if words else ("", "", "")
    if not kind or command not in ("export", "import", "check"):
        return words
    options = words[1:]
    if command == "import":
        split = [word.partition("=") for word in options]
        options = [_RENAMED.get(name, name) + equals + value for name, equals, value in split]
    current = {"export": ["export", kind], "import": ["import"], "check": ["check", "--sentences"]}[command] + options
    warnings.warn(f"'{words[0]}' is now 'fairness-pipeline {' '.join(current)}'", FutureWarning, stacklevel=1)
    return current


def _parser(selected: str = "") -> argparse.ArgumentParser:
    """Returns the parser of the command line. If all studies share the `selected` command, the parser has only that
    command, and no study is loaded."""
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
        epilog = f"Example: fairness-pipeline {name} {example}".rstrip()
        subparser = (
            kinds.add_parser(kind, help=text, description=text, epilog=epilog)
            if kind and kinds
            else commands.add_parser(name, description=text, epilog=epilog)
        )
        subparser.register("action", None, Once)
        subparser.add_argument(
            "--profile",
            type=profile,
            default=default_profile or profile_of_environment(),
            help="which profile (default: %(default)s)",
        )
        subparser.set_defaults(command=run, parser=subparser)
        return subparser

    for name in [selected] if selected in _COMMANDS else _COMMANDS:
        import_module(f"fairness_pipeline.cli.{name}").add(command)
    if selected in _COMMANDS:
        return parser
    from fairness_pipeline.cli.imports import Import, add_import

    importers: list[Import] = []
    for study in studies():
        if module := study.load("commands"):
            module.add_commands(command)
            importers += getattr(module, "IMPORTS", ())
    add_import(command, importers)
    if selected and not selected.startswith("-") and selected not in commands.choices:
        parser.error(visible(unknown("command", selected, sorted(commands.choices))))
    parser.epilog = _grouped(texts)
    return parser


def _grouped(texts: dict[str, str]) -> str:
    """Returns the commands by purpose, as the help shows them."""
    lines: list[str] = []
    others = [name for name in texts if " " not in name and name not in sum(_GROUPS.values(), ())]
    for group, names in (*_GROUPS.items(), *([("More", others)] if others else [])):
        lines += [f"{group}:", *(f"  {name:<10}{texts[name]}" for name in names), ""]
    return "\n".join([*lines, "fairness-pipeline COMMAND --help shows a command's options and an example."])
