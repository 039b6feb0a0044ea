import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.workspace import lake as lake_module
from fairness_pipeline.workspace.lake import Card, Lake, fingerprint
from fairness_pipeline.workspace.sql import connect

SCHEMA = pa.schema([pa.field("side", pa.string(), False), pa.field("n", pa.int64(), False)])
NESTED = pa.schema(
    [
        pa.field("seeds", pa.list_(pa.float64())),
        pa.field("pairs", pa.list_(pa.list_(pa.string()))),
        pa.field("own", pa.struct([("x", pa.list_(pa.int64()))])),
        pa.field("day", pa.timestamp("us", "UTC")),
        pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
    ]
)
TABLE = pa.table({"side": ["a", "b"], "n": [1, 2]}, schema=SCHEMA)
KEY = {"dimension": "gender", "model": "m"}


def about(inputs: dict[str, Any], *more: Any, **named: Any) -> Card:
    """A card whose fingerprint is that of its inputs, as a run makes it."""
    return Card(fingerprint(inputs), inputs, *more, **named)


def write(lake: Lake, table: pa.Table = TABLE, key: dict[str, str] = KEY, card: Card | None = None) -> None:
    with lake.writing("things", key, table, SCHEMA, card or about({"x": 1}, {"rows": 2})):
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
    assert card == about({"x": 1}, {"rows": 2}, card.content, seal=card.seal)
    assert len(card.seal) == 64
    assert lake.verify("things", KEY) is None


def test_what_was_read_is_read_again_once_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a file system's times are so coarse that a second change has the time of the first."""
    lake, more = Lake(tmp_path), pa.table({"side": ["a", "b"], "n": [1, 3]}, schema=SCHEMA)
    path = lake.table_path("things", KEY)

    def shown() -> tuple[int, str]:
        return lake.read_small("things", KEY)["n"][1].as_py(), lake.card("things", KEY).content

    monkeypatch.setattr(lake_module, "_state", lambda path: (path, *(round(path.stat().st_mtime_ns, -9),) * 2, 0))
    write(lake)
    first = shown()
    write(lake, more)
    assert shown()[0] == 3 and shown()[1] != first[1]

    monkeypatch.undo()
    os.utime(path, (time.time() - 10,) * 2)
    monkeypatch.setattr(lake_module, "_COARSE", 0)
    second, reads = shown(), list[Path]()
    monkeypatch.setattr(lake_module.pq, "ParquetFile", lambda path, **named: reads.append(path))
    monkeypatch.setattr(lake_module.pq, "read_metadata", lambda path: reads.append(path))
    assert shown() == second and not reads
    lake.card("things", KEY).figures["rows"] = 3  # whoever changes a card changes its own
    assert lake.card("things", KEY).figures == {"rows": 2}


def test_the_content_is_what_was_made_and_nothing_else(tmp_path: Path) -> None:
    """It covers every value and the figures, but neither settings nor time nor fingerprint."""

    def content(table: pa.Table = TABLE, card: Card | None = None) -> str:
        lake = Lake(tmp_path)
        write(lake, table, card=card)
        return lake.card("things", KEY).content

    first = content()
    assert len(first) == 64
    assert content() == first
    assert content(card=about({"x": 2}, {"rows": 2})) == first
    assert content(card=about({"x": 1}, {"rows": 3})) != first
    assert content(pa.table({"side": ["a", "b"], "n": [1, 3]}, schema=SCHEMA)) != first
    assert content(pa.table({"side": ["a"], "n": [1]}, schema=SCHEMA)) != first

    lake, key = Lake(tmp_path), {"model": "m"}
    folder = lake.folder("models", key, "f" * 64)
    folder.mkdir(parents=True)
    contents = set()
    for text in ("one", "two", "one"):
        (folder / "model.safetensors").write_text(text)
        lake.write_card("models", key, Card("f" * 64, {}))
        contents.add(lake.card("models", key).content)
    assert len(contents) == 2
    (folder / "model.safetensors").write_text("on")  # truncated
    assert lake.card("models", key) is None
    assert lake.was_finished("models", key, "f" * 64)
    assert not lake.was_finished("models", key, "e" * 64)


