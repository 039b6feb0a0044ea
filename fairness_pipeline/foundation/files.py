"""Writes files completely or not at all."""

import errno
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError

_DAY = 24 * 3600.0
_HOST = socket.gethostname().replace(".", "_")


@contextmanager
def replacing(path: Path, still_ours: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """A temporary path beside `path` to write to. It replaces `path` if the block succeeds, and is deleted otherwise.

    If two processes write to one path, the one that ends last wins.

    Args:
        path: The path.
        still_ours: Called before `path` is replaced; raises an error to keep the existing file.

    Raises:
        FairnessError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{_HOST}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
    try:
        for left_over in path.parent.glob(f".{path.name}.*.part"):
            if _is_left_over(left_over):
                left_over.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        still_ours()
        temporary.replace(path)
    except Exception as error:
        if isinstance(error, OSError) or _is_disk_full(error):
            raise explained(error, path) from error
        raise
    finally:
        if temporary.exists():
            temporary.unlink()


def write_text(path: Path, text: str, still_ours: Callable[[], None] = lambda: None, errors: str = "strict") -> Path:
    """Writes a text in UTF-8 as `replacing` does, and returns `path`. `errors` is that of `str.encode`."""
    with replacing(path, still_ours) as temporary:
        temporary.write_text(text, encoding="utf-8", errors=errors)
    return path


def _is_left_over(temporary: Path) -> bool:
    """Whether its writer was killed: its process on this host is gone, or the file is a day old."""
    host, _, number = temporary.name.split(".")[-2].rpartition("-")[0].rpartition("-")
    if host == _HOST and number.isdigit():
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
    try:
        return time.time() - temporary.stat().st_mtime > _DAY
    except FileNotFoundError:
        return False


def explained(error: Exception, path: Path) -> FairnessError:
    """The error about a failure to write `path`, with advice."""
    if _is_disk_full(error):
        return FairnessError(
            f"{path}: the disk is full; nothing was written. Make room, or set FAIRNESS_HOME to another disk, and run "
            "again: it goes on from here"
        )
    return FairnessError(
        f"{path}: cannot be read or written: {getattr(error, 'strerror', None) or error}; check its folder, or set "
        "FAIRNESS_HOME to one that can be written"
    )


def _is_disk_full(error: Exception) -> bool:
    """Whether the error means a full disk, even if a library (such as safetensors) wraps the system's error as text."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)
