"""One worker at a time on a GPU: several would share its memory, and the one that asks last would get none."""

import fcntl
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_waits = False
_held: IO[str] | None = None


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
        logging.getLogger(__name__).warning("waiting for the GPU, which another worker uses (%s)", path)
        fcntl.flock(stream, fcntl.LOCK_EX)
    _held = stream


@contextmanager
def turn_ends() -> Iterator[None]:
    """At the end, the GPU goes to the next process, if this one has it, with the memory that nothing uses any more."""
    global _held
    try:
        yield
    finally:
        if _held:
            if torch := sys.modules.get("torch"):
                torch.cuda.empty_cache()
            _held.close()
            _held = None
