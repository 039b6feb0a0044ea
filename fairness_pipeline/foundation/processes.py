"""Describes processes uniquely across machines and time, and ends a process with its parent."""

import multiprocessing
import os
import socket
import threading
from functools import cache
from hashlib import sha256
from multiprocessing.connection import wait
from pathlib import Path

PARENT = "FAIRNESS_PARENT_RUN"
"""The environment variable with the Dagster run that called the command."""
_ENDED, _UNKNOWN = "ended", "unknown"


def this_process() -> str:
    """Describes this process: its machine, its number, and when it started."""
    return _described(os.getpid())


def process_number(described: str) -> int:
    """The number of a process."""
    return int(described.split(" ", 2)[1])


def is_of_this_machine(described: str) -> bool:
    """Whether the process runs, or ran, on this machine."""
    return described.split(" ", 1)[0] == _machine()


def is_running(described: str) -> bool:
    """Whether a process of this machine still runs. If its start is hidden, any process with its number counts."""
    _, number, start = described.split(" ", 2)
    current = _start_of(int(number))
    return current != _ENDED and (current == start or _UNKNOWN in (current, start))


def is_process(described: str) -> bool:
    """Whether a text describes a process; a file that a power cut has emptied does not."""
    return len(described.split(" ", 2)) == 3 and described.split(" ", 2)[1].isdigit()


def describe_process(described: str) -> str:
    """The process in words: `process 12 on host`."""
    machine, number, _ = described.split(" ", 2)
    return f"process {number} on {machine.rsplit('/', 1)[0]}"


@cache
def _machine() -> str:
    """The host's name, and a hash that distinguishes containers with the same name."""
    parts = []
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(str(Path(name).readlink()) if "ns" in name.split("/") else Path(name).read_text().strip())
        except OSError:  # not Linux
            parts.append("")
    return f"{socket.gethostname()}/{sha256(' '.join(parts).encode()).hexdigest()[:6]}"


@cache
def _described(number: int) -> str:
    return f"{_machine()} {number} {_start_of(number)}"


def _start_of(number: int) -> str:
    """When a process started, which distinguishes it from a later one with the same number; or `_ENDED`, or `_UNKNOWN`.

    Linux counts from the start of the machine, so setting the clock changes nothing.
    """
    try:
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return _ENDED if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        # Others' processes may be hidden.
        return _UNKNOWN if _exists(number) else _ENDED


def _exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def end_with_parent() -> None:
    """Ends this `multiprocessing` process as soon as its parent is gone, even if the parent was killed."""
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
