"""One worker at a time on a GPU, or asking a model behind an address: each takes as much of it as there is."""

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
"""Seconds between two lines that say what is waited for."""

_waits = False
_gpu: IO[str] | None = None
_told: Progress | None = None


def wait_for_turns() -> None:
    """From now on this process uses a GPU, or asks a server, only when no other process that has called this does. Ray
    hands out GPUs itself."""
    global _waits
    _waits = True


def take_gpu() -> None:
    """Waits until the GPU is free, and keeps it until `turns_end`; a process that dies gives it back."""
    global _gpu
    if _waits and not _gpu:
        _gpu = _taken(f"gpu-{os.environ.get('CUDA_VISIBLE_DEVICES', 'all').replace('/', '-')}", "the GPU")


@contextmanager
def asking(address: str, model: str) -> Iterator[None]:
    """Waits until no other worker asks this model, which is kept to the end."""
    if not _waits:
        yield
        return
    with _taken(f"asked-{sha256(f'{address} {model}'.encode()).hexdigest()[:16]}", f"{address}, model '{model}'"):
        yield


@contextmanager
def turns_end(progress: Progress | None = None) -> Iterator[None]:
    """At the end, the GPU goes to the next process, if this one has it, with the memory that nothing uses any more.

    Args:
        progress: Told of waiting.
    """
    global _gpu, _told
    _told = progress
    try:
        yield
    finally:
        _told = None
        if _gpu:
            if torch := sys.modules.get("torch"):
                torch.cuda.empty_cache()
            _gpu.close()
            _gpu = None


def _taken(name: str, what: str) -> IO[str]:
    """The locked file of a turn; closing it ends the turn."""
    stream = (Path(tempfile.gettempdir()) / f"fairness-pipeline-{os.getuid()}-{name}.lock").open("a", encoding="ascii")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with _said_meanwhile(f"waiting for {what}, which another worker uses"):
            fcntl.flock(stream, fcntl.LOCK_EX)  # a process that only polls is overtaken by those that wait
    return stream


@contextmanager
def _said_meanwhile(waiting: str) -> Iterator[None]:
    """Tells of the waiting as long as it lasts, from a thread: what waits for the lock does nothing else."""
    over = Event()

    def say() -> None:
        while not over.is_set():
            report(_told, 0, 1, waiting)
            over.wait(_EVERY)

    thread = Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