def test_same_content_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(Lake(tmp_path / name))
    first, second = (Lake(tmp_path / name).table_path("things", KEY).read_bytes() for name in ("one", "two"))
    assert first == second


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
    other_table = pa.table({"side": ["a"], "n": [9]}, schema=SCHEMA)
    with pytest.raises(ZeroDivisionError), lake.writing("things", KEY, other_table, SCHEMA, Card("e", {})):
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
    stale = [path.parent / f".{path.name}.{writer}-abc.part" for writer in (f"{host}-{gone.pid}", "other-host-1")]
    live = [path.parent / f".{path.name}.{writer}-abc.part" for writer in (f"{host}-{os.getpid()}", "other-host-2")]
    for part in [*stale, *live]:
        part.write_text("half")
    os.utime(stale[1], (1, 1))
    write(lake)
    assert sorted(parts(tmp_path)) == sorted(live)


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


def test_a_flipped_bit_anywhere_in_a_table_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake, pa.table({"side": [f"text {i}" for i in range(500)], "n": list(range(500))}, schema=SCHEMA))
    path = lake.table_path("things", KEY)
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        assert lake.verify("things", KEY), position
    path.write_bytes(whole)
    assert lake.verify("things", KEY) is None


def test_a_flipped_bit_of_a_page_is_not_read(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake, pa.table({"side": ["a"] * 4000, "n": [i * i * 7919 % 10007 for i in range(4000)]}, schema=SCHEMA))
    path = lake.table_path("things", KEY)
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(FairnessError, match="damaged"):
        lake.read("things", KEY)


def test_an_edited_table_that_keeps_its_card_is_named(tmp_path: Path) -> None:
    """Every verdict set to `fair` by pandas, the metadata kept: the card's content is that of other data."""
    lake = Lake(tmp_path)
    write(lake)
    path = lake.table_path("things", KEY)
    metadata = pq.read_metadata(path).metadata
    edited = pa.table({"side": ["b", "b"], "n": [1, 2]}, schema=SCHEMA)
    with pq.ParquetWriter(path, edited.schema) as writer:
        writer.write_table(edited)
        writer.add_key_value_metadata({"fairness_pipeline": metadata[b"fairness_pipeline"].decode()})
    assert lake.read("things", KEY)["side"].to_pylist() == ["b", "b"]
    assert "card is damaged" in lake.verify("things", KEY)  # the seal is that of another footer

    described = json.loads(metadata[b"fairness_pipeline"])
    with pq.ParquetWriter(path, edited.schema) as writer:
        writer.write_table(edited)
        writer.add_key_value_metadata({"fairness_pipeline": json.dumps({**described, "seal": ""})})
    assert "card is damaged" in lake.verify("things", KEY)  # a seal that was taken off is missed


def test_a_link_out_of_the_lake_is_no_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    write(lake)
    path = lake.table_path("things", KEY)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert lake.verify("things", KEY) == "it is a link to a file outside of the workspace"
    (tmp_path / "link").symlink_to(lake.root)  # a home on another disk
    (tmp_path / "elsewhere").rename(path)
    assert Lake(tmp_path / "link").verify("things", KEY) is None


