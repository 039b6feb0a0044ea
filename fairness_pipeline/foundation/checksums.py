"""Remembers the SHA-256 of files, so that a dump of gigabytes is hashed once and not in every run."""

import json
import os
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.foundation.text_files import parse_json, unreadable

REHASH = "FAIRNESS_REHASH"
"""If this variable is set, only checksums that this process has computed count: the cache may be wrong or forged."""
_REMEMBER = 1 << 20
"""Bytes. Hashing a smaller file is faster than looking up its checksum."""
_hashed: dict[Path, dict[str, Any]] = {}
"""The records of the files that this process has hashed."""


def checksum(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal. A file with unchanged size, times and inode is not read again.

    Raises:
        FairnessError: the file does not exist.
    """
    try:
        resolved, state = path.resolve(), _state(path)
        if state[0] < _REMEMBER:
            return sha256_of(path)
        record = _hashed.get(resolved, {}) if os.environ.get(REHASH) else _read_record(resolved)
        if record.get("state") == state and "sha256" in record:
            return str(record["sha256"])
        _hashed[resolved] = record = {"file": str(path), "state": state, "sha256": sha256_of(path)}
    except OSError as error:
        raise unreadable(path, error) from None
    write_text(_record_path(resolved), json.dumps(record))
    return str(record["sha256"])


def wrong_record(path: Path) -> Path | None:
    """The record that keeps a wrong checksum of a file; None if the checksum is right or was not kept.

    Raises:
        FairnessError: the file does not exist.
    """
    try:
        resolved = path.resolve()
        record = _read_record(resolved)
        is_wrong = record.get("state") == _state(path) and record.get("sha256") != sha256_of(path)
    except OSError as error:
        raise unreadable(path, error) from None
    return _record_path(resolved) if is_wrong else None


def verify_checksum(path: Path, expected: str | None) -> str:
    """The file's SHA-256.

    Raises:
        FairnessError: the checksum is not `expected`, or the file does not exist.
    """
    actual = checksum(path)
    if expected is not None and actual != expected:
        raise FairnessError(
            f"{path}: expected SHA-256 {expected}, found {actual}; the file changed or was cut short: "
            "fetch it again, or correct the corpus's YAML file"
        )
    return actual


def _state(path: Path) -> list[int]:
    """The properties that change with a file. A writer can set `st_mtime`, but not `st_ctime`."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _record_path(resolved: Path) -> Path:
    return cache_folder() / "checksums" / f"{sha256(str(resolved).encode()).hexdigest()[:32]}.json"


def _read_record(resolved: Path) -> dict[str, Any]:
    try:
        record = parse_json(_record_path(resolved).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal; the file is always read."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
