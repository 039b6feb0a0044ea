"""Refuses to open files of the data folders that an asset did not declare.

Python reports every `open()` to its audit hooks, so no loader has to cooperate. Files that C++ code opens (pyarrow,
torch) escape them: such files are passed as `File`s.
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
from fairness_pipeline.foundation.paths import PACKAGE_FOLDER, data_file, data_folders, home_folder

Files = Collection[File | DataFile]


class UndeclaredRead(FairnessError):
    """An asset opened a data file that is not among its inputs: a change of the file would go unnoticed."""


class _Allowed(NamedTuple):
    """The declared files; their paths; the data folders; folders that may be inside one but hold no data files
    (outputs, code, downloaded models); and the messages about refused files."""

    files: frozenset[File | DataFile]
    paths: tuple[str, ...]
    folders: tuple[str, ...]
    exempt: tuple[str, ...]
    refused: list[str]


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed")
_elsewhere: _Allowed | None = None
"""What is allowed in threads that were started later: their context is empty."""
_caches: list[Callable[[], None]] = []
_last: frozenset[File | DataFile] | None = None

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def remembered(size: int) -> Callable[[F], F]:
    """`lru_cache` for functions that read data files. It is cleared when other files, or other versions of them, are
    declared: a cached value must neither hide that the next asset did not declare its file, nor outlive a change.
    Values that are read while all files are allowed are cached separately."""

    def decorate(function: F) -> F:
        unguarded, guarded = lru_cache(size)(function), lru_cache(size)(function)
        _caches.append(guarded.cache_clear)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return (unguarded if _current() is None else guarded)(*arguments)

        return call  # type: ignore[return-value]

    return decorate


def declare(files: Files | None) -> Token[_Allowed | None]:
    """Makes these the only files of the data folders that this process or thread can open. None allows all.

    Args:
        files: The declared files, and folders whose files are declared.
    """
    global _last, _elsewhere
    allowed = None
    if files is not None:
        _install()
        declared = frozenset(files)
        paths = tuple({str(path) for file in declared for path in (file.path.resolve(), file.path.absolute())})
        code = [PACKAGE_FOLDER, *(Path(path) for path in (sys.prefix, *sys.path, os.environ.get("HF_HOME")) if path)]
        exempt = tuple(f"{path.resolve()}{os.sep}" for path in (home_folder(), *code))
        allowed = _Allowed(declared, paths, tuple(f"{folder}{os.sep}" for folder in data_folders()), exempt, [])
        if declared != _last:
            _last = declared
            for clear in _caches:
                clear()
    _elsewhere = allowed
    return _allowed.set(allowed)


def read_once(name: str, read: Callable[[Path], R]) -> R:
    """Reads a data file, once per process as long as the file is unchanged.

    Args:
        name: The file's name in its data folder.
        read: Called with the file's path.

    Raises:
        UndeclaredRead: the file is not declared here.
    """
    path = data_file(name)
    _check(path)
    status = path.stat()
    content: R = _read_once(read, path, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    return content


@lru_cache(32)
def _read_once(read: Callable[[Path], Any], path: Path, *state: int) -> Any:
    return read(path)


@contextmanager
def only(files: Files | None) -> Iterator[None]:
    """Declares files while the block runs.

    Raises:
        UndeclaredRead: another file was opened, even if the block treated it as missing.
    """
    global _elsewhere
    before = _elsewhere
    token = declare(files)
    allowed = _allowed.get()
    try:
        yield
    except Exception as error:
        if allowed and allowed.refused and not isinstance(error, UndeclaredRead):
            raise UndeclaredRead(allowed.refused[0]) from error
        raise
    finally:
        _allowed.reset(token)
        _elsewhere = before
    if allowed and allowed.refused:
        raise UndeclaredRead(allowed.refused[0])


@contextmanager
def freely() -> Iterator[None]:
    """Allows all files while the block runs, for work that decides no table, such as the cost of an answer."""
    token = _allowed.set(None)
    try:
        yield
    finally:
        _allowed.reset(token)


def _current() -> _Allowed | None:
    return _allowed.get(_elsewhere)


def declared() -> Files | None:
    """The files that are declared here, to declare them in another process; None if all are allowed."""
    allowed = _current()
    return allowed.files if allowed else None


@cache
def _install() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _current() is not None and isinstance(arguments[0], str | bytes | os.PathLike):
        _check(Path(os.fsdecode(arguments[0])))


def _check(file: Path) -> None:
    """Refuses a file of a data folder that is not declared."""
    if (allowed := _current()) is None:
        return
    for path in {str(file.resolve()), str(file.absolute())}:
        folder = max((folder for folder in allowed.folders if path.startswith(folder)), key=len, default=None)
        if folder is None or any(path.startswith(exempt) for exempt in allowed.exempt if exempt.startswith(folder)):
            continue
        if not any(path == declared_path or path.startswith(declared_path + os.sep) for declared_path in allowed.paths):
            allowed.refused.append(
                f"{path.removeprefix(folder)} is read but is not an input of the asset, so a change would go "
                "unnoticed; declare it as a DataFile among its inputs"
            )
            raise UndeclaredRead(allowed.refused[-1])
