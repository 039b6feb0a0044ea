"""Writes and checks the list of an evidence pack's files with their hashes; its signature covers all of them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.workspace.signatures import signature_of

NAME = "manifest.json"


class Manifest(BaseModel):
    """The files of a pack.

    Attributes:
        profile: The profile's name.
        made: The time.
        files: The SHA-256 of each, by its path in the pack.
    """

    profile: str
    made: datetime
    files: dict[str, str]


def write_manifest(folder: Path, files: Iterable[Path], profile: str) -> Path:
    """Writes the manifest of a pack, and returns its path. An earlier signature is deleted: it covers other files."""
    path = folder / NAME
    listed = {str(file.relative_to(folder)): checksum(file) for file in sorted(files)}
    signature_of(path).unlink(missing_ok=True)
    manifest = Manifest(profile=profile, made=datetime.now(UTC).replace(microsecond=0), files=listed)
    write_text(path, manifest.model_dump_json(indent=1) + "\n")
    return path


def wrong_files(manifest: Manifest, folder: Path) -> Iterator[str]:
    """Yields a line for each file of a pack that is not as its manifest says."""
    for name, sha256 in manifest.files.items():
        file = folder / name
        if not file.resolve().is_relative_to(folder.resolve()) or file.is_symlink() or not file.is_file():
            yield f"{name}: is not here, or a link"
        elif checksum(file) != sha256:
            yield f"{name}: was changed since"
    listed = [folder / name for name in manifest.files]
    yield from (f"{name}: is not in the manifest" for name in strange_files(folder, listed))


def strange_files(folder: Path, files: Iterable[Path]) -> list[str]:
    """Returns the paths in the folder of a pack that are not its files, links to folders included."""
    known = {*files, folder / NAME, signature_of(folder / NAME)}
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(str(path.relative_to(folder)) for path in paths if path not in known)
