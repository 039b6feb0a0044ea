import multiprocessing
import os
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.workspace.lake import Card, Lake, fingerprint
from fairness_pipeline.workspace.sql import connect

SCHEMA = pa.schema([pa.field("side", pa.string(), False), pa.field("n", pa.int64(), False)])
TABLE = pa.table({"side": ["a", "b"], "n": [1, 2]}, schema=SCHEMA)
KEY = {"dimension": "gender", "model": "m"}


def write(lake: Lake, table: pa.Table = TABLE, key: dict[str, str] = KEY, card: Card | None = None) -> None:
    with lake.writing("things", key, table, SCHEMA, card or Card("f" * 64, {"x": 1}, {"rows": 2})):
        pass


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def test_a_table_and_its_card(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert lake.card("things", KEY) is None
    write(lake)
    assert lake.table_path("things", KEY) == tmp_path / "tables/things/dimension=gender/model=m/part-0.parquet"
    assert lake.read("things", KEY).equals(TABLE)
    card = lake.card("things", KEY)
    assert card == Card("f" * 64, {"x": 1}, {"rows": 2}, card.content)


def test_the_content_is_what_was_made_and_nothing_else(tmp_path: Path) -> None:
    """Not the settings, nor the time, nor the fingerprint; but every value, and the figures."""

    def content(table: pa.Table = TABLE, card: Card | None = None) -> str:
        lake = Lake(tmp_path)
        write(lake, table, card=card)
        return lake.content("things", KEY)

    first = content()
    assert len(first) == 64
    assert content() == first
    assert content(card=Card("e" * 64, {"x": 2}, {"rows": 2})) == first
    assert content(card=Card("f" * 64, {"x": 1}, {"rows": 3})) != first
    assert content(pa.table({"side": ["a", "b"], "n": [1, 3]}, schema=SCHEMA)) != first
    assert content(pa.table({"side": ["a"], "n": [1]}, schema=SCHEMA)) != first

    lake, key = Lake(tmp_path), {"model": "m"}
    folder = lake.folder("models", key, "f" * 64)
    folder.mkdir(parents=True)
    found = set()
    for text in ("one", "two", "one"):
        (folder / "model.safetensors").write_text(text)
        lake.write_card("models", key, Card("f" * 64, {}))
        found.add(lake.content("models", key))
    assert len(found) == 2
    (folder / "model.safetensors").write_text("on")  # truncated
    assert lake.card("models", key) is None
    assert lake.was_finished("models", key, "f" * 64)
    assert not lake.was_finished("models", key, "e" * 64)


def test_same_content_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(Lake(tmp_path / name))
    one, two = (Lake(tmp_path / name).table_path("things", KEY).read_bytes() for name in ("one", "two"))
    assert one == two


def test_what_is_missing_or_damaged(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with pytest.raises(
        FairnessError, match="things dimension=gender/model=m has not been made yet; run: .*--select things"
    ):
        lake.read("things", KEY)
    with pytest.raises(FairnessError, match="model=m has not been made yet"):
        lake.current_folder("models", {"model": "m"})
    write(lake)
    path = lake.table_path("things", KEY)
    path.write_bytes(path.read_bytes()[:-30])
    assert lake.card("things", KEY) is None  # stale: the next run makes it again
    with pytest.raises(FairnessError, match="damaged .*; delete it and run again"):
        lake.read("things", KEY)


def test_a_write_that_fails_leaves_the_old_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake)
    other = pa.table({"side": ["a"], "n": [9]}, schema=SCHEMA)
    with pytest.raises(ZeroDivisionError), lake.writing("things", KEY, other, SCHEMA, Card("e", {})):
        raise ZeroDivisionError
    with pytest.raises(FairnessError, match=r"expected columns \['side', 'n'\], found \['side'\]"):
        write(lake, pa.table({"side": ["a"]}))
    assert lake.read("things", KEY).equals(TABLE)
    assert not parts(tmp_path)


def test_what_a_killed_run_left_is_swept(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    path = lake.table_path("things", KEY)
    path.parent.mkdir(parents=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    host = os.uname().nodename.replace(".", "_")
    left = [path.parent / f".{path.name}.{writer}-abc.part" for writer in (f"{host}-{gone.pid}", "other-host-1")]
    lives = [path.parent / f".{path.name}.{writer}-abc.part" for writer in (f"{host}-{os.getpid()}", "other-host-2")]
    for part in [*left, *lives]:
        part.write_text("half")
    os.utime(left[1], (1, 1))
    write(lake)
    assert sorted(parts(tmp_path)) == sorted(lives)


def test_a_card_proves_nothing_without_what_it_vouches_for(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.write_card("models", {"model": "m"}, Card("f" * 64, {}))
    assert lake.card("models", {"model": "m"}) is None
    folder = lake.folder("models", {"model": "m"}, "f" * 64)
    folder.mkdir(parents=True)
    (folder / "model.safetensors").touch()
    assert lake.card("models", {"model": "m"}) is None
    lake.write_card("models", {"model": "m"}, Card("f" * 64, {}))
    assert lake.card("models", {"model": "m"}).fingerprint == "f" * 64
    (folder / "model.safetensors").unlink()
    assert lake.card("models", {"model": "m"}) is None


def test_a_full_disk(tmp_path: Path) -> None:
    """A real file system of one megabyte that has no room left."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("no right to mount a small file system: cannot fill a disk")
    try:
        lake = Lake(small)
        write(lake)
        numbers = pa.array(os.urandom(4 << 20), pa.uint8()).cast(pa.int64())
        large = pa.table({"side": pa.repeat("a", len(numbers)), "n": numbers}, schema=SCHEMA)
        with pytest.raises(FairnessError, match=r"part-0\.parquet: the disk is full; nothing was written\. Make room"):
            write(lake, large)
        assert lake.read("things", KEY).equals(TABLE)
        full = pytest.raises(FairnessError, match="model.safetensors: the disk is full")
        with full, replacing(small / "model.safetensors") as path:
            save_file({"x": torch.zeros(1 << 20)}, path)
        assert not parts(small)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(FairnessError, match="file/x: cannot be read or written: (File exists|Not a directory)"),
        replacing(tmp_path / "file" / "x") as path,
    ):
        path.write_text("never")


def hold(root: Path, held: "multiprocessing.synchronize.Event") -> None:
    with Lake(root).lock("things", KEY, lambda holder: None):
        held.set()
        time.sleep(60)


def test_the_second_waits_and_names_the_holder_and_a_kill_frees_the_lock(tmp_path: Path) -> None:
    check_second_waits(tmp_path)


def check_second_waits(root: Path) -> None:
    """That of two processes the second waits, whatever keeps the locks."""
    spawn = multiprocessing.get_context("spawn")
    held = spawn.Event()
    first = spawn.Process(target=hold, args=(root, held))
    first.start()
    assert held.wait(60)
    heard: list[str] = []

    def waiting(holder: str) -> None:
        heard.append(holder)
        first.kill()

    with Lake(root).lock("things", KEY, waiting):
        assert heard == [f"process {first.pid} on {os.uname().nodename}"]
    first.join()
    with (
        Lake(root).lock("other", KEY, waiting),
        Lake(root).lock("things", {"dimension": "race", "model": "m"}, waiting),
    ):
        assert len(heard) == 1  # partitions do not wait for each other


def test_who_was_taken_over_writes_neither_table_nor_document(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.lock("things", KEY, lambda holder: None):
        (lease,) = (tmp_path / "locks" / "things").glob("*/*")
        lease.with_name("000000009").write_text("another-host/abcdef 7 99")
        with pytest.raises(FairnessError, match="nothing was written"):
            write(lake)
        with (
            pytest.raises(FairnessError, match="nothing was written"),
            replacing(lake.document_path("report"), lake.still_ours("things", KEY)) as temporary,
        ):
            temporary.write_text("late")
        with pytest.raises(FairnessError, match="nothing was written"):
            lake.write_card("things", KEY, Card("f", {}))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "locks" not in path.parts]


def test_fingerprints() -> None:
    one = fingerprint({"a": 1, "b": [1, 2]})
    assert one == fingerprint({"b": (1, 2), "a": 1})
    assert one != fingerprint({"a": 1, "b": [2, 1]})
    assert len(one) == 64


def test_sql_sees_one_view_a_table_with_partitions_as_text(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake)
    write(lake, key={"dimension": "race", "model": "007"})
    with connect(tmp_path) as connection:
        rows = connection.execute("select dimension, model, sum(n) from things group by all order by 1").fetchall()
    assert rows == [("gender", "m", 3), ("race", "007", 3)]
