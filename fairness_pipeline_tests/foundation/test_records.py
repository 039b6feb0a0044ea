"""Files of records that are not what they should be."""

import gzip
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd

from fairness_pipeline.corpora.classifiers.chat_rooms import read_chat_rooms
from fairness_pipeline.corpora.language.multiwoz import _read
from fairness_pipeline.foundation import text_files
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import read_records
from fairness_pipeline.foundation.text_files import read_lines


@pytest.mark.parametrize("name", ["nested.json", "nested.jsonl"])
def test_nesting_without_end_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('[{"text": ' + "[" * 100_000 + "]" * 100_000 + "}]" if name.endswith("json") else "[" * 100_000)
    with pytest.raises(FairnessError, match=f"{name}.*(nested too deeply|not valid JSON)"):
        list(read_records(path))


@pytest.mark.parametrize("mark", [",", "\t"])
def test_a_column_that_stands_twice_is_no_choice(tmp_path: Path, mark: str) -> None:
    path = tmp_path / ("texts.csv" if mark == "," else "texts.tsv")
    path.write_text(mark.join(["text", "response", "response"]) + "\n" + mark.join("abc") + "\n")
    with pytest.raises(FairnessError, match="line 1: the column 'response' stands twice; keep one"):
        list(read_records(path))
    path.write_text(mark.join(["text", "", ""]) + "\n" + mark.join(["a", "", ""]) + "\n")  # as spreadsheets end rows
    assert [row["text"] for _, row in read_records(path)] == ["a"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("json", ": not valid JSON: "), ("jsonl", ", line 1: not valid JSON: "), ("parquet", ": the column ")],
)
def test_nor_is_it_in_other_forms(tmp_path: Path, name: str, problem: str) -> None:
    path, row = tmp_path / f"texts.{name}", '{"response": "b", "response": "c"}'
    if name == "parquet":
        pq.write_table(pa.table([["b"], ["c"]], names=["response", "response"]), path)
    else:
        path.write_text(f"[{row}]" if name == "json" else row)
    with pytest.raises(FairnessError, match=f"texts.{name}{problem}'response' stands twice; keep one"):
        list(read_records(path))


def packed(path: Path, content: bytes, name: str = "texts.csv") -> Path:
    """`content` in a compressed file of the kind that the ending names."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
    else:
        path.write_bytes({".gz": gzip, ".zst": zstd}[path.suffix].compress(content))
    return path


@pytest.mark.parametrize("kind", ["gz", "zst", "zip"])
def test_a_file_that_unpacks_to_more_than_text_does_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(text_files, "_SMALL", 1 << 16)
    path = packed(tmp_path / f"bomb.csv.{kind}", b"a,b\n" * (1 << 20))
    with pytest.raises(FairnessError, match=f"bomb.csv.{kind}: unpacks to more than [0-9,]+ bytes"):
        list(read_lines(path))
    text = "".join(f"{number},{number * number}\n" for number in range(20_000)).encode()
    assert len(list(read_lines(packed(tmp_path / f"text.csv.{kind}", text)))) == 20_000


def test_a_member_of_a_zip_is_no_bomb_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_SMALL", 1 << 16)
    rooms = packed(tmp_path / "rooms.zip", b"<Session>" + b" " * (1 << 22), "rooms/10-19-20s_706posts.xml")
    with pytest.raises(FairnessError, match=r"rooms.zip: unpacks to more than"):
        list(read_chat_rooms(rooms))
    dialogues = packed(tmp_path / "data.zip", b" " * (1 << 22) + b"{}", "data.json")
    with pytest.raises(FairnessError, match=r"data.zip: unpacks to more than"):
        list(_read(dialogues))


def test_dialogues_that_are_nested_without_end_are_named(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("[" * 100_000)
    with pytest.raises(FairnessError, match=r"data.json: expected MultiWOZ"):
        list(_read(tmp_path / "data.json"))
