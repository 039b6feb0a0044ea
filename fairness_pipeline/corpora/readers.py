"""Reads dialogue files line by line and refuses what is not as declared, by file and line."""

import gzip
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fairness_pipeline.errors import FairnessError

LONGEST_LINE = 1 << 20
"""Bytes. A turn is a few hundred; a line beyond this is a file that is not what it claims to be."""


class Turns(NamedTuple):
    """One row as read: a context, its response, and its thread where the file names it."""

    context: str
    response: str
    thread_id: str | None


def checksum(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        FairnessError: there is no such file.
    """
    digest = sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise FairnessError(
            f"{path}: cannot be read: {error.strerror}; check the path in the corpus's YAML file"
        ) from None
    return digest.hexdigest()


def verify_checksum(path: Path, expected: str | None) -> str:
    """The file's SHA-256.

    Raises:
        FairnessError: it is not `expected`, or there is no such file.
    """
    found = checksum(path)
    if expected is not None and found != expected:
        raise FairnessError(
            f"{path}: expected SHA-256 {expected}, found {found}; the file changed or was cut short: "
            "fetch it again, or correct the corpus's YAML file"
        )
    return found


def read_tsv(path: Path, *, header: bool = True, columns: tuple[str, ...] = ("context", "response")) -> Iterator[Turns]:
    """The rows of a tab-separated file, plain or gzipped.

    Args:
        path: The file; `.gz` is unpacked while reading.
        header: The first line names the columns.
        columns: Their names where no line does.

    Raises:
        FairnessError: missing or empty file, broken gzip, wrong columns, bytes that are not UTF-8, NUL bytes, or a
            line longer than `LONGEST_LINE`; names the file and the line.
    """
    number = 0
    for number, line in enumerate(_lines(path), start=1):
        cells = _decode(path, number, line).split("\t")
        if number == 1 and header:
            columns = _columns(path, cells)
            continue
        if len(cells) != len(columns):
            raise FairnessError(
                f"{path}, line {number}: expected {len(columns)} tab-separated columns ({', '.join(columns)}), "
                f"found {len(cells)}"
            )
        row = dict(zip(columns, cells, strict=True))
        yield Turns(row["context"], row["response"], row.get("thread_id") or None)
    if number <= header:
        raise FairnessError(f"{path}: expected dialogues, found {'only a header' if number else 'an empty file'}")


def _columns(path: Path, cells: list[str]) -> tuple[str, ...]:
    missing = {"context", "response"} - set(cells)
    if missing:
        raise FairnessError(
            f"{path}, line 1: expected a header with columns 'context' and 'response', found {cells[:5]}; "
            "set 'header: false' if the file has none"
        )
    return tuple(cells)


def _decode(path: Path, number: int, line: bytes) -> str:
    if b"\0" in line:
        raise FairnessError(f"{path}, line {number}: holds a NUL byte; expected plain text (is it UTF-16 or binary?)")
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")  # some editors mark a file's beginning
    except UnicodeDecodeError as error:
        raise FairnessError(
            f"{path}, line {number}: expected UTF-8, byte {error.start + 1} of the line is "
            f"0x{line[error.start]:02x}; convert the file to UTF-8"
        ) from None


def _lines(path: Path) -> Iterator[bytes]:
    number = 1
    try:
        with _open(path) as stream:
            while line := stream.readline(LONGEST_LINE + 1):
                if len(line) > LONGEST_LINE:
                    raise FairnessError(
                        f"{path}, line {number}: longer than {LONGEST_LINE:,} bytes; expected one dialogue a line"
                    )
                yield line.removesuffix(b"\n").removesuffix(b"\r")
                number += 1
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FairnessError(
            f"{path}: after {number - 1:,} lines the gzip data is broken ({error}); fetch the file again"
        ) from None
    except OSError as error:
        raise FairnessError(
            f"{path}: cannot be read: {error.strerror}; check the path in the corpus's YAML file"
        ) from None


def _open(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]
