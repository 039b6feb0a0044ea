"""Writes files completely or not at all, and one process at a time."""

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
    """A temporary path beside `path` to write to. It replaces `path` if the block succeeds, and is deleted otherwise.

    Only one process at a time may write to a path: writers that share a path must hold its lock.

    Raises:
        FairnessError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
    try:
        for left_over in path.parent.glob(f".{path.name}.*.part"):  # from a run that was killed
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
    """Holds the lock file `path`, which only one process can hold. The lock ends with the process at the latest.

    Args:
        path: The lock file; the holder writes its name into it.
        waiting: Called with the name of the holder, before waiting for the lock.

    Raises:
        FairnessError: the file cannot be created.
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
    """The error about a failure to write `path`, with advice."""
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
    """Whether the error means a full disk, even if a library (such as safetensors) wraps the system's error as text."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)
