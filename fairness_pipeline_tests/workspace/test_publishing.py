"""Publishing to object storage (a server that speaks S3) and to a folder."""

import json
import socket
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.publishing import MANIFEST, Published, publish
from fairness_pipeline_tests.commands import command, run


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that speaks S3, with an empty bucket `audits`."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        client.create_bucket(Bucket="audits")
        yield f"{host}:{port}"
    server.stop()


def address(endpoint: str, prefix: str) -> str:
    """A prefix of the bucket."""
    return f"s3://audits/{prefix}?endpoint_override={endpoint}&scheme=http&region=us-east-1"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace of two files."""
    for name in ("tables/a/part-0.parquet", "reports/r.html"):
        (tmp_path / "w" / name).parent.mkdir(parents=True)
        (tmp_path / "w" / name).write_text(name)
    return tmp_path / "w"


def opened(address: str, profile: str) -> tuple[pafs.FileSystem, str]:
    """The file system and the folder where a profile is published."""
    system, base = pafs.FileSystem.from_uri(address)
    return system, f"{base}/{profile}"


def files(root: Path) -> list[Path]:
    """All tables and reports below a folder."""
    return [path for path in root.rglob("*") if path.is_file() and path.suffix in (".parquet", ".html")]


def test_a_run_is_published_whole(tiny: Project, endpoint: str) -> None:
    run("--select", "context_pairs")
    first = command("publish", address(endpoint, "tiny"))
    assert first.returncode == 0, first.stderr
    system, base = opened(address(endpoint, "tiny"), "tiny")
    listed = json.loads(system.open_input_stream(f"{base}/{MANIFEST}").read())["files"]
    tables = {path.relative_to(tiny.workspace).as_posix(): path for path in tiny.workspace.glob("tables/**/*.parquet")}
    assert listed.keys() == tables.keys()
    for name, path in tables.items():
        with system.open_input_file(f"{base}/{name}") as stream:
            assert sha256(stream.read()).hexdigest() == listed[name]["sha256"]
        assert pq.read_table(f"{base}/{name}", filesystem=system).equals(pq.read_table(path))
    again = command("publish", address(endpoint, "tiny"))
    assert f"0 files written, {len(tables)} unchanged, 0 deleted" in again.stdout
    nothing = command("publish", address(endpoint, "tiny"), "--reports-only")
    assert nothing.returncode == 1
    assert "nothing was made yet; run: " in nothing.stderr


def test_what_changes_is_written_and_what_is_gone_is_deleted(workspace: Path, endpoint: str) -> None:
    progress: list[tuple[int, int | None]] = []
    target = address(endpoint, "two")
    assert publish(Lake(workspace), files(workspace), target, lambda d, t, n: progress.append((d, t))) == Published(
        2, 0, 0
    )
    assert progress == [(1, 2), (2, 2)]
    (workspace / "reports" / "r.html").write_text("changed")
    (workspace / "tables" / "a" / "part-0.parquet").unlink()
    assert publish(Lake(workspace), files(workspace), target) == Published(1, 0, 1)
    system, base = opened(target, "w")
    paths = [entry.path for entry in system.get_file_info(pafs.FileSelector(base, recursive=True)) if entry.is_file]
    assert sorted(paths) == [f"{base}/{MANIFEST}", f"{base}/reports/r.html"]
    assert system.open_input_stream(f"{base}/reports/r.html").read() == b"changed"


def test_a_folder_is_an_address_and_a_damaged_list_is_written_anew(workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "public" / "audit"
    assert publish(Lake(workspace), files(workspace), str(target)) == Published(2, 0, 0)
    (target / "w" / MANIFEST).write_text("{")
    assert publish(Lake(workspace), files(workspace), str(target)) == Published(2, 0, 0)
    for inside in (
        workspace,
        workspace / "tables",
        workspace.parent,
        f"file://{workspace}",
        f"file://{workspace.parent}",
    ):
        with pytest.raises(FairnessError, match="is in the workspace"):
            publish(Lake(workspace), files(workspace), str(inside))
    assert (workspace / "reports" / "r.html").read_text() == "reports/r.html"


def test_an_upload_that_breaks_off_leaves_the_old_list(workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "public"
    publish(Lake(workspace), [workspace / "reports" / "r.html"], str(target))
    before = (target / "w" / MANIFEST).read_text()
    with pytest.raises(FairnessError, match="cannot be written: .*publish again"):
        publish(Lake(workspace), [*files(workspace), workspace / "gone"], str(target))
    assert (target / "w" / MANIFEST).read_text() == before


def test_another_workspace_s_files_are_left_alone(workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "public"
    publish(Lake(workspace), files(workspace), str(target))
    second = tmp_path / "elsewhere" / "w"  # the same profile of another home
    (second / "reports").mkdir(parents=True)
    (second / "reports" / "other.html").write_text("other")
    with pytest.raises(FairnessError, match="holds what another workspace has published under 'w'"):
        publish(Lake(second), files(second), str(target))
    assert (target / "w" / "reports" / "r.html").exists()


def test_a_list_that_somebody_has_changed_deletes_nothing_else(workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "public"
    publish(Lake(workspace), files(workspace), str(target))
    victim = tmp_path / "public" / "victim.txt"
    victim.write_text("mine")
    listed = json.loads((target / "w" / MANIFEST).read_text())
    listed["files"] |= {name: {} for name in ("../victim.txt", str(victim), "tables/../../victim.txt", "victim.txt")}
    (target / "w" / MANIFEST).write_text(json.dumps(listed))
    publish(Lake(workspace), files(workspace), str(target))
    assert victim.read_text() == "mine"


def test_what_was_lost_at_the_address_is_written_again(workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "public"
    publish(Lake(workspace), files(workspace), str(target))
    (target / "w" / "reports" / "r.html").unlink()
    (target / "w" / "tables" / "a" / "part-0.parquet").write_text("cut")
    assert publish(Lake(workspace), files(workspace), str(target)) == Published(2, 0, 0)


def test_addresses_that_cannot_be_used(workspace: Path, endpoint: str) -> None:
    with pytest.raises(FairnessError, match=r"'ftp://host/x': expected a folder, or an address such as s3://"):
        publish(Lake(workspace), files(workspace), "ftp://host/x")
    for wrong in ("", " ", "s3://[x"):
        with pytest.raises(FairnessError, match="expected a folder, or an address"):
            publish(Lake(workspace), files(workspace), wrong)
    with pytest.raises(FairnessError, match="expected an address without a key") as refused:
        publish(Lake(workspace), files(workspace), "s3://AKIA:secret@audits/x")
    assert "secret" not in str(refused.value)
    with pytest.raises(FairnessError, match="cannot be written: .*credentials"):
        publish(Lake(workspace), files(workspace), address(endpoint, "x").replace("audits", "no-such-bucket"))


@pytest.mark.verify
def test_nobody_at_the_address(workspace: Path, endpoint: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(FairnessError, match="cannot be written: "):
        publish(Lake(workspace), files(workspace), address(nobody, "x"))
