"""`import`: copies a file that was filled in elsewhere into the workspace; its columns decide which study reads it."""

import argparse
import shutil
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.paths import check_key
from fairness_pipeline.workspace.imports import store_import


class Import(NamedTuple):
    """A kind of file that a study takes.

    Args:
        rows: The kind of its rows, such as `responses`.
        columns: The columns that it needs, in words.
        fits: Whether a file with these columns is of this kind.
        run: Imports the file, from the arguments of `import`.
        options: The options besides `--name` that it reads.
    """

    rows: str
    columns: str
    fits: Callable[[Collection[str]], bool]
    run: Callable[[argparse.Namespace], int]
    options: Collection[str] = ()


_OPTIONS = ("dimension", "corpus", "keep_empty")


def add_import(command: Command, kinds: Sequence[Import]) -> None:
    """Adds the command, for files of these kinds."""
    files = "; ".join(f"{kind.rows}: {kind.columns}" for kind in kinds)
    parser = command(
        "import",
        partial(_import, kinds=kinds),
        "Take answers, scores, predictions or labels from a file.",
        example="answers.csv --name my-bot",
    )
    parser.add_argument("file", help=f"its columns say what it holds. {files}")
    parser.add_argument("--name", required=True, help="a name for the model, system, classifier or annotators")
    parser.add_argument("--dimension", help="which dimension, where neither the file nor the profile says it")
    parser.add_argument("--corpus", help="which corpus, where the profile has several")
    parser.add_argument("--keep-empty", action="store_true", help="take empty responses as responses without words")


def _import(arguments: argparse.Namespace, kinds: Sequence[Import]) -> int:
    from fairness_pipeline.corpora.outcomes.table_files import column_names

    check_key(arguments.name, "--name")
    path = Path(arguments.file)
    if not path.is_file():
        raise FairnessError(f"{path}: there is no such file; check the path")
    columns = column_names(path)
    kind = next((kind for kind in kinds if kind.fits(columns)), None)
    if kind is None:
        known = "; ".join(f"{kind.columns} ({kind.rows})" for kind in kinds)
        raise FairnessError(
            f"{path}: expected the columns of what `fairness-pipeline export` writes, filled in: {known}; found "
            f"{', '.join(columns)}. For any other table: fairness-pipeline audit {path}"
        )
    for option in _OPTIONS:
        if getattr(arguments, option) and option not in kind.options:
            raise FairnessError(f"--{option.replace('_', '-')} is not for {kind.rows}; leave it out")
    return kind.run(arguments)


def chosen(option: str, asked: str | None, known: Collection[str], profile: str) -> str:
    """Returns the value of an option, or its only possible value.

    Args:
        option: The option, such as `--corpus`.
        asked: Its value, if it was given.
        known: Its possible values.
        profile: The profile's name.

    Raises:
        FairnessError: the value is unknown, or missing although several are possible.
    """
    if asked is None and len(known) == 1:
        return next(iter(known))
    if not asked:
        raise FairnessError(f"{option} is needed in profile '{profile}'; known: {', '.join(known)}")
    if asked not in known:
        raise FairnessError(unknown(option.removeprefix("--"), asked, known, f"profile '{profile}'"))
    return asked


def check_name(name: str, profile: str, *, taken: bool, usage: str = "") -> None:
    """Refuses a name for an imported subject if it is not a key, or if the profile uses it itself.

    Args:
        name: The name.
        profile: The profile.
        taken: Whether the profile uses the name itself.
        usage: What it uses the name for.

    Raises:
        FairnessError: the name cannot be used.
    """
    check_key(name, "--name")
    if taken:
        used = f"has '{name}' already" + (f" ({usage})" if usage else "")
        raise FairnessError(f"--name: profile '{profile}' {used}; choose another name")


def import_file(path: Path, target: Path, workspace: Path, content: str, before: Collection[Path] = ()) -> None:
    """Copies a user's file into the workspace and deletes what it replaces.

    Args:
        path: The file, already checked.
        target: The path to copy it to.
        workspace: The workspace.
        content: The content of the file, for the message.
        before: Other files that may have been imported earlier for the same subject.
    """
    if store_import(path, target, workspace, partial(shutil.copyfile, path), before):
        print(f"replaced {content} that were imported before")
