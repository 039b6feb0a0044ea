"""Two hosts that share a folder but no locks of the kernel: each has its own mount of the folder.

Namespaces of mounts, host name and processes stand for a host. This needs root, `unshare` and `bindfs`.
"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest

from fairness_pipeline.defs.assets import LEFT_ALONE
from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.postgres import POSTGRES
from fairness_pipeline_tests.commands import content, run
from fairness_pipeline_tests.postgres_server import started

pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(
        os.getuid() != 0 or not shutil.which("bindfs") or not shutil.which("unshare"),
        reason="needs root, bindfs and unshare to make two hosts",
    ),
]


def on_host(name: str, shared: Path, mount_point: Path, code: str) -> "subprocess.Popen[str]":
    """Python code on a host that has the folder `shared` mounted at `mount_point`."""
    script = f'hostname {name} && bindfs {shared} {mount_point} && exec "$0" -c "$1"'
    return subprocess.Popen(
        ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script,
         sys.executable, textwrap.dedent(code)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The shared folder, and the hosts' mount point of it."""
    shared, mount_point = tmp_path / "shared", tmp_path / "seen"
    shared.mkdir()
    mount_point.mkdir()
    return shared, mount_point


def test_the_kernel_s_locks_are_not_shared_and_the_lease_is(folders: tuple[Path, Path]) -> None:
    shared, mount_point = folders
    (shared / "counter").write_text("0")
    code = f"""
    import fcntl, time
    from pathlib import Path
    from fairness_pipeline.foundation.leases import leased
    seen = Path("{mount_point}")
    with (seen / "flock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where the other's is seen
        (seen / f"flock-{{time.time_ns()}}").touch()
        while len(list(seen.glob("flock-*"))) < 2:
            time.sleep(0.01)
    for _ in range(150):
        with leased(seen / "lease") as lease:
            value = int((seen / "counter").read_text())
            time.sleep(0.0005)
            lease.check()
            (seen / "counter").write_text(str(value + 1))
    """
    hosts = [on_host(name, shared, mount_point, code) for name in ("host-a", "host-b")]
    ended = [host.communicate(timeout=120) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], ended
    assert (shared / "counter").read_text() == "300"


def test_a_host_that_vanishes_loses_its_lease(folders: tuple[Path, Path]) -> None:
    shared, mount_point = folders
    code = f"""
    import time
    from pathlib import Path
    from fairness_pipeline.foundation import leases
    leases.TIMEOUT, leases.BEAT = 3.0, 0.2
    with leases.leased(Path("{mount_point}/lease"), lambda holder: print("waits for", holder, flush=True)):
        print("holds", flush=True)
        time.sleep(SECONDS)
    """
    first = on_host("host-a", shared, mount_point, code.replace("SECONDS", "600"))
    assert first.stdout is not None
    assert first.stdout.readline() == "holds\n"
    second = on_host("host-b", shared, mount_point, code.replace("SECONDS", "0"))
    assert second.stdout is not None
    assert "on host-a" in second.stdout.readline()
    time.sleep(4)  # longer than the timeout; the holder gives signs of life
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    output, errors = second.communicate(timeout=30)
    assert output == "holds\n", errors
    first.communicate()


def test_two_hosts_never_make_one_partition_twice(
    tiny: Project, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    alone = content(tiny.workspace)
    shared, mount_point = folders
    monkeypatch.setenv("FAIRNESS_HOME", str(mount_point))
    code = """
    from fairness_pipeline import cli
    cli.main(["run", "--workers", "2"])
    """
    with started() as server:
        monkeypatch.setenv(POSTGRES, server.database())
        hosts = [on_host(name, shared, mount_point, code) for name in ("host-a", "host-b")]
        ended = [host.communicate(timeout=240) for host in hosts]
        assert [host.returncode for host in hosts] == [0, 0], ended
        assert content(shared / "tiny") == alone
        monkeypatch.setenv("FAIRNESS_HOME", str(shared))
        with open_instance(Project("tiny")) as instance:
            made = Counter(
                (event.asset_key, event.partition)
                for record in instance.get_run_records()
                for entry in instance.all_logs(
                    record.dagster_run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
                )
                if (event := entry.get_dagster_event()).asset_key and LEFT_ALONE not in event.materialization.metadata
            )
            statuses = {record.dagster_run.status.value for record in instance.get_run_records()}
    assert len(made) == 29
    assert set(made.values()) == {1}
    assert statuses == {"SUCCESS"}
    assert any("waiting for process" in output for output, _ in ended)
