"""Remembers the SHA-256 of files, so that a dump of gigabytes is hashed once and not in every run."""

import json
from hashlib import sha256
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.foundation.text_files import unreadable

_REMEMBER = 1 << 20
"""Bytes. Hashing a smaller file is faster than looking up its sum."""


def checksum(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal. A file with unchanged size, time and inode is not read again.

    Raises:
        FairnessError: the file does not exist.
    """
    try:
        status = path.stat()
        state = [status.st_size, status.st_mtime_ns, status.st_ino]
        if status.st_size < _REMEMBER:
            return _hash(path)
        remembered = cache_folder() / "checksums" / f"{sha256(str(path.resolve()).encode()).hexdigest()[:32]}.json"
        known = json.loads(remembered.read_text(encoding="utf-8")) if remembered.exists() else {}
        if known.get("state") == state:
            return known["sha256"]
        digest = _hash(path)
    except OSError as error:
        raise unreadable(path, error) from None
    with replacing(remembered) as temporary:
        temporary.write_text(json.dumps({"file": str(path), "state": state, "sha256": digest}), encoding="utf-8")
    return digest


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


def _hash(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
