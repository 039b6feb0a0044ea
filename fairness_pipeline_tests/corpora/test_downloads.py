"""Downloads over real HTTP, from a server that breaks off, resumes, and sends wrong files."""

import gzip
import json
import os
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues, source_files
from fairness_pipeline.corpora.downloads import download, download_path
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.foundation import checksums
from fairness_pipeline.foundation.checksums import REHASH, checksum, verify_checksum, wrong_record
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import canonical
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline_tests.local_server import answer, serve

FILE = gzip.compress("".join(f"c{i}\tr{i}\n" for i in range(50_000)).encode(), mtime=0)
SUM = sha256(FILE).hexdigest()


class FileServer:
    """Serves FILE; breaks off after `cut` bytes; resumes at the requested byte if `ranges`."""

    def __init__(
        self, *, cut: int | None = None, ranges: bool = True, status: int = 200, content: bytes = FILE
    ) -> None:
        self.cut, self.ranges, self.status, self.content = cut, ranges, status, content
        self.requested: list[str | None] = []

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        range_header = request.headers.get("Range")
        self.requested.append(range_header)
        if self.status != 200:
            return answer(request, self.status, b"no")
        start = int(range_header.removeprefix("bytes=").removesuffix("-")) if range_header and self.ranges else 0
        if range_header and self.ranges and start >= len(self.content):
            return answer(request, 416, b"")
        body = self.content[start:]
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: self.cut])
        return None


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_download_that_breaks_off_goes_on() -> None:
    server = FileServer(cut=1000)
    progress: list[tuple[int, int | None]] = []
    with serve(server) as address:
        with pytest.raises(FairnessError, match=r"pairs.tsv.gz: the download broke off .*; run again, it goes on"):
            download(f"{address}/pairs.tsv.gz", SUM)
        assert not download_path(f"{address}/pairs.tsv.gz", SUM).exists()
        server.cut = None
        path = download(f"{address}/pairs.tsv.gz", SUM, lambda done, total, note: progress.append((done, total)))
        assert path.read_bytes() == FILE
        assert server.requested == [None, "bytes=1000-"]
        assert progress[-1] == (len(FILE), len(FILE))
        assert download(f"{address}/pairs.tsv.gz", SUM) == path
        assert len(server.requested) == 2  # it is not fetched again


def test_a_server_that_cannot_go_on_sends_all_again() -> None:
    server = FileServer(cut=1000, ranges=False)
    with serve(server) as address:
        with pytest.raises(FairnessError, match="broke off"):
            download(f"{address}/a.gz", SUM)
        server.cut = None
        assert download(f"{address}/a.gz", SUM).read_bytes() == FILE


def test_killed_after_the_last_byte() -> None:
    with serve(FileServer()) as address:
        partial = download_path(f"{address}/a.gz", SUM).with_name("a.gz.partial")
        partial.parent.mkdir(parents=True)
        partial.write_bytes(FILE)
        assert download(f"{address}/a.gz", SUM).read_bytes() == FILE


def test_a_file_that_is_not_the_declared_one_is_not_kept() -> None:
    with serve(FileServer(content=b"something else")) as address:
        with pytest.raises(FairnessError, match=f"expected SHA-256 {SUM}, found"):
            download(f"{address}/a.gz", SUM)
        assert not list(download_path(f"{address}/a.gz", SUM).parent.glob("a.gz*"))


def test_a_server_that_refuses_or_is_not_there() -> None:
    with serve(FileServer(status=404)) as address, pytest.raises(FairnessError, match="a.gz: the server answers 404"):
        download(f"{address}/a.gz", SUM)
    with pytest.raises(FairnessError, match="a.gz: the download broke off"):
        download(f"{address}/a.gz", SUM)


def test_another_sum_fetches_another_file() -> None:
    server = FileServer()
    other_file = gzip.compress(b"a\tb\n")
    with serve(server) as address:
        assert download(f"{address}/a.gz", SUM).read_bytes() == FILE
        server.content = other_file
        assert download(f"{address}/a.gz", sha256(other_file).hexdigest()).read_bytes() == other_file
        with pytest.raises(FairnessError, match="expected SHA-256 0000"):
            download(f"{address}/a.gz", "0" * 64)
        assert download(f"{address}/a.gz", SUM).read_bytes() == FILE  # kept
        download_path(f"{address}/a.gz", SUM).write_bytes(b"tampered")
        server.content = FILE
        assert download(f"{address}/a.gz", SUM).read_bytes() == FILE


