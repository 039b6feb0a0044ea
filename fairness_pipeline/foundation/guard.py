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
from fairness_pipeline.foundation.paths import PACKAGE_FOLDER, data_file, data_folders, home_folder

Files = Collection[File | DataFile]


class UndeclaredRead(FairnessError):
    """An asset opened a data file that is none of its inputs: a change of the file would go unnoticed."""


class _Allowed(NamedTuple):
    """The declared files; where they lie; the data folders; folders that may lie in one and hold no data files
    (outputs, code, models that were downloaded); and what was refused."""

    files: frozenset[File | DataFile]
    paths: tuple[str, ...]
    folders: tuple[str, ...]
    others: tuple[str, ...]
    refused: list[str]


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed")
_elsewhere: _Allowed | None = None
"""What is allowed in threads that were started meanwhile: their context is empty."""
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
            return (anywhere if _now() is None else guarded)(*arguments)

        return call  # type: ignore[return-value]

    return decorate


def declare(files: Files | None) -> Token[_Allowed | None]:
    """From now on no other file of a data folder can be opened in this process or thread. None allows all.

    Args:
        files: The declared files, and folders whose files are declared.
    """
    global _last, _elsewhere
    allowed = None
    if files is not None:
        _install()
        declared = frozenset(files)
        paths = tuple({str(place) for file in declared for place in (file.path.resolve(), file.path.absolute())})
        code = [PACKAGE_FOLDER, *(Path(place) for place in (sys.prefix, *sys.path, os.environ.get("HF_HOME")) if place)]
        others = tuple(f"{place.resolve()}{os.sep}" for place in (home_folder(), *code))
        allowed = _Allowed(declared, paths, tuple(f"{folder}{os.sep}" for folder in data_folders()), others, [])
        if declared != _last:
            _last = declared
            for clear in _caches:
                clear()
    _elsewhere = allowed
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
    content: R = _read_once(read, path, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    return content


@lru_cache(32)
def _read_once(read: Callable[[Path], Any], path: Path, *state: int) -> Any:
    return read(path)


@contextmanager
def only(files: Files | None) -> Iterator[None]:
    """`declare` while the block runs.

    Raises:
        UndeclaredRead: another file was opened, even if the block has taken that for a missing file.
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
    """For what decides no table, such as what an answer costs: all files may be read here."""
    token = _allowed.set(None)
    try:
        yield
    finally:
        _allowed.reset(token)


def _now() -> _Allowed | None:
    return _allowed.get(_elsewhere)


def declared() -> Files | None:
    """The files that are declared here, for work that goes on elsewhere; None if all are allowed."""
    allowed = _now()
    return allowed.files if allowed else None


@cache
def _install() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _now() is not None and isinstance(arguments[0], str | bytes | os.PathLike):
        _check(Path(os.fsdecode(arguments[0])))


def _check(file: Path) -> None:
    """Refuses a file of a data folder that is not declared."""
    if (allowed := _now()) is None:
        return
    for path in {str(file.resolve()), str(file.absolute())}:
        folder = max((folder for folder in allowed.folders if path.startswith(folder)), key=len, default=None)
        if folder is None or any(path.startswith(other) for other in allowed.others if other.startswith(folder)):
            continue
        if not any(path == declared or path.startswith(declared + os.sep) for declared in allowed.paths):
            allowed.refused.append(
                f"{path.removeprefix(folder)} is read, and is no input of the asset: a change of it would go "
                "unnoticed; declare it as a DataFile among the asset's inputs"
            )
            raise UndeclaredRead(allowed.refused[-1])