def test_a_link_out_of_the_lake_is_no_card(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    _, card = checkpoint(lake)
    card.rename(tmp_path / "card.json")
    card.symlink_to(tmp_path / "card.json")
    assert lake.card("models", KEY) is None


def test_tables_of_every_type_are_as_they_were_written(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    rows = [{"seeds": [0.5], "pairs": [["a"], []], "own": {"x": [1]}, "day": datetime.now(UTC), "kind": "k"}]
    with lake.writing("nested", KEY, pa.Table.from_pylist(rows, schema=NESTED), NESTED, about({})):
        pass
    assert lake.verify("nested", KEY) is None


def test_swapped_partitions_are_named(tmp_path: Path) -> None:
    lake, other_key = Lake(tmp_path), {"dimension": "race", "model": "m"}
    for key in (KEY, other_key):
        write(lake, key=key, card=about({"asset": "things", "partition": key}))
    path, other_path = lake.table_path("things", KEY), lake.table_path("things", other_key)
    path.rename(tmp_path / "aside")
    other_path.rename(path)
    (tmp_path / "aside").rename(other_path)
    assert lake.card("things", KEY) is None
    assert "another partition's" in lake.verify("things", KEY)
    assert "another partition's" in lake.verify("things", other_key)


def checkpoint(lake: Lake) -> tuple[Path, Path]:
    """The file of a model's checkpoint, and its card."""
    card = about({"asset": "models", "partition": KEY}, {"loss": 1.0})
    folder = lake.folder("models", KEY, card.fingerprint)
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(bytes(range(256)))
    lake.write_card("models", KEY, card)
    return folder / "weights", next((lake.root / "cards").rglob("*.json"))


def test_a_checkpoint_of_the_same_size_that_is_another(tmp_path: Path) -> None:
    """Seen at once if its file is newer than the card, and by reading it if it is not (it has rotted)."""
    lake = Lake(tmp_path)
    weights, card = checkpoint(lake)
    assert lake.verify("models", KEY) is None
    flipped = bytearray(weights.read_bytes())
    flipped[100] ^= 4
    weights.write_bytes(flipped)
    os.utime(weights, ns=(0, card.stat().st_mtime_ns + 10**9))
    assert lake.card("models", KEY) is None
    os.utime(weights, ns=(0, card.stat().st_mtime_ns - 10**9))
    assert lake.card("models", KEY) is not None
    assert lake.verify("models", KEY) == "its content is not what was written"
    flipped[100] ^= 4
    weights.write_bytes(flipped)
    os.utime(weights, ns=(0, card.stat().st_mtime_ns + 10**9))
    assert lake.verify("models", KEY) is None
    (weights.parent / "more").write_text("a file that the card does not list")
    assert lake.verify("models", KEY) == "its content is not what was written"


@pytest.mark.parametrize(
    "damage",
    [
        lambda card: {**card, "figures": {"loss": 0.5}},
        lambda card: {name: value for name, value in card.items() if name != "figures"},
        lambda card: {**card, "files": {"../../etc/hostname": 1}},
        lambda card: {**card, "files": {}},
        lambda card: {**card, "inputs": {}},
        lambda card: {**card, "inputs": []},
        lambda card: {**card, "seal": "0" * 64},
        lambda card: {**card, "seal": "", "files": {"../outside": 2}},
        lambda card: {**card, "seal": "", "files": {"/etc/hostname": Path("/etc/hostname").stat().st_size}},
        lambda card: {**card, "unknown": 1},
        lambda card: {**card, "files": 7},
        lambda card: {**card, "files": None},
        lambda card: [card],
    ],
)
def test_a_damaged_card_vouches_for_nothing(tmp_path: Path, damage: Callable[[dict[str, Any]], object]) -> None:
    lake = Lake(tmp_path / "lake")
    _, card = checkpoint(lake)
    (tmp_path / "outside").write_text("ab")
    card.write_text(json.dumps(damage(json.loads(card.read_text()))))
    assert lake.card("models", KEY) is None
    assert lake.verify("models", KEY)


@pytest.mark.parametrize(
    "edit", [{"figures": {"loss": 0.5}}, {"inputs": {"asset": "models", "partition": KEY, "seed": 2}}]
)
def test_a_seal_that_was_taken_off_hides_nothing(tmp_path: Path, edit: dict[str, object]) -> None:
    lake = Lake(tmp_path)
    _, card = checkpoint(lake)
    whole = json.loads(card.read_text())
    for damaged in ({**whole, "seal": ""}, {**whole, "seal": "", **edit}):
        card.write_text(json.dumps(damaged))
        assert lake.card("models", KEY) is None
        assert lake.verify("models", KEY)
    card.write_text(json.dumps(whole))
    assert lake.verify("models", KEY) is None


def test_a_table_whose_footer_points_elsewhere(tmp_path: Path) -> None:
    """Its pages are as written, but a column's are read as another's; and its seal was taken off."""
    lake = Lake(tmp_path)
    table = pa.table({"side": ["a"] * 50, "n": list(range(50)), "m": [7] * 50})
    with lake.writing("things", KEY, table, table.schema, about({})):
        pass
    path = lake.table_path("things", KEY)
    metadata, whole = pq.read_metadata(path), path.read_bytes()
    before = lake.bytes_of("things", KEY)
    described = json.loads(metadata.metadata[b"fairness_pipeline"])
    unsealed = (
        json.dumps({**described, "seal": ""}, sort_keys=True)
        .encode()
        .ljust(len(metadata.metadata[b"fairness_pipeline"]))
    )
    path.write_bytes(whole.replace(metadata.metadata[b"fairness_pipeline"], unsealed))
    assert pq.read_table(path).equals(table)
    assert lake.card("things", KEY) is None
    assert lake.verify("things", KEY)
    assert lake.bytes_of("things", KEY) != before


def test_what_is_made_from_a_rotten_checkpoint_is_not_made(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    weights, _ = checkpoint(lake)
    assert lake.sound_folder("models", KEY) == weights.parent
    whole, times = weights.read_bytes(), weights.stat()
    weights.write_bytes(whole[:-1] + b"x")
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert lake.current_folder("models", KEY) == weights.parent  # neither size nor time tells
    with pytest.raises(FairnessError, match="not as written"):
        lake.sound_folder("models", KEY)


def test_a_card_nested_without_end(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    _, card = checkpoint(lake)
    card.write_text('{"figures": ' + "[" * 100_000)
    assert lake.card("models", KEY) is None


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
    """Checks that the second of two processes waits, whichever store keeps the locks."""
    spawn = multiprocessing.get_context("spawn")
    held = spawn.Event()
    first = spawn.Process(target=hold, args=(root, held))
    first.start()
    assert held.wait(60)
    holders: list[str] = []

    def waiting(holder: str) -> None:
        holders.append(holder)
        first.kill()

    with Lake(root).lock("things", KEY, waiting):
        assert holders == [f"process {first.pid} on {os.uname().nodename}"]
    first.join()
    with (
        Lake(root).lock("other", KEY, waiting),
        Lake(root).lock("things", {"dimension": "race", "model": "m"}, waiting),
    ):
        assert len(holders) == 1  # partitions do not wait for each other


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
    remaining = [path for path in tmp_path.rglob("*") if path.is_file() and "locks" not in path.parts]
    assert [path.name for path in remaining] == ["format.json"]


def test_fingerprints() -> None:
    first = fingerprint({"a": 1, "b": [1, 2]})
    assert first == fingerprint({"b": (1, 2), "a": 1})
    assert first != fingerprint({"a": 1, "b": [2, 1]})
    assert len(first) == 64


def test_sql_sees_one_view_a_table_with_partitions_as_text(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake)
    write(lake, key={"dimension": "race", "model": "007"})
    with connect(tmp_path) as connection:
        rows = connection.execute("select dimension, model, sum(n) from things group by all order by 1").fetchall()
    assert rows == [("gender", "m", 3), ("race", "007", 3)]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/hostname')",
        "select * from read_text('{outside}')",
        "select * from '{tables}/../secret.csv'",
        "select * from read_parquet('http://127.0.0.1:1/x.parquet')",
        "copy (select 1) to '{outside}'",
        "attach '{outside}' as other",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "reset lock_configuration",
    ],
)
def test_sql_reads_nothing_but_the_tables(tmp_path: Path, query: str) -> None:
    lake = Lake(tmp_path / "workspace")
    write(lake)
    (tmp_path / "secret.csv").write_text("a\nb\n")
    (tmp_path / "workspace/secret.csv").write_text("a\nb\n")
    text = query.format(outside=tmp_path / "secret.csv", tables=tmp_path / "workspace/tables")
    with connect(lake.root) as connection:
        assert connection.execute("select count(*) from things").fetchall() == [(2,)]
        with pytest.raises(duckdb.Error):
            connection.execute(text).fetchall()
    assert (tmp_path / "secret.csv").read_text() == "a\nb\n"
