"""Remembers the SHA-256 of files, so that a dump of gigabytes is hashed once and not in every run."""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.foundation.text_files import parse_json, unreadable

REHASH = "FAIRNESS_REHASH"
"""If this variable is set, only what the same process has hashed counts: the cache may be wrong, or forged."""
_REMEMBER = 1 << 20
"""Bytes. Hashing a smaller file is faster than looking up its sum."""
_hashed: dict[Path, dict[str, Any]] = {}
"""What this process has hashed."""


def checksum(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal. A file with unchanged size, times and inode is not read again.

    Raises:
        FairnessError: the file does not exist.
    """
    try:
        place, state = path.resolve(), _state(path)
        if state[0] < _REMEMBER:
            return _hash(path)
        known = _hashed.get(place, {}) if os.environ.get(REHASH) else _remembered(place)
        if known.get("state") == state and "sha256" in known:
            return str(known["sha256"])
        _hashed[place] = known = {"file": str(path), "state": state, "sha256": _hash(path)}
    except OSError as error:
        raise unreadable(path, error) from None
    with replacing(_record(place)) as temporary:
        temporary.write_text(json.dumps(known), encoding="utf-8")
    return str(known["sha256"])


def wrong_record(path: Path) -> Path | None:
    """The file that keeps a wrong checksum of a file; None if the checksum is right, or not kept.

    Raises:
        FairnessError: the file does not exist.
    """
    try:
        place = path.resolve()
        known = _remembered(place)
        wrong = known.get("state") == _state(path) and known.get("sha256") != _hash(path)
    except OSError as error:
        raise unreadable(path, error) from None
    return _record(place) if wrong else None


def verify_checksum(path: Path, expected: str | None) -> str:
    """The file's SHA-256.

    Raises:
        FairnessError: the sum is not `expected`, or the file does not exist.
    """
    found = checksum(path)
    if expected is not None and found != expected:
        raise FairnessError(
            f"{path}: expected SHA-256 {expected}, found {found}; the file changed or was cut short: "
            "fetch it again, or correct the corpus's YAML file"
        )
    return found


def _state(path: Path) -> list[int]:
    """What differs once a file has changed. Whoever writes it can set the time of its content, but not `st_ctime`."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _record(place: Path) -> Path:
    return cache_folder() / "checksums" / f"{sha256(str(place).encode()).hexdigest()[:32]}.json"


def _remembered(place: Path) -> dict[str, Any]:
    try:
        record = parse_json(_record(place).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _hash(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
