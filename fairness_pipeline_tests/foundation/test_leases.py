"""One process on all machines holds a lease; a process that is killed, or vanishes with its machine, loses it."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from fairness_pipeline.foundation import leases, processes
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.leases import is_fresh, keep_fresh, leased

ELSEWHERE = "another-host/abcdef 77 Mon Nov 3 10:00:00 2025"


def of_another_machine(folder: Path, number: int = 1) -> Path:
    """Writes a lease that a process on another machine holds."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{number:09d}"
    file.write_text(ELSEWHERE)
    return file


def add_often(folder: Path, times: int) -> None:
    """Adds to a number in a file; updates are lost if two processes do so at a time."""
    counter = folder / "counter"
    for _ in range(times):
        with leased(folder / "lease") as lease:
            value = int(counter.read_text())
            time.sleep(0.001)
            lease.check()
            counter.write_text(str(value + 1))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=add_often, args=(tmp_path, 25)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert (tmp_path / "counter").read_text() == "100"
    assert len(list((tmp_path / "lease").iterdir())) == 1  # released leases are deleted


def test_a_holder_on_another_machine_is_waited_for_while_its_lease_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "TIMEOUT", 0.5)
    monkeypatch.setattr(leases, "BEAT", 0.05)
    monkeypatch.setattr(leases, "_heart", None)  # the heart of an earlier test beats slowly
    file = of_another_machine(tmp_path / "lease")
    for _ in range(3):  # as the holder's heart would
        assert leases._holder(tmp_path / "lease", 1) == ELSEWHERE
        time.sleep(0.3)
        os.utime(file)
    holders: list[str] = []
    with leased(tmp_path / "lease", holders.append):
        assert holders == ["process 77 on another-host"]
        time.sleep(0.8)
        assert leases._holder(tmp_path / "lease", 2) == processes.this_process()
        assert is_fresh(tmp_path / "lease" / "000000002")  # ours has a heart


def test_clocks_that_differ_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system gives both times."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert is_fresh(tmp_path / "file")
    for modified in (1, 4e9):  # the second is from a clock that was ahead
        os.utime(tmp_path / "file", (modified, modified))
        assert not is_fresh(tmp_path / "file")
    assert not is_fresh(tmp_path / "never")


def test_a_stalled_process_whose_lease_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    with leased(tmp_path / "lease") as lease:
        lease.check()
        of_another_machine(tmp_path / "lease", 2)
        with pytest.raises(FairnessError, match=r"another process has taken over, .* nothing was written\. Run again"):
            lease.check()
    assert (tmp_path / "lease" / "000000002").read_text() == ELSEWHERE  # the other's lease is not released


def test_a_lease_number_read_long_ago_gives_no_lease(tmp_path: Path) -> None:
    """The process saw the lease free at 1, and slept; since then 2 was taken and released, and 3 holds it."""
    of_another_machine(tmp_path, 3)
    assert leases._created(tmp_path, 2) is None
    assert [file.name for file in tmp_path.iterdir()] == ["000000003"]


def test_a_lease_file_that_is_being_written_counts_as_held(tmp_path: Path) -> None:
    (tmp_path / "000000001").touch()
    assert leases._holder(tmp_path, 1) == ""
    os.utime(tmp_path / "000000001", (1, 1))  # its writer was killed before the first byte
    assert leases._holder(tmp_path, 1) is None


def test_a_fork_has_its_own_heart_and_keeps_no_file_of_its_parent_fresh(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keep_fresh(tmp_path / "file")
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = os.fork()
    if child == 0:
        theirs.send((len(leases._beating), leases._heart is None))
        os._exit(0)
    os.waitpid(child, 0)
    assert ours.recv() == (0, True)
    leases._beating.pop(tmp_path / "file")


def test_a_fork_that_leaves_the_block_does_not_release_the_lease(tmp_path: Path) -> None:
    child = 1
    with leased(tmp_path / "lease") as lease:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            lease.check()
            assert leases._holder(tmp_path / "lease", 1) == processes.this_process()
    if not child:
        os._exit(0)
    assert leases._holder(tmp_path / "lease", 1) is None


def test_a_sign_of_life_that_was_deleted_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT", 0.02)
    monkeypatch.setattr(leases, "_heart", None)
    sign, lease = tmp_path / "sign", tmp_path / "lease"
    for file in (sign, lease):
        file.touch()
    keep_fresh(sign, again=True)
    keep_fresh(lease)
    for file in (sign, lease):
        file.unlink()
    time.sleep(0.2)
    assert [sign.exists(), lease.exists()] == [True, False]  # a lease that was lost stays lost
    for file in (sign, lease):
        leases._beating.pop(file)


def test_a_lease_file_that_a_power_cut_has_emptied_is_held_only_for_a_while(tmp_path: Path) -> None:
    (tmp_path / "000000001").write_bytes(bytes(40))
    assert leases._holder(tmp_path, 1) == ""
    os.utime(tmp_path / "000000001", (1, 1))
    assert leases._holder(tmp_path, 1) is None


def test_a_process_whose_start_is_hidden_is_known_by_its_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    description = processes.this_process()
    assert not processes.is_running(f"{description.rsplit(' ', 1)[0]} 12345")  # a later process with the same number
    monkeypatch.setattr(processes, "_start_of", lambda number: "unknown")
    assert processes.is_running(description)


def test_a_zombie_process_has_ended() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    described = processes._described.__wrapped__(child)  # the number may be an earlier child's
    assert described.endswith("ended")
    os.waitpid(child, 0)
    assert not processes.is_running(processes.this_process().replace(str(os.getpid()), str(child)))
    assert processes.is_running(processes.this_process())
