"""Files that come from outside: copied into the workspace with a seal, so that a replaced file is noticed.

The seal lies beside the file. It holds the SHA-256 of the file as it was given, and of what is kept of it, and where it
belongs. Like the other seals of a workspace it finds slips and edits, not a forger who computes it anew.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pydantic

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.workspace.lake import FORMAT, IMPORTS, Format, Lake, fingerprint

_BY_HAND = "scores"
"""The folder into which users may put files themselves, which then have no seal."""
_ABOUT = ("model.yaml", "table.yaml")
"""Lie beside imported answers and tables, and are none."""
_SEAL = ".{}.import.json"
_AGAIN = "import the file again, or restore it from a copy"


class Import(pydantic.BaseModel):
    """Where an imported file comes from, and where it belongs.

    Attributes:
        file: The name under which it was given.
        original: The SHA-256 of its bytes then.
        stored: That of the file in the workspace, which may have another form.
        place: Its path in the workspace.
        imported: When.
        seal: The hash of all this.
    """

    file: str
    original: str
    stored: str
    place: str
    imported: datetime
    seal: str = ""

    def sealed(self) -> "Import":
        """The same with its seal."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})


def store_import(
    original: Path, target: Path, workspace: Path, write: Callable[[Path], object], before: Collection[Path] = ()
) -> bool:
    """Keeps what is given in a file, with its seal, and deletes what it replaces.

    Args:
        original: The user's file, already checked.
        target: Where to keep it.
        workspace: The workspace.
        write: Writes it to a path.
        before: Other files under which the same may have been imported earlier.

    Returns:
        Whether something was replaced.
    """
    older = [file for file in {target, *before} if is_imported(file)]
    Lake(workspace).note_format()
    with replacing(target) as temporary:
        write(temporary)
    _write_seal(target, workspace, original.name, checksum(original))
    for file in older:
        if file != target:
            drop_import(file)
    return bool(older)


def drop_import(file: Path) -> None:
    """Deletes an imported file with its seal."""
    file.unlink(missing_ok=True)
    _seal_of(file).unlink(missing_ok=True)


def is_imported(file: Path) -> bool:
    """Whether a file was imported; it may be gone."""
    return file.exists() or file.is_symlink() or _seal_of(file).exists()


def imported_files(folder: Path) -> list[Path]:
    """The files that were imported into a folder, also those of which only the seal is left."""
    names = {path.name for path in folder.glob("[!.]*") if not path.is_dir() and path.name not in _ABOUT}
    ending = _SEAL.removeprefix(".{}")
    names |= {path.name.removeprefix(".").removesuffix(ending) for path in folder.glob(_SEAL.format("*"))}
    return [folder / name for name in sorted(names)]


def imported_file(file: Path | None, workspace: Path) -> File | None:
    """An imported file and the hash of its bytes.

    Args:
        file: Where it is kept; None if nothing was imported.
        workspace: The workspace.

    Raises:
        FairnessError: it is not what was imported there, is a link, or has no seal.
    """
    if file is None:
        return None
    place = file.relative_to(workspace)
    if file.resolve() != workspace.resolve() / place:
        raise FairnessError(f"{file}: a link; an import is a file of the workspace; {_AGAIN}")
    known = import_of(file)
    if known is None:
        if place.parts[0] != _BY_HAND and Lake(workspace).format.imports == FORMAT:
            raise FairnessError(f"{file}: its seal {_seal_of(file).name} is missing; {_AGAIN}")
    elif not file.is_file():
        raise FairnessError(f"{file}: is not here, but was imported; {_AGAIN}")
    elif known.place != place.as_posix():
        raise FairnessError(f"{file}: its seal is that of {known.place}; {_AGAIN}")
    elif checksum(file) != known.stored:
        when = f"{known.imported:%Y-%m-%d %H:%M} UTC"
        raise FairnessError(
            f"{file}: not what was imported on {when} from {known.file} (SHA-256 {known.stored[:16]}...); {_AGAIN}"
        )
    return File(file, known.stored) if known else File.of(file)


def import_of(file: Path) -> Import | None:
    """Where an imported file comes from; None if it has no seal.

    Raises:
        FairnessError: the seal is damaged.
    """
    seal = _seal_of(file)
    if not seal.exists():
        return None
    try:
        known = Import.model_validate_json(seal.read_bytes())
    except (OSError, ValueError):
        known = None
    if known is None or known.seal != known.sealed().seal:
        raise FairnessError(f"{seal}: damaged; {_AGAIN}")
    return known


def wrong_imports(workspace: Path) -> Iterator[str]:
    """The imported files that are not what was imported, a line each."""
    for file in _all(workspace):
        try:
            imported_file(file, workspace)
        except FairnessError as error:
            yield str(error)


def sealed_imports(workspace: Path) -> list[Import]:
    """Where the imported files of a workspace come from; those without a seal, or with a damaged one, are left out."""
    imports = []
    for file in _all(workspace):
        with suppress(FairnessError):
            imports += [known] if (known := import_of(file)) else []
    return imports


def seal_earlier(workspace: Path) -> int:
    """Seals, once, what was imported by a version that had no seals, as it is now; returns how many files."""
    lake = Lake(workspace)
    if lake.format.imports == FORMAT:
        return 0
    without = [file for file in _all(workspace) if file.is_file() and not _seal_of(file).exists()]
    imported = [file for file in without if file.relative_to(workspace).parts[0] != _BY_HAND]
    for file in imported:
        _write_seal(file, workspace, file.name, checksum(file))
    lake.note_format(Format(FORMAT, lake.format.partitions))
    return len(imported)


def _all(workspace: Path) -> Iterator[Path]:
    """Every imported file."""
    for name in IMPORTS:
        inner = sorted(path for path in (workspace / name).glob("*") if path.is_dir())
        for folder in (workspace / name, *inner):
            yield from imported_files(folder)


def _write_seal(file: Path, workspace: Path, name: str, original: str) -> None:
    place = file.relative_to(workspace).as_posix()
    given = Import(file=name, original=original, stored=checksum(file), place=place, imported=datetime.now(UTC))
    with replacing(_seal_of(file)) as temporary:
        temporary.write_text(given.sealed().model_dump_json(indent=1), encoding="utf-8")


def _seal_of(file: Path) -> Path:
    return file.with_name(_SEAL.format(file.name))
