"""Names a process so that it is told apart from every other one, on this machine or on others, now or later; and ends
one with its parent."""

import multiprocessing
import os
import socket
import subprocess
import threading
from functools import cache
from hashlib import sha256
from multiprocessing.connection import wait
from pathlib import Path

PARENT = "FAIRNESS_PARENT_RUN"
"""The environment variable with the run of Dagster's that called the command."""
_ENDED, _UNKNOWN = "ended", "unknown"


def own_process() -> str:
    """This process: its machine, its number, and when it started."""
    return _own(os.getpid())


def process_number(described: str) -> int:
    """The number of a process."""
    return int(described.split(" ", 2)[1])


def is_of_this_machine(described: str) -> bool:
    """Whether the process is, or was, one that this machine knows by its number."""
    return described.split(" ", 1)[0] == _machine()


def is_running(described: str) -> bool:
    """Whether a process of this machine still runs; one whose start is hidden counts as long as its number does."""
    _, number, then = described.split(" ", 2)
    now = _start_of(int(number))
    return now != _ENDED and (now == then or _UNKNOWN in (now, then))


def is_process(described: str) -> bool:
    """Whether a text describes a process; a file that a power cut has emptied does not."""
    return len(described.split(" ", 2)) == 3 and described.split(" ", 2)[1].isdigit()


def spoken(described: str) -> str:
    """The process in words: `process 12 on host`."""
    machine, number, _ = described.split(" ", 2)
    return f"process {number} on {machine.rsplit('/', 1)[0]}"


@cache
def _machine() -> str:
    """The host's name, and a hash of what else tells containers apart that bear the same name."""
    said = []
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            said.append(str(Path(name).readlink()) if "ns" in name.split("/") else Path(name).read_text().strip())
        except OSError:  # no Linux
            said.append("")
    return f"{socket.gethostname()}/{sha256(' '.join(said).encode()).hexdigest()[:6]}"


@cache
def _own(number: int) -> str:
    return _described(number)


def _described(number: int) -> str:
    return f"{_machine()} {number} {_start_of(number)}"


def _start_of(number: int) -> str:
    """When a process started, which tells it apart from a later one with the same number; `_ENDED`, or `_UNKNOWN`.

    Linux counts from the start of the machine, so that a clock that is set changes nothing.
    """
    try:
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return _ENDED if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():  # others' processes may be hidden
            return _UNKNOWN if _exists(number) else _ENDED
    try:
        asked = ["ps", "-o", "stat=,lstart=", "-p", str(number)]
        told = subprocess.run(
            asked, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        ).stdout.split()
        return _ENDED if told[0].startswith("Z") else " ".join(told[1:])
    except (OSError, IndexError, subprocess.CalledProcessError):
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
    """Ends this process of `multiprocessing` at once when its parent is gone, even if that was killed."""
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
