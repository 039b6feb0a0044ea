"""Reads text files line by line, plain or compressed. Invalid UTF-8 is refused with file and line."""

import csv
import gzip
import json
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from fairness_pipeline.foundation.errors import FairnessError

LONGEST_LINE = 1 << 20
"""Bytes. A turn has a few hundred; a file with a longer line is not what it claims to be."""

_WINDOW_LOG = 31  # Pushshift's dumps are made with zstd --long=31
_BROKEN = (EOFError, RuntimeError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, zstd.ZstdError)
"""The errors of compressed data; RuntimeError if a `.zip` is encrypted, or packed in an unknown way."""
_SMALL, _PACKED = 1 << 28, 200
"""The bytes that any compressed file may unpack to, and the ratio that a larger one may have; text has about 20."""


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, from 1. A `.gz`, a `.zst` and the only file in a `.zip` are unpacked
    while reading.

    Raises:
        FairnessError: the file is missing, its compression is broken, it has bytes outside the encoding or NUL bytes,
            a line is longer than `LONGEST_LINE`, or it unpacks to more than text does; names the file and the line.
    """
    number = unpacked = 0
    try:
        limit = most_bytes(path)
        with open_unpacked(path) as stream:
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                unpacked += len(line)
                if unpacked > limit:
                    raise too_large(path, limit)
                if len(line) > LONGEST_LINE:
                    raise FairnessError(
                        f"{path}, line {number}: longer than {LONGEST_LINE:,} bytes; expected one dialogue a line"
                    )
                yield number, _decode(path, number, line.removesuffix(b"\n").removesuffix(b"\r"), encoding)
    except _BROKEN as error:
        kind = {".zst": "zstd", ".zip": "zip"}.get(path.suffix, "gzip")
        raise FairnessError(
            f"{path}: after {number:,} lines the {kind} data is broken ({error}); fetch the file again"
        ) from None
    except OSError as error:
        raise unreadable(path, error) from None


def read_csv_rows(path: Path, encoding: str = "utf-8", mark: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The cells of each row of a CSV file, with the number of the row's first line. Blank lines are skipped.

    Raises:
        FairnessError: the quotation marks are wrong; names the file and the line.
    """
    reader = csv.reader((line + "\n" for _, line in read_lines(path, encoding)), delimiter=mark, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FairnessError(f"{path}, line {start}: not valid CSV: {error}; check the quotation marks") from None
        if cells:
            yield start, cells


def read_json_lines(path: Path, *, unique: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """The object on each line of a JSON Lines file, with file and line. Blank lines are skipped.

    Args:
        path: The file.
        unique: Whether to refuse an object with a duplicate name, which takes twice the time.

    Raises:
        FairnessError: a line is not a JSON object; names the file and the line.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = parse_json(line, each_once if unique else None)
            if "\\ud" in line.lower():
                record = json.loads(whole_text(json.dumps(record, ensure_ascii=False)))
        except ValueError as error:
            raise FairnessError(f"{where}: not valid JSON: {error}") from None
        if not isinstance(record, dict):
            raise FairnessError(f"{where}: expected a JSON object, found {type(record).__name__}")
        yield where, record


def read_json(path: Path, *, unique: bool = False) -> Any:
    """The value in a JSON file, which may be compressed and is read whole.

    Args:
        path: The file.
        unique: Whether to refuse an object with a duplicate name, which takes twice the time.

    Raises:
        FairnessError: the file cannot be read, or is not JSON.
    """
    try:
        limit = most_bytes(path)
        with open_unpacked(path) as stream:
            text = stream.read(-1 if limit == float("inf") else int(limit) + 1)
    except _BROKEN as error:
        raise FairnessError(f"{path}: cannot be unpacked: {error}; fetch the file again") from None
    except OSError as error:
        raise unreadable(path, error) from None
    if len(text) > limit:
        raise too_large(path, limit)
    try:
        return parse_json(text, each_once if unique else None)
    except ValueError as error:
        raise FairnessError(f"{path}: not valid JSON: {error}") from None


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a JSON object of its names and values; raises ValueError if a name occurs twice."""
    record = dict(pairs)
    if len(record) < len(pairs):
        duplicate = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"'{duplicate}' is listed twice; keep one")
    return record


def parse_json(text: str | bytes, of_pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The value of a JSON text.

    Args:
        text: The text.
        of_pairs: Makes an object of its names and values; a dict by default.

    Raises:
        ValueError: it is not valid JSON, or nested deeper than Python reads.
    """
    try:
        return json.loads(text, object_pairs_hook=of_pairs)
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None


def whole_text(text: str) -> str:
    """`text` with each unpaired surrogate (which JSON can spell but no file can hold) replaced by U+FFFD.

    >>> whole_text("cut \\ud83d")
    'cut \ufffd'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unreadable(path: Path, error: OSError) -> FairnessError:
    """The error about a file that cannot be read, with advice."""
    return FairnessError(f"{path}: cannot be read: {error.strerror}; check the path (a corpus's is in its YAML file)")


def _decode(path: Path, number: int, line: bytes, encoding: str) -> str:
    if b"\0" in line:
        raise FairnessError(f"{path}, line {number}: holds a NUL byte; expected plain text (is it UTF-16 or binary?)")
    if encoding != "utf-8":
        return line.decode(encoding)
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise FairnessError(
            f"{path}, line {number}: expected UTF-8, byte {error.start + 1} of the line is "
            f"0x{line[error.start]:02x}; convert the file to UTF-8 (or declare its 'encoding', where the YAML has it)"
        ) from None


def open_unpacked(path: Path) -> BinaryIO:
    """The bytes of a file; a `.gz`, a `.zst` and the only file in a `.zip` are unpacked while reading."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".zip":
        return _only_member(path)
    if path.suffix == ".zst":
        return zstd.open(path, "rb", options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})  # type: ignore[return-value]
    return path.open("rb")


def read_member(path: Path, archive: Any, name: str) -> bytes:
    """A whole file of a `.zip`.

    Args:
        path: The `.zip`, for messages.
        archive: The same, opened (`ZipFile`).
        name: The file in it.

    Raises:
        FairnessError: it unpacks to more than text does.
    """
    limit = most_bytes(path)
    if archive.getinfo(name).file_size > limit:  # reading unpacks no more than this
        raise too_large(path, limit)
    return archive.read(name)


def most_bytes(path: Path) -> float:
    """The most bytes that a file may hold once it is unpacked."""
    packed = path.suffix in (".gz", ".zst", ".zip", ".eval")
    return max(_SMALL, _PACKED * path.stat().st_size) if packed else float("inf")


def too_large(path: Path, most: float) -> FairnessError:
    """The error about a packed file that unpacks to more than `most_bytes`."""
    return FairnessError(
        f"{path}: unpacks to more than {most:,.0f} bytes, which no text of its size does; unpack it if it is sound"
    )


def _only_member(path: Path) -> BinaryIO:
    archive = zipfile.ZipFile(path)
    members = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(members) != 1:
        raise FairnessError(f"{path}: expected one file in it, found {len(members)}; unpack it and name the one meant")
    return archive.open(members[0])  # type: ignore[return-value]
