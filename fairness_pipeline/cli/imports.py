"""Code shared by the commands that import a user's file into the workspace."""

import shutil
from collections.abc import Collection
from functools import partial
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import check_key
from fairness_pipeline.workspace.imports import store_import


def check_name(option: str, name: str, profile: str, *, taken: bool, what: str = "") -> None:
    """Refuses a name for an imported subject if it is not a key, or if the profile uses it itself.

    Args:
        option: The option with the name, such as `--model`.
        name: The name.
        profile: The profile.
        taken: Whether the profile uses the name itself.
        what: What it uses the name for.

    Raises:
        FairnessError: the name cannot be used.
    """
    check_key(name, option)
    if taken:
        used = f"has a {option.removeprefix('--')} '{name}' already" + (f" ({what})" if what else "")
        raise FairnessError(f"{option}: profile '{profile}' {used}; choose another name")


def import_file(path: Path, target: Path, workspace: Path, what: str, before: Collection[Path] = ()) -> None:
    """Copies a user's file into the workspace and deletes what it replaces.

    Args:
        path: The file, already checked.
        target: The path to copy it to.
        workspace: The workspace.
        what: The content of the file, for the message.
        before: Other files that may have been imported earlier for the same subject.
    """
    if store_import(path, target, workspace, partial(shutil.copyfile, path), before):
        print(f"{what} that were imported before are replaced")
