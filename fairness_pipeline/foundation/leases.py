"""Leases: locks made of files, which one process at a time can hold, of all machines that share a folder.

The locks of the system (`flock`) are not enough: two hosts that mount one folder can both hold the same one. Creating a
file that must not exist is exclusive everywhere.

A lease is a folder of files `1`, `2`, and so on. The highest number belongs to the current holder. The lease is free
once its holder has released it or has ended. The next holder creates the next number. Numbers only rise, so that nobody
takes over from a holder that has already been replaced.
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
from fairness_pipeline.foundation.processes import (
    describe_process,
    is_of_this_machine,
    is_process,
    is_running,
    this_process,
)

BEAT, TIMEOUT = 5.0, 60.0
"""Seconds between two heartbeats of a holder, and without one after which a holder on another machine has ended."""
_FREE = "free"
_PAUSES = 0.05, 0.5  # seconds: at first, and later
_DIGITS = 9

_beating: dict[Path, bool] = {}
"""The files that are kept fresh, and whether each is created again if somebody deletes it."""
_heart: threading.Thread | None = None


class Lease:
    """A lease that this process has taken.

    Args:
        folder: The lease's folder.
        number: The number that this process created.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = number

    def check(self) -> None:
        """Raises FairnessError if another process has taken over, because this one gave no heartbeat for too long."""
        if _highest(self._folder) != self._number:
            raise FairnessError(
                f"{self._folder}: another process has taken over, because this one gave no heartbeat for {TIMEOUT:.0f} "
                "seconds or more; nothing was written. Run again"
            )


@contextmanager
def leased(folder: Path, waiting: Callable[[str], None] = lambda holder: None) -> Iterator[Lease]:
    """Holds the lease `folder`, which one process at a time can hold.

    A killed holder on this machine is noticed at once, one on another machine after `TIMEOUT` seconds.

    Args:
        folder: The lease's folder; it is created.
        waiting: Called with the name of the holder, before waiting for it.

    Raises:
        FairnessError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = _acquire(folder, waiting)
    except OSError as error:
        raise explained(error, folder) from None
    file, owner = _file(folder, number), os.getpid()
    try:
        keep_fresh(file)
        yield Lease(folder, number)
    finally:
        if os.getpid() == owner:  # a process that was forked meanwhile holds nothing
            _beating.pop(file, None)
            with contextlib.suppress(OSError):
                if _highest(folder) == number:
                    file.write_text(_FREE, encoding="utf-8")


def keep_fresh(file: Path, *, again: bool = False) -> None:
    """Gives heartbeats in a file until this process ends; other machines see them with `is_fresh`.

    Args:
        file: The file.
        again: Whether to create the file again if somebody deleted it while this process stood still.
    """
    global _heart
    _beating[file] = again
    if _heart is None or not _heart.is_alive():
        _heart = threading.Thread(target=_beat, daemon=True)
        _heart.start()


def is_fresh(file: Path) -> bool:
    """Whether a file had a heartbeat lately. Both times come from the disk, because clocks differ."""
    try:
        beat_time = file.stat().st_mtime
        probe = file.parent / f".now-{uuid.uuid4().hex}"
        probe.touch()
        try:
            return abs(probe.stat().st_mtime - beat_time) < TIMEOUT  # a time in the future comes from a wrong clock
        finally:
            probe.unlink(missing_ok=True)
    except FileNotFoundError:
        return False


def _acquire(folder: Path, waiting: Callable[[str], None]) -> int:
    """Waits until the lease is free; returns the number that this process then created."""
    pause, longest = _PAUSES
    announced = False
    while True:
        number = _highest(folder)
        holder = _holder(folder, number)
        if holder is None:
            created = _created(folder, number + 1)
            if created:
                return created
            continue
        if not announced:
            waiting(describe_process(holder) if holder else "another run")
            announced = True
        time.sleep(pause)
        pause = min(2 * pause, longest)


def _holder(folder: Path, number: int) -> str | None:
    """The process that holds the lease; empty while the file is being written, None if the lease is free."""
    if number == 0:
        return None
    file = _file(folder, number)
    try:
        content = file.read_text(encoding="utf-8")
    except FileNotFoundError:  # another process has taken over meanwhile
        return ""
    if content == _FREE:
        return None
    if not is_process(content):
        content = ""
    elif is_of_this_machine(content):
        return content if is_running(content) else None
    return content if is_fresh(file) else None


def _created(folder: Path, number: int) -> int | None:
    """Creates the file of a number; returns the number, or None if another process was faster."""
    file = _file(folder, number)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(this_process())
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


def _reset_after_fork() -> None:
    """Resets a forked process: the thread stayed in its parent, which also owns the files."""
    global _heart
    _heart = None
    _beating.clear()


os.register_at_fork(after_in_child=_reset_after_fork)
