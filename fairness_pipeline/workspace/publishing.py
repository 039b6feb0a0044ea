"""Writes what a workspace holds to object storage, or to another folder, for readers who have no access to the lake."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress, report

MANIFEST = "published.json"
"""The list of what was published, written last: what it names is there."""
_AT_ONCE = 8
_PIECE = 1 << 22  # bytes


class Published(NamedTuple):
    """How many files were written, how many stood there already as they are, and how many were deleted."""

    written: int
    unchanged: int
    deleted: int


def publish(root: Path, files: Iterable[Path], address: str, progress: Progress | None = None) -> Published:
    """Writes files to an address, each whole, and last a list of them with their sums.

    What the list of an earlier call names with the same sum is not written again; what this call does not name any more
    is deleted after the new list stands.

    Args:
        root: The workspace; files keep their paths below it.
        files: Files of the workspace.
        address: A folder, or `s3://bucket/prefix`, `gs://...`, `abfs://...`; credentials are those of the environment.
        progress: Called with the number of files done.

    Raises:
        FairnessError: the address cannot be written or is none that is known, or a file is gone meanwhile.
    """
    system, base = _opened(address, root)
    wanted = sorted(files)
    try:
        before = _listed(system, base)
        sums: dict[str, dict[str, Any]] = {}
        written = 0

        def put(file: Path) -> tuple[str, dict[str, Any], bool]:
            name = file.relative_to(root).as_posix()
            described = _described(file)
            if before.get(name) == described:
                return name, described, False
            return name, _copied(file, system, f"{base}/{name}"), True

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done, (name, described, new) in enumerate(pool.map(put, wanted), 1):
                sums[name] = described
                written += new
                report(progress, done, len(wanted), "files")
        listed = {"published": datetime.now(UTC).isoformat(timespec="seconds"), "files": sums}
        _write(system, f"{base}/{MANIFEST}", json.dumps(listed, indent=1, sort_keys=True).encode())
        gone = sorted(before.keys() - sums.keys())
        for name in gone:
            _delete(system, f"{base}/{name}")
    except (OSError, pa.ArrowException) as error:
        raise FairnessError(
            f"{address}: cannot be written: {_first_line(error)}; check the address, its region and the credentials of "
            "the environment, and publish again: it goes on from here"
        ) from None
    return Published(written, len(wanted) - written, len(gone))


def _opened(address: str, root: Path) -> tuple[pafs.FileSystem, str]:
    if urlsplit(address).password or urlsplit(address).username:
        raise FairnessError("expected an address without a key: credentials are read from the environment only")
    try:
        if "://" not in address:
            folder = Path(address).expanduser().resolve()
            if folder.is_relative_to(root.resolve()) or root.resolve().is_relative_to(folder):
                raise FairnessError(f"'{address}' is in the workspace {root}, or around it; publish to another folder")
            return pafs.LocalFileSystem(), str(folder)
        system, base = pafs.FileSystem.from_uri(address)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FairnessError(
            f"'{address}': expected a folder, or an address such as s3://bucket/prefix: {_first_line(error)}"
        ) from None
    return system, base.rstrip("/")


def _listed(system: pafs.FileSystem, base: str) -> dict[str, dict[str, Any]]:
    """What the list of an earlier call names; nothing if there is none, or if it is damaged."""
    try:
        with system.open_input_stream(f"{base}/{MANIFEST}") as stream:
            found: dict[str, dict[str, Any]] = json.loads(stream.read())["files"]
            return found
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}


def _described(file: Path) -> dict[str, Any]:
    digest, size = sha256(), 0
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _copied(file: Path, system: pafs.FileSystem, path: str) -> dict[str, Any]:
    """Writes a file; what was written is described, as a run may replace the file meanwhile."""
    digest, size = sha256(), 0
    _make_folder(system, path)
    with file.open("rb") as source, system.open_output_stream(path) as stream:
        while piece := source.read(_PIECE):
            stream.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _write(system: pafs.FileSystem, path: str, content: bytes) -> None:
    _make_folder(system, path)
    with system.open_output_stream(path) as stream:
        stream.write(content)


def _make_folder(system: pafs.FileSystem, path: str) -> None:
    if isinstance(system, pafs.LocalFileSystem):  # object storage has none
        Path(path).parent.mkdir(parents=True, exist_ok=True)


def _delete(system: pafs.FileSystem, path: str) -> None:
    if system.get_file_info(path).type == pafs.FileType.File:
        system.delete_file(path)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
