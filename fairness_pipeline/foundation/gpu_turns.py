"""One worker at a time on a GPU: several would share its memory, and the one that asks last would get none."""

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import IO

from fairness_pipeline.foundation.progress import Progress, report

_WAITING = "waiting for the GPU, which another worker uses"
_EVERY = 0.5
"""Seconds between two lines that say so."""

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
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with _said_meanwhile():
            fcntl.flock(stream, fcntl.LOCK_EX)  # who asks again and again is passed over by those who wait
    _held = stream


@contextmanager
def _said_meanwhile() -> Iterator[None]:
    """Tells of the waiting as long as it lasts, from a thread: what waits for the lock does nothing else."""
    over = Event()

    def say() -> None:
        while not over.is_set():
            report(_told, 0, 1, _WAITING)
            over.wait(_EVERY)

    thread = Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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
