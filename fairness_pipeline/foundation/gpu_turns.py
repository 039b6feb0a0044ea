"""One worker at a time on a GPU: several would share its memory, and the one that asks last would get none."""

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fairness_pipeline.foundation.progress import Progress, report

_WAITING = "waiting for the GPU, which another worker uses"
_EVERY = 0.5
"""Seconds between two looks at whether the GPU is free."""

_waits = False
_held: IO[str] | None = None
_told: Progress | None = None


def wait_for_turns() -> None:
    """From now on this process uses a GPU only when no other process that has called this does. Ray hands out GPUs
    itself."""
    global _waits
    _waits = True


def take_turn() -> None:
    """Waits until the GPU is free, and keeps it until `turn_ends`; a process that dies gives it back."""
    global _held
    if not _waits or _held:
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all").replace("/", "-")
    path = Path(tempfile.gettempdir()) / f"fairness-pipeline-gpu-{os.getuid()}-{visible}.lock"
    stream = path.open("a", encoding="ascii")
    while not _is_free(stream):
        report(_told, 0, 1, _WAITING)
        time.sleep(_EVERY)
    _held = stream


def _is_free(stream: IO[str]) -> bool:
    """Whether nobody else has it; then this process does."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def turn_ends(progress: Progress | None = None) -> Iterator[None]:
    """At the end, the GPU goes to the next process, if this one has it, with the memory that nothing uses any more.

    Args:
        progress: Told of waiting for it.
    """
    global _held, _told
    _told = progress
    try:
        yield
    finally:
        _told = None
        if _held:
            if torch := sys.modules.get("torch"):
                torch.cuda.empty_cache()
            _held.close()
            _held = None
