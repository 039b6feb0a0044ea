"""Malformed files of records."""

import gzip
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd

from fairness_pipeline.corpora.classifiers.chat_rooms import read_chat_rooms
from fairness_pipeline.corpora.language.multiwoz import _read
from fairness_pipeline.foundation import text_files
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import read_records
from fairness_pipeline.foundation.text_files import read_json, read_lines


@pytest.mark.parametrize("name", ["nested.json", "nested.jsonl"])
def test_deep_nesting_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('[{"text": ' + "[" * 100_000 + "]" * 100_000 + "}]" if name.endswith("json") else "[" * 100_000)
    with pytest.raises(FairnessError, match=f"{name}.*(nested too deeply|not valid JSON)"):
        list(read_records(path))


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_duplicate_column_is_refused(tmp_path: Path, separator: str) -> None:
    path = tmp_path / ("texts.csv" if separator == "," else "texts.tsv")
    path.write_text(separator.join(["text", "response", "response"]) + "\n" + separator.join("abc") + "\n")
    with pytest.raises(FairnessError, match="line 1: the column 'response' is listed twice; keep one"):
        list(read_records(path))
    path.write_text(separator.join(["text", "", ""]) + "\n" + separator.join(["a", "", ""]) + "\n")  # empty columns
    assert [row["text"] for _, row in read_records(path)] == ["a"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("json", ": not valid JSON: "), ("jsonl", ", line 1: not valid JSON: "), ("parquet", ": the column ")],
)
def test_a_duplicate_column_is_refused_in_other_formats(tmp_path: Path, name: str, problem: str) -> None:
    path, row = tmp_path / f"texts.{name}", '{"response": "b", "response": "c"}'
    if name == "parquet":
        pq.write_table(pa.table([["b"], ["c"]], names=["response", "response"]), path)
    else:
        path.write_text(f"[{row}]" if name == "json" else row)
    with pytest.raises(FairnessError, match=f"texts.{name}{problem}'response' is listed twice; keep one"):
        list(read_records(path))


def compressed(path: Path, content: bytes, name: str = "texts.csv") -> Path:
    """Writes `content` to a compressed file; the suffix names the compression."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
    else:
        path.write_bytes({".gz": gzip, ".zst": zstd}[path.suffix].compress(content))
    return path


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip"])
def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(text_files, "_SMALL", 1 << 16)
    path = compressed(tmp_path / f"bomb.csv.{suffix}", b"a,b\n" * (1 << 20))
    with pytest.raises(FairnessError, match=f"bomb.csv.{suffix}: unpacks to more than [0-9,]+ bytes"):
        list(read_lines(path))
    text = "".join(f"{number},{number * number}\n" for number in range(20_000)).encode()
    assert len(list(read_lines(compressed(tmp_path / f"text.csv.{suffix}", text)))) == 20_000


def test_a_decompression_bomb_within_a_zip_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_SMALL", 1 << 16)
    rooms = compressed(tmp_path / "rooms.zip", b"<Session>" + b" " * (1 << 22), "rooms/10-19-20s_706posts.xml")
    with pytest.raises(FairnessError, match=r"rooms.zip: unpacks to more than"):
        list(read_chat_rooms(rooms))
    dialogues = compressed(tmp_path / "data.zip", b" " * (1 << 22) + b"{}", "data.json")
    with pytest.raises(FairnessError, match=r"data.zip: unpacks to more than"):
        list(_read(dialogues))


def test_a_list_on_one_long_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "texts.json"
    path.write_text(json.dumps([{"text": "x" * 600_000}, {"text": "y" * 600_000}]), encoding="utf-8")
    assert [(where, row["text"][0]) for where, row in read_records(path)] == [
        (f"{path}, object 1", "x"), (f"{path}, object 2", "y"),
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip"])
def test_broken_packed_json_is_refused(tmp_path: Path, suffix: str) -> None:
    path = compressed(tmp_path / f"texts.json.{suffix}", random.Random(1).randbytes(2000).hex().encode())
    content, start = path.read_bytes(), 0 if suffix == "zst" else 50
    flipped = bytes(byte ^ 255 for byte in content[start : start + 40])
    for broken in (content[:-40], content[:start] + flipped + content[start + 40 :]):
        path.write_bytes(broken)
        with pytest.raises(FairnessError, match=f"texts.json.{suffix}: cannot be unpacked: .*; fetch the file again"):
            read_json(path)
    path.unlink()
    with pytest.raises(FairnessError, match=f"texts.json.{suffix}: cannot be read: No such file.*; check the path"):
        read_json(path)


@pytest.mark.parametrize(
    "log",
    [
        [{"text": "a"}, "b"], [{"text": "a"}, {"metadata": ["hotel"]}], [{"text": "a"}, {"metadata": {"hotel": []}}],
        [{"turn": "a"}, {"metadata": {"hotel": {"semi": {"price": "cheap"}}}}],
    ],
)  # fmt: skip
def test_malformed_turns_are_refused(tmp_path: Path, log: list[Any]) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"MUL1": {"log": log}}), encoding="utf-8")
    with pytest.raises(FairnessError, match="data.json: MUL1, turns 1 and 2: expected the 'text' of each and"):
        list(_read(path))


def test_deeply_nested_dialogues_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("[" * 100_000)
    with pytest.raises(FairnessError, match=r"data.json: not valid JSON"):
        list(_read(tmp_path / "data.json"))
