"""Where data files and workspaces lie; never resolved from the working directory."""

import os
import re
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError

_PACKAGE = Path(__file__).resolve().parents[1]
PACKAGE = _PACKAGE.name
_CHECKOUT = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else None
_KEY = re.compile(r"[a-z][a-z0-9_.-]*")


def data_folders() -> list[Path]:
    """The folders that hold data files, the one that wins first: `FAIRNESS_DATA`, the checkout's `data`, the wheel's.

    Raises:
        FairnessError: `FAIRNESS_DATA` names no folder.
    """
    folders = []
    if named := os.environ.get("FAIRNESS_DATA"):
        folders.append(Path(named).expanduser().resolve())
        if not folders[0].is_dir():
            raise FairnessError(f"FAIRNESS_DATA: expected a folder, {named} is none")
    folders += [
        folder for folder in (_CHECKOUT and _CHECKOUT / "data", _PACKAGE / "data") if folder and folder.is_dir()
    ]
    return folders


def data_file(name: str) -> Path:
    """The data file `name` (a path inside a data folder).

    Raises:
        FairnessError: no data folder holds it.
    """
    for folder in data_folders():
        if (folder / name).is_file():
            return folder / name
    raise FairnessError(f"{name}: in none of the data folders ({', '.join(map(str, data_folders()))})")


def yaml_files(kind: str) -> dict[str, Path]:
    """Key (the file's stem) to path of every YAML file of `kind` (dimensions, models, corpora, profiles), sorted.

    Raises:
        FairnessError: a stem is no valid key.
    """
    found: dict[str, Path] = {}
    for folder in reversed(data_folders()):
        found |= {path.stem: path for path in (folder / kind).glob("*.yaml")}
    for key, path in found.items():
        check_key(key, f"{path}: the file's name is its key")
    return dict(sorted(found.items()))


def check_key(key: str, where: str) -> None:
    """Refuses what cannot be the key of a dimension, model, corpus or profile.

    Raises:
        FairnessError: it holds other than lower-case letters, digits, `_`, `.` and `-`.
    """
    if not _KEY.fullmatch(key):
        raise FairnessError(f"{where}: expected lower-case letters, digits, _ . -; found '{key}'")


def workspace_folder(profile: str) -> Path:
    """The folder that holds all that one profile makes: `$FAIRNESS_HOME/<profile>`.

    Without `FAIRNESS_HOME`: `data/lake` of the checkout, or `~/.fairness-pipeline` where the package was installed.

    Raises:
        FairnessError: that cannot be a folder.
    """
    return _home() / profile


def cache_folder() -> Path:
    """The folder that all profiles share: downloads, checksums of large files."""
    return _home() / ".cache"


def _home() -> Path:
    default = _CHECKOUT / "data" / "lake" if _CHECKOUT else Path.home() / ".fairness-pipeline"
    home = Path(os.environ.get("FAIRNESS_HOME") or default).expanduser().resolve()
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    if not existing.is_dir():
        raise FairnessError(f"FAIRNESS_HOME: expected a folder, or one that can be made; {existing} is a file")
    return home
