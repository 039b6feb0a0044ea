"""Refuses files of the data folders that an asset did not declare, whoever opens them.

Python reports every `open()` to its audit hooks, so no loader has to help. What C++ opens by itself (pyarrow, torch)
slips through: such files are handed on as `File`s.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import DataFile, File
from fairness_pipeline.foundation.paths import data_file, data_folders, home_folder

Files = Collection[File | DataFile]


class UndeclaredRead(FairnessError):
    """An asset opened a data file that is none of its inputs: a change of the file would go unnoticed."""


class _Allowed(NamedTuple):
    """The declared files; where they lie; the data folders; the folder of outputs, which may lie in one; and what was
    refused."""

    files: frozenset[File | DataFile]
    paths: tuple[str, ...]
    folders: tuple[str, ...]
    home: str
    refused: list[str]


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed", default=None)
_caches: list[Callable[[], None]] = []
_last: frozenset[File | DataFile] | None = None

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def remembered(size: int) -> Callable[[F], F]:
    """`lru_cache` for what is read from data files. It is emptied when other files, or other versions of them, are
    declared: what one asset read may neither hide that the next did not declare it, nor outlive a change. What is read
    where all files are allowed is kept apart."""

    def decorate(function: F) -> F:
        anywhere, guarded = lru_cache(size)(function), lru_cache(size)(function)
        _caches.append(guarded.cache_clear)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return (anywhere if _allowed.get() is None else guarded)(*arguments)

        return call  # type: ignore[return-value]

    return decorate


def declare(files: Files | None) -> Token[_Allowed | None]:
    """From now on no other file of a data folder can be opened in this process or thread. None allows all.

    Args:
        files: The declared files, and folders whose files are declared.
    """
    global _last
    allowed = None
    if files is not None:
        _install()
        declared = frozenset(files)
        paths = tuple(str(file.path.resolve()) for file in declared)
        folders = tuple(f"{folder}{os.sep}" for folder in data_folders())
        allowed = _Allowed(declared, paths, folders, f"{home_folder()}{os.sep}", [])
        if declared != _last:
            _last = declared
            for clear in _caches:
                clear()
    return _allowed.set(allowed)


def read_once(name: str, read: Callable[[Path], R]) -> R:
    """What a function reads of a data file: once a process, as long as the file is unchanged.

    Args:
        name: The file's name in its data folder.
        read: Reads it.

    Raises:
        UndeclaredRead: the file is not declared here.
    """
    path = data_file(name)
    _check(path)
    status = path.stat()
    found: R = _read_once(read, path, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    return found


@lru_cache(32)
def _read_once(read: Callable[[Path], Any], path: Path, *state: int) -> Any:
    return read(path)


@contextmanager
def only(files: Files | None) -> Iterator[None]:
    """`declare` while the block runs.

    Raises:
        UndeclaredRead: another file was opened, even if the block has taken that for a missing file.
    """
    token = declare(files)
    allowed = _allowed.get()
    try:
        yield
    finally:
        _allowed.reset(token)
    if allowed and allowed.refused:
        raise UndeclaredRead(allowed.refused[0])


def declared() -> Files | None:
    """The files that are declared here, for work that goes on elsewhere; None if all are allowed."""
    allowed = _allowed.get()
    return allowed.files if allowed else None


@cache
def _install() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _allowed.get() is not None and isinstance(arguments[0], str | bytes):
        _check(Path(os.fsdecode(arguments[0])))


def _check(file: Path) -> None:
    """Refuses a file of a data folder that is not declared."""
    allowed = _allowed.get()
    path = str(file.resolve())
    if allowed is None or not path.startswith(allowed.folders) or path.startswith(allowed.home):
        return
    if not any(path == own or path.startswith(own + os.sep) for own in allowed.paths):
        folder = next(folder for folder in allowed.folders if path.startswith(folder))
        allowed.refused.append(
            f"{path.removeprefix(folder)} is read, and is no input of the asset: a change of it would go unnoticed; "
            "declare it as a DataFile among the asset's inputs"
        )
        raise UndeclaredRead(allowed.refused[-1])
