"""The paths of data files and workspaces; they never depend on the working directory."""

import os
import re
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
PACKAGE = PACKAGE_FOLDER.name
_CHECKOUT = PACKAGE_FOLDER.parent if (PACKAGE_FOLDER.parent / "pyproject.toml").is_file() else None
_KEY = re.compile(r"[a-z][a-z0-9_.-]*")


def data_folders() -> list[Path]:
    """The folders with data files, in order of precedence: `FAIRNESS_DATA`, the checkout's `data`, the wheel's.

    Raises:
        FairnessError: `FAIRNESS_DATA` is not a folder.
    """
    folders = []
    if setting := os.environ.get("FAIRNESS_DATA"):
        folders.append(Path(setting).expanduser().resolve())
        if not folders[0].is_dir():
            raise FairnessError(f"FAIRNESS_DATA: expected a folder; {setting} is not one")
    folders += [
        folder for folder in (_CHECKOUT and _CHECKOUT / "data", PACKAGE_FOLDER / "data") if folder and folder.is_dir()
    ]
    return folders


def data_file(name: str) -> Path:
    """The path of the data file `name` (a path inside a data folder).

    Raises:
        FairnessError: no data folder has such a file.
    """
    for folder in data_folders():
        if (folder / name).is_file():
            return folder / name
    raise FairnessError(f"{name}: not found in the data folders ({', '.join(map(str, data_folders()))})")


def yaml_files(kind: str) -> dict[str, Path]:
    """The YAML files of `kind` (dimensions, models, corpora, profiles) by key, the file's stem; sorted.

    Raises:
        FairnessError: a stem is not a valid key.
    """
    files: dict[str, Path] = {}
    for folder in reversed(data_folders()):
        files |= {path.stem: path for path in (folder / kind).glob("*.yaml")}
    for key, path in files.items():
        check_key(key, f"{path}: the file's name is its key")
    return dict(sorted(files.items()))


def check_key(key: str, where: str) -> None:
    """Checks that a key can name a dimension, model, corpus or profile.

    Raises:
        FairnessError: it has other characters than lower-case letters, digits, `_`, `.` and `-`.
    """
    if not _KEY.fullmatch(key):
        raise FairnessError(f"{where}: expected lower-case letters, digits, _ . -; found '{key}'")


def workspace_folder(profile: str) -> Path:
    """The folder for everything that one profile makes: `$FAIRNESS_HOME/<profile>`.

    Without `FAIRNESS_HOME` it is in `data/lake` of the checkout, or in `~/.fairness-pipeline` of an installed package.

    Raises:
        FairnessError: the path cannot be a folder, or is an address.
    """
    return home_folder() / profile


def cache_folder() -> Path:
    """The folder that all profiles share, for downloads and for checksums of large files."""
    return home_folder() / ".cache"


def home_folder() -> Path:
    """The folder of all workspaces, `$FAIRNESS_HOME`.

    Raises:
        FairnessError: the path cannot be a folder, or is an address.
    """
    default = _CHECKOUT / "data" / "lake" if _CHECKOUT else Path.home() / ".fairness-pipeline"
    setting = os.environ.get("FAIRNESS_HOME")
    if setting and "://" in setting:
        raise FairnessError(
            f"FAIRNESS_HOME: expected a folder, found the address {setting.split('://')[0]}://...; a workspace needs a "
            "file system. Write its tables and reports there with: fairness-pipeline publish ADDRESS"
        )
    home = Path(setting or default).expanduser().resolve()
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    if not existing.is_dir():
        raise FairnessError(f"FAIRNESS_HOME: expected a folder, or one that can be made; {existing} is a file")
    return home
