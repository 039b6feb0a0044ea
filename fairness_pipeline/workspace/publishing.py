"""Writes the files of a workspace to object storage, or to another folder, for readers who have no access to the
lake."""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from fairness_pipeline.foundation.checksums import sha256_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.plain_text import first_line
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.text_files import parse_json
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.locks import identity

MANIFEST = "published.json"
"""The list of published files. It is written last, so every file that it names exists."""
_AT_ONCE = 8
_PIECE = 1 << 22  # bytes


class Published(NamedTuple):
    """How many files were written, how many were already up to date, and how many were deleted."""

    written: int
    unchanged: int
    deleted: int


def publish(lake: Lake, files: Iterable[Path], address: str, progress: Progress | None = None) -> Published:
    """Writes files to an address, below the profile's name, and then a list of them with their checksums.

    A file that an earlier list names with the same checksum is not written again. A file that is no longer among
    `files` is deleted after the new list is written.

    Args:
        lake: The workspace; files keep their paths below it.
        files: Files of the workspace.
        address: A folder, or `s3://bucket/prefix`, `gs://...`, `abfs://...`; credentials are those of the environment.
        progress: Called with the number of files done.

    Raises:
        FairnessError: the address cannot be written, is of no known kind, or holds what another workspace published; or
            a file disappears meanwhile.
    """
    root, workspace = lake.root, identity(lake.root / "locks")
    system, base = _opened(address, root)
    base = f"{base}/{root.name}"
    paths = sorted(files)
    try:
        before = _listed(system, base, address, workspace)
        sizes = _sizes(system, base, before)
        sums: dict[str, dict[str, Any]] = {}
        written = 0

        def put(file: Path) -> tuple[str, dict[str, Any], bool]:
            name, size = file.relative_to(root).as_posix(), file.stat().st_size
            previous = before.get(name)
            # A file is read twice only if it may already be up to date.
            if (
                previous
                and previous.get("bytes") == sizes.get(name) == size
                and previous.get("sha256") == sha256_of(file)
            ):
                return name, previous, False
            return name, _copied(file, system, f"{base}/{name}"), True

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done, (name, entry, is_new) in enumerate(pool.map(put, paths), 1):
                sums[name] = entry
                written += is_new
                report(progress, done, len(paths), "files")
        manifest = {"published": datetime.now(UTC).isoformat(timespec="seconds"), "workspace": workspace, "files": sums}
        with _writing(system, f"{base}/{MANIFEST}") as stream:
            stream.write(json.dumps(manifest, indent=1, sort_keys=True).encode())
        obsolete = sorted(before.keys() - sums.keys())
        for name in obsolete:
            _delete(system, f"{base}/{name}")
    except (OSError, pa.ArrowException) as error:
        raise FairnessError(
            f"{address}: cannot be written: {first_line(error)}; check the address, its region and the credentials of "
            "the environment, and publish again: it goes on from here"
        ) from None
    return Published(written, len(paths) - written, len(obsolete))


def _opened(address: str, root: Path) -> tuple[pafs.FileSystem, str]:
    expected = f"'{address}': expected a folder, or an address such as s3://bucket/prefix"
    try:
        parts = urlsplit(address)
        if parts.password or parts.username:
            raise FairnessError("expected an address without a key: credentials are read from the environment only")
        if not address.strip():
            raise FairnessError(expected)
        if parts.scheme:
            system, base = pafs.FileSystem.from_uri(address)
        else:
            system, base = pafs.LocalFileSystem(), address
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FairnessError(f"{expected}: {first_line(error)}") from None
    if isinstance(system, pafs.LocalFileSystem):
        folder = Path(base).expanduser().resolve()
        if folder.is_relative_to(root.resolve()) or root.resolve().is_relative_to(folder):
            raise FairnessError(f"'{address}' is in the workspace {root}, or around it; publish to another folder")
        base = str(folder)
    return system, base.rstrip("/")


def _listed(system: pafs.FileSystem, base: str, address: str, workspace: str) -> dict[str, dict[str, Any]]:
    """The entries of an earlier list; empty if there is none, or if it is damaged."""
    try:
        with system.open_input_stream(f"{base}/{MANIFEST}") as stream:
            manifest = parse_json(stream.read())
        files = {name: entry for name, entry in manifest["files"].items() if _is_ours(name)}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    if manifest.get("workspace") != workspace:
        raise FairnessError(
            f"{address} holds what another workspace has published under '{base.rsplit('/', 1)[-1]}'; choose another "
            "prefix, or delete what is there"
        )
    return files


def _is_ours(name: str) -> bool:
    """Whether this module writes files of this name. Anybody may have written the list, which decides what is
    deleted."""
    return name.startswith(("tables/", "reports/")) and ".." not in name.split("/")


def _sizes(system: pafs.FileSystem, base: str, names: Iterable[str]) -> dict[str, int]:
    """The sizes of the files that exist."""
    names_by_path = {f"{base}/{name}": name for name in names}
    entries = system.get_file_info(list(names_by_path)) if names_by_path else []
    return {names_by_path[entry.path]: entry.size for entry in entries if entry.type == pafs.FileType.File}


def _copied(file: Path, system: pafs.FileSystem, path: str) -> dict[str, Any]:
    """Copies a file; returns the entry of the bytes that were written, because a run may replace the file meanwhile."""
    digest, size = sha256(), 0
    with file.open("rb") as source, _writing(system, path) as stream:
        while piece := source.read(_PIECE):
            stream.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"sha256": digest.hexdigest(), "bytes": size}


@contextmanager
def _writing(system: pafs.FileSystem, path: str) -> Iterator[Any]:
    """A stream whose file appears only when it is complete, in object storage as in a folder."""
    if isinstance(system, pafs.LocalFileSystem):
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            yield file
    else:
        with system.open_output_stream(path) as stream:
            yield stream


def _delete(system: pafs.FileSystem, path: str) -> None:
    if system.get_file_info(path).type == pafs.FileType.File:
        system.delete_file(path)