def test_a_corpus_at_an_address(tmp_path: Path) -> None:
    with serve(FileServer()) as address:
        corpus = CorpusSpecification(
            platform="reddit", format="tsv", header=False, columns={"context": 1, "response": 2},
            files=[{"path": f"{address}/pairs.tsv.gz", "sha256": SUM}], licence="", citation="",
        )  # fmt: skip
        assert canonical(source_files(corpus, tmp_path)) == {f"{address}/pairs.tsv.gz": SUM}
        splits = {"train": 1.0, "valid": 1.0, "test": 1.0, "audit": 1.0}
        assert read_dialogues("k", corpus, tmp_path, splits, 1).table.num_rows == 50_000
    with pytest.raises(ValueError, match="an address needs 'sha256'"):
        CorpusSpecification(platform="reddit", format="tsv", files=[{"path": "https://a.b/c"}], licence="", citation="")


ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""The SHA-256 of `abc` (FIPS 180-2, appendix B.1)."""


def test_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"abc")
    assert verify_checksum(path, ABC) == verify_checksum(path, None) == ABC
    with pytest.raises(FairnessError, match=f"expected SHA-256 {'0' * 64}, found {ABC}"):
        verify_checksum(path, "0" * 64)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(FairnessError, match="cannot be read: .*; check the path"):
            checksum(missing)


def test_the_sum_of_a_large_file_is_remembered_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * (2 << 20))
    first = checksum(path)
    hashed: list[Path] = []
    original = checksums.sha256_of
    monkeypatch.setattr(checksums, "sha256_of", lambda path: (hashed.append(path), original(path))[1])
    assert checksum(path) == first
    assert not hashed
    path.write_bytes(b"y" * (2 << 20))
    assert checksum(path) == sha256(b"y" * (2 << 20)).hexdigest() != first
    assert hashed == [path]


def change_in_place(path: Path) -> None:
    """Changes a byte, but neither the size, the modification time nor the inode."""
    before = path.stat()
    with path.open("r+b") as stream:
        stream.write(b"y")
    while (now := path.stat()).st_ctime_ns == before.st_ctime_ns or now.st_mtime_ns != before.st_mtime_ns:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (now.st_size, now.st_ino) == (before.st_size, before.st_ino)


def test_bytes_that_change_under_the_same_size_time_and_inode_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"x" * (2 << 20))
    first = checksum(path)
    change_in_place(path)
    assert checksum(path) == sha256(path.read_bytes()).hexdigest() != first


def forge(path: Path, wrong: str) -> Path:
    """Records a wrong checksum for the present state of a file, as if another process had kept it."""
    checksum(path)
    checksums._hashed.clear()
    name = sha256(str(path.resolve()).encode()).hexdigest()[:32]
    record = cache_folder() / "checksums" / f"{name}.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"sha256": wrong}))
    return record


def test_a_checksum_that_another_process_kept_is_not_trusted_if_it_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"x" * (2 << 20))
    record = forge(path, "0" * 64)
    hashed: list[Path] = []
    original = checksums.sha256_of
    monkeypatch.setattr(checksums, "sha256_of", lambda path: (hashed.append(path), original(path))[1])
    assert checksum(path) == "0" * 64
    assert wrong_record(path) == record
    hashed.clear()
    monkeypatch.setenv(REHASH, "1")
    for _ in range(3):
        assert checksum(path) == sha256(b"x" * (2 << 20)).hexdigest()
    assert hashed == [path]  # once per process
    change_in_place(path)
    assert checksum(path) == sha256(path.read_bytes()).hexdigest()
    monkeypatch.delenv(REHASH)
    assert wrong_record(path) is None
    assert checksum(path) == sha256(path.read_bytes()).hexdigest()  # the right checksum is kept
