"""Leases: files by which one process at a time, of all machines that share a folder, holds something.

The locks of the system (`flock`) are not enough: two hosts that mount one folder can both hold the same one. Creating a
file that must not exist is exclusive everywhere.

A lease is a folder of files `1`, `2`, and so on. The highest number is that of the current holder; it is free once its
holder has written so, or has ended. Who wants it next creates the number after it. Numbers only rise, so that nobody
takes over from a holder that others have taken over from already.
"""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained
from fairness_pipeline.foundation.processes import is_of_this_machine, is_process, is_running, own_process, spoken

BEAT, TIMEOUT = 5.0, 60.0
"""Seconds between two signs of life of a holder, and without one after which a holder on another machine has ended."""
_FREE = "free"
_ASK_EVERY = 0.05, 0.5  # seconds: at first, and later
_DIGITS = 9

_beating: dict[Path, bool] = {}
"""The files that are kept fresh, and whether one that somebody deleted is made again."""
_heart: threading.Thread | None = None


class Lease:
    """What `leased` gives: whether it is still ours.

    Args:
        folder: The lease's folder.
        number: The number that this process has created.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = number

    def check(self) -> None:
        """Raises FairnessError if another process has taken over, because this one showed no sign of life so long."""
        if _highest(self._folder) != self._number:
            raise FairnessError(
                f"{self._folder}: another process has taken over what this one was making, as this one stood still for "
                f"{TIMEOUT:.0f} seconds or more; nothing was written. Run again"
            )


@contextmanager
def leased(folder: Path, waiting: Callable[[str], None] = lambda holder: None) -> Iterator[Lease]:
    """Holds the lease `folder`, which one process at a time can hold.

    A holder on this machine that was killed is found out at once, one on another machine after `TIMEOUT` seconds.

    Args:
        folder: The lease; it is made.
        waiting: Called with the name of the holder, before waiting for it.

    Raises:
        FairnessError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = _taken(folder, waiting)
    except OSError as error:
        raise explained(error, folder) from None
    file, holder = _file(folder, number), os.getpid()
    try:
        keep_fresh(file)
        yield Lease(folder, number)
    finally:
        if os.getpid() == holder:  # a process that was forked meanwhile holds nothing
            _beating.pop(file, None)
            with contextlib.suppress(OSError):
                if _highest(folder) == number:
                    file.write_text(_FREE, encoding="utf-8")


def keep_fresh(file: Path, *, again: bool = False) -> None:
    """Gives signs of life in a file, until this process ends; other machines see them with `is_fresh`.

    Args:
        file: The file.
        again: Whether it is made again if somebody has deleted it, as this process stood still for long.
    """
    global _heart
    _beating[file] = again
    if _heart is None or not _heart.is_alive():
        _heart = threading.Thread(target=_beat, daemon=True)
        _heart.start()


def is_fresh(file: Path) -> bool:
    """Whether there was a sign of life in a file lately. Both times are those of the disk: clocks differ."""
    try:
        then = file.stat().st_mtime
        now = file.parent / f".now-{uuid.uuid4().hex}"
        now.touch()
        try:
            return abs(now.stat().st_mtime - then) < TIMEOUT  # one of the future was made by a clock that was wrong
        finally:
            now.unlink(missing_ok=True)
    except FileNotFoundError:
        return False


def _taken(folder: Path, waiting: Callable[[str], None]) -> int:
    """Waits until the lease is free; the number that this process has then created."""
    pause, longest = _ASK_EVERY
    told = False
    while True:
        number = _highest(folder)
        holder = _holder(folder, number)
        if holder is None:
            own = _created(folder, number + 1)
            if own:
                return own
            continue
        if not told:
            waiting(spoken(holder) if holder else "another run")
            told = True
        time.sleep(pause)
        pause = min(2 * pause, longest)


def _holder(folder: Path, number: int) -> str | None:
    """Who holds the lease; empty while the file is being written, None if nobody does."""
    if number == 0:
        return None
    file = _file(folder, number)
    try:
        said = file.read_text(encoding="utf-8")
    except FileNotFoundError:  # somebody has gone on meanwhile
        return ""
    if said == _FREE:
        return None
    if not is_process(said):
        said = ""
    elif is_of_this_machine(said):
        return said if is_running(said) else None
    return said if is_fresh(file) else None


def _created(folder: Path, number: int) -> int | None:
    """The number, if this process was the one to create its file and nobody is beyond it."""
    file = _file(folder, number)
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(own_process())
    except FileExistsError:
        return None
    if _highest(folder) != number:
        file.unlink(missing_ok=True)
        return None
    for older in folder.iterdir():
        if older.name.isdigit() and int(older.name) < number:
            older.unlink(missing_ok=True)
    return number


def _highest(folder: Path) -> int:
    return max((int(file.name) for file in folder.iterdir() if file.name.isdigit()), default=0)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:0{_DIGITS}d}"


def _beat() -> None:
    while True:
        time.sleep(BEAT)
        for file, again in list(_beating.items()):
            with contextlib.suppress(OSError):
                if again:
                    file.touch()
                else:
                    os.utime(file)


def _without_heart() -> None:
    """In a process that was forked: the thread has stayed behind, and what it kept fresh is not ours."""
    global _heart
    _heart = None
    _beating.clear()


os.register_at_fork(after_in_child=_without_heart)
