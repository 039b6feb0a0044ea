"""Simulates power cuts: a separate file system stops in the middle of a run and loses what it has not written yet."""

import fcntl
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairness_pipeline_tests.commands import content
from fairness_pipeline_tests.verify.kills import small_run
from fairness_pipeline_tests.verify.shared import SENTIMENT, STATE, Claim, command, finished

CUTS = 25
_SIZE = 1 << 30
_SHUTDOWN, _WITHOUT_THE_LOG = 0x8004587D, 2
"""`EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`: neither data nor the journal are written."""
_WORKERS = ("--workers", "4")


def power_cuts() -> dict[str, Any]:
    """Cuts the power of a small run on ext4 at random moments; each time `check` reads what is left, and it goes on."""
    whole, image, mountpoint = STATE / "whole" / "power", STATE / "power.ext4", STATE / "power"
    shutil.rmtree(whole, ignore_errors=True)
    mountpoint.mkdir(parents=True, exist_ok=True)
    try:
        _make(image)
        _mount(image, mountpoint)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        return {"tried": False, "why": " ".join(str(reason).split())}
    draw, damaged, crashed, cuts = random.Random(5), 0, 0, 0
    try:
        finished(small_run(whole, SENTIMENT))
        while cuts < CUTS:
            process = small_run(mountpoint, SENTIMENT, *_WORKERS)
            deadline = time.monotonic() + draw.uniform(1.0, 9.0)
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            cuts += process.poll() is None
            _cut(mountpoint)
            process.wait()
            _mount(image, mountpoint)
            checked = command(mountpoint, "check", "--profile", "small", data=STATE / "data")
            output = checked.communicate()[0]
            match = re.search(r"([0-9]+) not as written", output)
            crashed += match is None
            damaged += int(match[1]) if match else 0
            if not draw.randrange(3):  # so that there is something to make again
                shutil.rmtree(mountpoint / "small" / "tables", ignore_errors=True)
        finished(small_run(mountpoint, SENTIMENT, *_WORKERS))
        same = content(mountpoint / "small") == content(whole / "small")
    finally:
        subprocess.run(["umount", mountpoint], check=False, capture_output=True)
    return {"tried": True, "cuts": cuts, "damaged": damaged, "crashed": crashed, "same": same}


def judge(outcome: dict[str, Any]) -> Claim:
    """The claim on power cuts."""
    claim = (
        "ext4 that stops without writing its log, at random moments, four workers: nothing that is found afterwards is damaged, "
        "and in the end the lake is byte for byte that of an undisturbed run"
    )
    if not outcome["tried"]:
        return claim, None, f"no file system could be made here: {outcome['why']}"
    held = outcome["same"] and not outcome["damaged"] and not outcome["crashed"] and outcome["cuts"] == CUTS
    return claim, held, f"{outcome['cuts']} power cuts, {outcome['damaged']} partitions damaged"


def _make(image: Path) -> None:
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(_SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True, text=True)


def _mount(image: Path, mountpoint: Path) -> None:
    subprocess.run(["mount", "-o", "loop", image, mountpoint], check=True, capture_output=True, text=True)


def _cut(mountpoint: Path) -> None:
    """Stops the file system, ends all processes that use it, and unmounts it."""
    folder = os.open(mountpoint, os.O_RDONLY)
    try:
        fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _WITHOUT_THE_LOG))
    finally:
        os.close(folder)
    deadline = time.monotonic() + 30
    while subprocess.run(["umount", mountpoint], check=False, capture_output=True).returncode:
        assert time.monotonic() < deadline, f"{mountpoint} cannot be taken off"
        for process in _users(mountpoint):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)


def _users(mountpoint: Path) -> Iterator[int]:
    """Yields the processes that work in a home."""
    home = f"FAIRNESS_HOME={mountpoint}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if home in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
        except OSError:
            continue
