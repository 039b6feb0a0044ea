"""Copies files from outside into the workspace, with a seal, so that a replaced file is noticed.

The seal is a file beside the copy. It holds the SHA-256 of the original file and of the stored one, and its path in the
workspace. Like the other seals of a workspace it detects mistakes and edits, not a forger who recomputes it.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pydantic

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing, write_text
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.workspace.lake import FORMAT, IMPORTS, Format, Lake, fingerprint

_UNSEALED_FOLDER = "scores"
"""The folder into which users may put files themselves; such files have no seal."""
_DESCRIPTIONS = ("model.yaml", "table.yaml")
"""Files beside imported answers and tables that are not imports."""
_SEAL = ".{}.import.json"
_ADVICE = "import the file again, or restore it from a copy"


class Import(pydantic.BaseModel):
    """Where an imported file comes from, and where it belongs.

    Attributes:
        file: The name of the original file.
        original: The SHA-256 of the original file.
        stored: The SHA-256 of the file in the workspace, which may have another form.
        place: Its path in the workspace.
        imported: When it was imported.
        seal: The hash of the other fields.
    """

    file: str
    original: str
    stored: str
    place: str
    imported: datetime
    seal: str = ""

    def sealed(self) -> "Import":
        """The same record with its seal."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})


def store_import(
    original: Path, target: Path, workspace: Path, write: Callable[[Path], object], before: Collection[Path] = ()
) -> bool:
    """Stores an imported file with its seal, and deletes the files that it replaces.

    Args:
        original: The user's file, already checked.
        target: Where to keep it.
        workspace: The workspace.
        write: Writes the stored form to a path.
        before: Other paths at which the same content may have been imported earlier.

    Returns:
        Whether something was replaced.
    """
    replaced = [file for file in {target, *before} if is_imported(file)]
    Lake(workspace).note_format()
    with replacing(target) as temporary:
        write(temporary)
    _write_seal(target, workspace, original.name, checksum(original))
    for file in replaced:
        if file != target:
            drop_import(file)
    return bool(replaced)


def drop_import(file: Path) -> None:
    """Deletes an imported file with its seal."""
    file.unlink(missing_ok=True)
    _seal_of(file).unlink(missing_ok=True)


def is_imported(file: Path) -> bool:
    """Whether a file was imported; it may be gone."""
    return file.exists() or file.is_symlink() or _seal_of(file).exists()


def imported_files(folder: Path) -> list[Path]:
    """The files that were imported into a folder, including those of which only the seal is left."""
    names = {path.name for path in folder.glob("[!.]*") if not path.is_dir() and path.name not in _DESCRIPTIONS}
    suffix = _SEAL.removeprefix(".{}")
    names |= {path.name.removeprefix(".").removesuffix(suffix) for path in folder.glob(_SEAL.format("*"))}
    return [folder / name for name in sorted(names)]


def imported_file(file: Path | None, workspace: Path) -> File | None:
    """An imported file and the hash of its bytes.

    Args:
        file: The stored file; None if nothing was imported.
        workspace: The workspace.

    Raises:
        FairnessError: the file was changed or moved, is a link, or has no seal.
    """
    if file is None:
        return None
    relative = file.relative_to(workspace)
    if file.resolve() != workspace.resolve() / relative:
        raise FairnessError(f"{file}: a link; an import is a file of the workspace; {_ADVICE}")
    record = import_of(file)
    if record is None:
        if relative.parts[0] != _UNSEALED_FOLDER and Lake(workspace).format.imports == FORMAT:
            raise FairnessError(f"{file}: its seal {_seal_of(file).name} is missing; {_ADVICE}")
    elif not file.is_file():
        raise FairnessError(f"{file}: was imported but is missing; {_ADVICE}")
    elif record.place != relative.as_posix():
        raise FairnessError(f"{file}: its seal belongs to {record.place}; {_ADVICE}")
    elif checksum(file) != record.stored:
        when = f"{record.imported:%Y-%m-%d %H:%M} UTC"
        raise FairnessError(
            f"{file}: not what was imported on {when} from {record.file} (SHA-256 {record.stored[:16]}...); {_ADVICE}"
        )
    return File(file, record.stored) if record else File.of(file)


def import_of(file: Path) -> Import | None:
    """The sealed record of an imported file; None if it has no seal.

    Raises:
        FairnessError: the seal is damaged.
    """
    seal = _seal_of(file)
    if not seal.exists():
        return None
    try:
        record = Import.model_validate_json(seal.read_bytes())
    except (OSError, ValueError):
        record = None
    if record is None or record.seal != record.sealed().seal:
        raise FairnessError(f"{seal}: damaged; {_ADVICE}")
    return record


def wrong_imports(workspace: Path) -> Iterator[str]:
    """Yields a message for each imported file that is not as it was imported."""
    for file in _all_files(workspace):
        try:
            imported_file(file, workspace)
        except FairnessError as error:
            yield str(error)


def sealed_imports(workspace: Path) -> list[Import]:
    """The records of a workspace's imported files; those without a seal, or with a damaged one, are left out."""
    imports = []
    for file in _all_files(workspace):
        with suppress(FairnessError):
            imports += [record] if (record := import_of(file)) else []
    return imports


def seal_earlier(workspace: Path) -> int:
    """Seals the files that a version without seals imported, as they are now; returns how many. It works only once."""
    lake = Lake(workspace)
    if lake.format.imports == FORMAT:
        return 0
    unsealed = [file for file in _all_files(workspace) if file.is_file() and not _seal_of(file).exists()]
    imported = [file for file in unsealed if file.relative_to(workspace).parts[0] != _UNSEALED_FOLDER]
    for file in imported:
        _write_seal(file, workspace, file.name, checksum(file))
    lake.note_format(Format(FORMAT, lake.format.partitions))
    return len(imported)


def _all_files(workspace: Path) -> Iterator[Path]:
    """Every imported file."""
    for name in IMPORTS:
        inner = sorted(path for path in (workspace / name).glob("*") if path.is_dir())
        for folder in (workspace / name, *inner):
            yield from imported_files(folder)


def _write_seal(file: Path, workspace: Path, name: str, original: str) -> None:
    relative = file.relative_to(workspace).as_posix()
    record = Import(file=name, original=original, stored=checksum(file), place=relative, imported=datetime.now(UTC))
    write_text(_seal_of(file), record.sealed().model_dump_json(indent=1))


def _seal_of(file: Path) -> Path:
    return file.with_name(_SEAL.format(file.name))
