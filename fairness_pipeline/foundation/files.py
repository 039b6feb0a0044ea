"""Writing files whole or not at all, and one process at a time."""

import errno
import fcntl
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it takes the name `path` once the block ends well, and goes if not.

    One process at a time may write a path: who shares it holds its lock.

    Raises:
        FairnessError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
    try:
        for left_over in path.parent.glob(f".{path.name}.*.part"):  # by a run that was killed
            left_over.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except Exception as error:
        if isinstance(error, OSError) or _says_full(error):
            raise explained(error, path) from error
        raise
    finally:
        if temporary.exists():
            temporary.unlink()


@contextmanager
def locked(path: Path, waiting: Callable[[str], None] = lambda holder: None) -> Iterator[None]:
    """Holds the lock file `path`, which one process at a time can; the lock ends with the process at the latest.

    Args:
        path: The file; the holder writes its name into it.
        waiting: Told who holds the lock, before waiting for it.

    Raises:
        FairnessError: the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise explained(error, path) from None
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            waiting(lock.read().strip() or "another run")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}")
        lock.flush()
        try:
            yield
        finally:
            lock.truncate(0)


def explained(error: Exception, path: Path) -> FairnessError:
    """What went wrong while writing `path`, and what to do about it."""
    if _says_full(error):
        return FairnessError(
            f"{path}: the disk is full; nothing was written. Make room, or set FAIRNESS_HOME to another disk, and run "
            "again: it goes on from here"
        )
    return FairnessError(
        f"{path}: cannot be read or written: {getattr(error, 'strerror', None) or error}; check its folder, or set "
        "FAIRNESS_HOME to one that can be written"
    )


def _says_full(error: Exception) -> bool:
    """Whether a disk is full, also in the words of a library that wraps the system's error (safetensors does)."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)
