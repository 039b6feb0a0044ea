import gzip
from pathlib import Path

import pytest

from fairness_pipeline.corpora.readers import LONGEST_LINE, checksum, read_tsv, verify_checksum
from fairness_pipeline.errors import FairnessError

GOOD = b"context\tresponse\nhello\thi\nhow are you\tfine\n"


def rows(path: Path, **options: object) -> list[tuple[str, str, str | None]]:
    return [tuple(turns) for turns in read_tsv(path, **options)]


def test_plain_and_gzip(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(GOOD)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(GOOD))
    expected = [("hello", "hi", None), ("how are you", "fine", None)]
    assert rows(tmp_path / "a.tsv") == rows(tmp_path / "a.tsv.gz") == expected


def test_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD)  # a byte order mark, as some editors write
    assert rows(path)[0] == ("hello", "hi", None)
    path.write_bytes(b"thread_id\tresponse\tother\tcontext\r\n7\thi\tx\thello\r\n")
    assert rows(path) == [("hello", "hi", "7")]
    path.write_bytes(b"hello\thi\nbye\tciao\n")
    assert rows(path, header=False) == [("hello", "hi", None), ("bye", "ciao", None)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "found an empty file"),
        (b"context\tresponse\n", "found only a header"),
        (b"hello\thi\nbye\tciao\n", "line 1: expected a header"),
        (GOOD + b"one\n", "line 4: expected 2 tab-separated columns (context, response), found 1"),
        (GOOD + b"one\ttwo\tthree\n", "line 4: expected 2 tab-separated columns (context, response), found 3"),
        (GOOD + b"caf\xe9\tnon\n", "line 4: expected UTF-8, byte 4 of the line is 0xe9"),
        (GOOD + b"a\0b\tc\n", "line 4: holds a NUL byte"),
        ("context\tresponse\n".encode("utf-16"), "line 1: holds a NUL byte"),
        (GOOD + b"x" * (10 << 20) + b"\ty\n", f"line 4: longer than {LONGEST_LINE:,} bytes"),
    ],
)
def test_bad_content_is_refused_by_file_and_line(tmp_path: Path, content: bytes, expected: str) -> None:
    for path, written in ((tmp_path / "bad.tsv", content), (tmp_path / "bad.tsv.gz", gzip.compress(content))):
        path.write_bytes(written)
        with pytest.raises(FairnessError) as error:
            rows(path)
        assert str(path) in str(error.value)
        assert expected in str(error.value)


def test_broken_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(GOOD * 1000)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for content in (whole[:-20], b"plain text, not gzip", bytes(flipped), whole[:5]):
        path = tmp_path / "bad.tsv.gz"
        path.write_bytes(content)
        with pytest.raises(FairnessError, match=r"bad\.tsv\.gz.*(gzip data is broken|line \d)"):
            rows(path)


def test_missing_and_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.tsv", tmp_path):
        with pytest.raises(FairnessError, match="cannot be read: .*; check the path"):
            rows(path)
        with pytest.raises(FairnessError, match="cannot be read"):
            checksum(path)


def test_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"abc")
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert verify_checksum(path, abc) == verify_checksum(path, None) == abc
    with pytest.raises(FairnessError, match=f"expected SHA-256 {'0' * 64}, found {abc}"):
        verify_checksum(path, "0" * 64)
