"""Reads a container's quotas, in both versions of control groups, from files that the tests write."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairness_pipeline.foundation import machine

Write = Callable[[dict[str, str]], None]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files below the folder of control groups; `own` lists the process's memberships."""
    monkeypatch.setattr(machine, "_GROUPS", tmp_path)
    monkeypatch.setattr(machine, "_MEMBERSHIPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="ascii")

    return write


def test_a_container_s_quotas_count(groups: Write) -> None:
    groups({"own": "0::/\n", "cpu.max": "250000 100000\n", "memory.max": f"{3 << 30}\n"})
    assert (machine.cores(), machine.memory()) == (3, 3 << 30)


def test_the_group_above_may_set_the_limit(groups: Write) -> None:
    groups({"own": "0::/team/job\n", "team/cpu.max": "200000 100000", "team/job/cpu.max": "max 100000"})
    assert machine.cores() == 2


def test_the_first_version_of_control_groups_counts(groups: Write) -> None:
    groups(
        {
            "own": "5:cpu,cpuacct:/job\n4:memory:/job\n1:name=systemd:/job\n",
            "cpu,cpuacct/job/cpu.cfs_quota_us": "50000",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
            "memory/job/memory.limit_in_bytes": str(1 << 30),
        }
    )
    assert (machine.cores(), machine.memory()) == (1, 1 << 30)


def test_without_quotas_the_machine_counts(groups: Write) -> None:
    groups(
        {
            "own": "5:cpu:/\n4:memory:/\n",
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
        }
    )
    assert machine.cores() == 16
    assert machine.memory() > 1 << 30


def test_malformed_lines_are_no_error(groups: Write) -> None:
    groups({"own": "nonsense\n0::/\n", "cpu.max": "100000\n", "memory.max": "many\n"})
    assert machine.cores() == 16


def test_controllers_in_another_order_than_their_folder(groups: Write) -> None:
    groups({"own": "5:cpuacct,cpu:/job\n", "cpu/job/cpu.cfs_quota_us": "200000", "cpu/job/cpu.cfs_period_us": "100000"})
    assert machine.cores() == 2


def test_a_machine_without_control_groups_is_no_error(groups: Write) -> None:
    assert machine.cores() == 16
