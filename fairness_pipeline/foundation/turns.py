"""Lets one worker at a time use a GPU or query a model behind an address: each worker uses all of it."""

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import IO

from fairness_pipeline.foundation.progress import Progress, report

_EVERY = 0.5
"""Seconds between two waiting notices."""

_waits = False
_gpu: IO[str] | None = None
_progress: Progress | None = None


def wait_for_turns() -> None:
    """Makes this process take turns on GPUs and servers with the other processes that have called this. Ray hands out
    GPUs itself."""
    global _waits
    _waits = True


def take_gpu() -> None:
    """Waits until the GPU is free, and keeps it until `turns_end`; a process that dies gives it back."""
    global _gpu
    if _waits and not _gpu:
        _gpu = _acquire(f"gpu-{os.environ.get('CUDA_VISIBLE_DEVICES', 'all').replace('/', '-')}", "the GPU")


@contextmanager
def asking(address: str, model: str) -> Iterator[None]:
    """Waits until no other worker queries this model, and keeps it while the block runs."""
    if not _waits:
        yield
        return
    with _acquire(f"asked-{sha256(f'{address} {model}'.encode()).hexdigest()[:16]}", f"{address}, model '{model}'"):
        yield


@contextmanager
def turns_end(progress: Progress | None = None) -> Iterator[None]:
    """Releases the GPU and its unused memory at the end of the block, if this process has it."""
    global _gpu, _progress
    _progress = progress
    try:
        yield
    finally:
        _progress = None
        if _gpu:
            if torch := sys.modules.get("torch"):
                torch.cuda.empty_cache()
            _gpu.close()
            _gpu = None


def _acquire(name: str, resource: str) -> IO[str]:
    """Waits for a turn and returns its locked file; closing the file ends the turn."""
    stream = (Path(tempfile.gettempdir()) / f"fairness-pipeline-{os.getuid()}-{name}.lock").open("a", encoding="ascii")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with _announced(f"waiting for {resource}, which another worker uses"):
            fcntl.flock(stream, fcntl.LOCK_EX)  # block on the lock; polling would starve
    return stream


@contextmanager
def _announced(message: str) -> Iterator[None]:
    """Reports the waiting from a thread while it lasts, because the caller is blocked on the lock."""
    acquired = Event()

    def repeat() -> None:
        while not acquired.is_set():
            report(_progress, 0, 1, message)
            acquired.wait(_EVERY)

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        acquired.set()
        thread.join()
