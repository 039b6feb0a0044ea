"""The cores and memory that this process may use, within the quotas of its container."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIPS = Path("/proc/self/cgroup")
_NOT_LIMITED = 1 << 60
"""The first version of control groups writes a number above this for "no limit"."""


def cores() -> int:
    """The number of processors that this process may use, at least 1; half a processor counts as a whole one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _processor_quotas())]))


def memory() -> int:
    """The bytes of memory that this process may use."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *_memory_limits()])


def _processor_quotas() -> Iterator[float]:
    for folder in _groups("cpu"):
        numbers = _numbers(folder / "cpu.max")
        numbers = numbers or [*_numbers(folder / "cpu.cfs_quota_us"), *_numbers(folder / "cpu.cfs_period_us")]
        if len(numbers) == 2 and min(numbers) > 0:  # the first version writes -1 for "no quota"
            yield numbers[0] / numbers[1]


def _memory_limits() -> Iterator[int]:
    for folder in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            if (limit := next(iter(_numbers(folder / name)), _NOT_LIMITED)) < _NOT_LIMITED:
                yield limit


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control groups and their parents, in both versions: each may set a limit."""
    try:
        lines = _MEMBERSHIPS.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for controllers, path in (line.split(":", 2)[1:] for line in lines if line.count(":") > 1):
        if controllers and controller not in controllers.split(","):
            continue
        # The first version has a folder for each set of controllers, and a link to it for each of them.
        for top in {_GROUPS / controllers, _GROUPS / controller} if controllers else {_GROUPS}:
            group = top / path.lstrip("/")
            yield from [group, *(folder for folder in group.parents if folder == top or top in folder.parents)]


def _numbers(file: Path) -> list[int]:
    """The numbers in a file; none if it is not there or says "max"."""
    try:
        return [int(word) for word in file.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []
