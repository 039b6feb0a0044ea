"""Dagster's records and the lake's locks in Postgres: the same results, and clear errors."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairness_pipeline.defs.instance import ONE_MACHINE, _in_files, open_instance
from fairness_pipeline.foundation import file_systems
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace import locks
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.postgres import POSTGRES, connect
from fairness_pipeline_tests.commands import command, run
from fairness_pipeline_tests.defs.test_records import check_last_stays_last
from fairness_pipeline_tests.postgres_server import Server, started
from fairness_pipeline_tests.workspace.test_lake import check_second_waits


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for this file."""
    with started() as server:
        yield server


@pytest.fixture
def database(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new database, which the environment names."""
    monkeypatch.setattr(locks, "_connections", {})
    address = server.database()
    monkeypatch.setenv(POSTGRES, address)
    return address


def in_postgres(tiny: Project) -> Path:
    """Deletes the profile's records of Dagster; returns the path of the configuration to be written anew."""
    shutil.rmtree(tiny.workspace / "dagster")
    return tiny.workspace / "dagster" / "dagster.yaml"


def contents(project: Project) -> dict[str, str | None]:
    """The content of each table."""
    lake = Lake(project.workspace)
    keys = [{"corpus": "tiny", "dimension": name} for name in project.dimensions]
    return {str(key): lake.card("context_pairs", key).content for key in keys}


@pytest.mark.verify
def test_the_same_tables_and_every_run_recorded(
    tiny: Project, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configuration = in_postgres(tiny)
    run("--select", "context_pairs")
    assert f"env: {POSTGRES}" in configuration.read_text()
    assert not list(configuration.parent.rglob("*.db"))
    with open_instance(tiny) as instance:
        statuses = [record.dagster_run.status.value for record in instance.get_run_records()]
    assert statuses
    assert set(statuses) == {"SUCCESS"}
    tables = contents(tiny)
    assert None not in tables.values()
    monkeypatch.delenv(POSTGRES)
    refused = command("run", "--select", "context_pairs", "--force")
    assert refused.returncode == 1
    assert "are in Postgres; set FAIRNESS_POSTGRES to its address" in refused.stderr
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "elsewhere"))
    run("--select", "context_pairs")
    assert contents(Project("tiny")) == tables


def test_the_second_waits_and_names_the_holder_and_a_kill_frees_the_lock(tmp_path: Path, database: str) -> None:
    check_second_waits(tmp_path)


def test_a_holder_whose_connection_was_cut_writes_nothing(tmp_path: Path, database: str) -> None:
    import psycopg2

    with locks.lock(tmp_path, "things/all", lambda holder: None) as held:
        held.check()
        cutting = psycopg2.connect(database)
        cutting.autocommit = True
        with cutting.cursor() as cursor:
            cursor.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'process %'"
            )
        cutting.close()
        with pytest.raises(FairnessError, match=r"was lost, and with it the lock .* nothing was written\. Run again"):
            held.check()
    with locks.lock(tmp_path, "things/all", lambda holder: None) as held:  # with a new connection
        held.check()


def test_a_database_serves_one_workspace(tiny: Project, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_postgres(tiny)
    with open_instance(tiny):
        pass
    monkeypatch.setenv("FAIRNESS_HOME", str(tiny.workspace.parent.parent / "second"))
    with pytest.raises(FairnessError, match=r"holds the records of another workspace \(profile 'tiny'\).*createdb"):
        open_instance(Project("tiny"))


def test_a_workspace_s_locks_are_in_one_database(
    tiny: Project, database: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_postgres(tiny)
    with open_instance(tiny):
        pass
    monkeypatch.setenv(POSTGRES, server.database())
    with pytest.raises(FairnessError, match=r"is another database than the one that keeps this workspace's locks"):
        open_instance(tiny)
    (tiny.workspace / "locks" / ".database").unlink()
    with open_instance(tiny):
        pass


def test_threads_of_one_process_wait_for_each_other(tmp_path: Path, database: str) -> None:
    inside, most = [0], [0]

    def hold_shortly() -> None:
        with locks.lock(tmp_path, "things/all", lambda holder: None):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.05)
            inside[0] -= 1

    threads = [threading.Thread(target=hold_shortly) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hunter2%zz@h/d", "postgresql://u:hunter2/x@h/d", "postgresql://u:hunter2#@h/d", "u:hunter2@h/d",
        "postgresql://u:hunter2@x@h/d", "postgresql://u:hunter2[@h/d",
    ],
)  # fmt: skip
def test_a_password_is_never_shown(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POSTGRES, address)
    with pytest.raises(FairnessError, match=r"expected postgresql://user:password@host:5432/database") as refused:
        connect("x")
    assert "hunter" not in str(refused.value)


def test_records_that_are_in_files_stay_there_until_they_are_deleted(tiny: Project, database: str) -> None:
    with pytest.raises(FairnessError, match=r"but FAIRNESS_POSTGRES is set\. Unset it, or delete .*/dagster"):
        open_instance(tiny)


@pytest.mark.parametrize("wrong", ["port", "database", "password", "name"])
def test_a_database_that_cannot_be_used_is_an_error_without_the_password(
    tiny: Project, database: str, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    in_postgres(tiny)
    changed = {
        "port": database.replace(database.rsplit(":", 1)[1].split("/")[0], "9"),
        "database": f"{database}_not_there",
        "password": database.replace("not-for-print", "secret-guess"),
        "name": database.replace("127.0.0.1", "no-such-host.invalid"),
    }[wrong]
    monkeypatch.setenv(POSTGRES, changed)
    with pytest.raises(FairnessError, match="FAIRNESS_POSTGRES: the database .* cannot be used: ") as refused:
        open_instance(tiny)
    assert "not-for-print" not in str(refused.value)
    assert "secret-guess" not in str(refused.value)


@pytest.mark.verify
def test_a_database_that_stops_midway_loses_nothing(tiny: Project, database: str, server: Server) -> None:
    in_postgres(tiny)
    run("--select", "context_pairs", "--dimension", "gender")
    tables = sorted(tiny.workspace.rglob("*.parquet"))
    server.stop()
    try:
        lost = command("run", "--select", "context_pairs")
    finally:
        server.start()
    assert lost.returncode == 1
    assert "the database audit_" in lost.stderr
    assert "Traceback" not in lost.stderr
    assert sorted(tiny.workspace.rglob("*.parquet")) == tables
    run("--select", "context_pairs")


def test_sqlite_on_a_folder_that_machines_share_is_refused(
    tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"30 22 0:40 / {tmp_path / 'home'} rw,relatime - nfs4 server:/export rw\n"
    )
    monkeypatch.setattr(file_systems, "_MOUNTS", mounts)
    with pytest.raises(FairnessError, match=rf"can share \(nfs4\), where SQLite loses .* export {ONE_MACHINE}=1"):
        open_instance(tiny)
    monkeypatch.setenv(ONE_MACHINE, "1")
    with open_instance(tiny):
        pass


def test_the_last_event_of_an_asset_stays_the_last(tiny: Project, database: str) -> None:
    in_postgres(tiny)
    with open_instance(tiny) as instance:
        check_last_stays_last(instance)


@pytest.mark.parametrize(
    ("configuration", "in_files"),
    [
        ({}, True), ({"storage": {"sqlite": {}}}, True), ({"storage": {"postgres": {}}}, False),
        ({"storage": {"custom": {}}}, False),
        ({"storage": {"mysql": {}}}, False), ({"run_storage": {"module": "dagster_mysql.run_storage"}}, False),
        ({"event_log_storage": {"module": "x"}}, True),
    ],
)  # fmt: skip
def test_where_a_users_configuration_keeps_runs(configuration: dict, in_files: bool) -> None:
    assert _in_files(configuration) is in_files


def test_a_configuration_that_is_no_yaml_is_named(tiny: Project) -> None:
    configuration = tiny.workspace / "dagster" / "dagster.yaml"
    configuration.write_text("# nothing\n\n")
    with open_instance(tiny):
        pass
    configuration.write_text("storage: [\n")
    with pytest.raises(FairnessError, match=r"dagster\.yaml"):
        open_instance(tiny)


def test_kinds_of_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {
        "a b": "cifs", "bound": "fuse.sshfs", "nameless": "fuse", "weka": "wekafs", "host": "virtiofs",
        "overlay": "fuse.fuse-overlayfs", "disk": "fuseblk", "own": "ext4",
    }  # fmt: skip
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "".join(
            f"30 22 0:40 / {str(tmp_path / name).replace(' ', chr(92) + '040')} rw shared:3 master:1 - {kind} x rw\n"
            for name, kind in kinds.items()
        )
    )
    monkeypatch.setattr(file_systems, "_MOUNTS", mounts)
    for name in kinds:
        (tmp_path / name).mkdir()
    shared = {name: kind for name in kinds if (kind := file_systems.shared_by_hosts(tmp_path / name))}
    assert shared == {name: kinds[name] for name in ("a b", "bound", "nameless", "weka", "host")}
    assert file_systems.shared_by_hosts(tmp_path) is None
    monkeypatch.setattr(file_systems, "_MOUNTS", tmp_path / "no-linux")
    assert file_systems.shared_by_hosts(tmp_path / "a b") is None
