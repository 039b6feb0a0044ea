"""Names a process so that it is told apart from every other one, on this machine or on others, now or later."""

import os
import socket
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path


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
    """Whether a process of this machine still runs."""
    return _described(process_number(described)) == described


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
    """A process, told apart from a later one with the same number by the time at which it started."""
    try:
        asked = ["ps", "-o", "stat=,lstart=", "-p", str(number)]
        started = subprocess.run(
            asked, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        )
        state, *when = started.stdout.split() or ["Z"]
        then = "ended" if state.startswith("Z") else " ".join(when)
    except OSError:  # there is no `ps`
        then = "started" if _exists(number) else "ended"
    return f"{_machine()} {number} {then}"


def _exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
