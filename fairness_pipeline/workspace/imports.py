"""Files that come from outside: copied into the workspace with a seal, so that a file that was exchanged is known.

The seal lies beside the file and holds the SHA-256 of the file as it was given, and of what is kept of it. Like the
other seals of a workspace it finds slips and edits, not a forger who computes it anew.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pydantic

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.workspace.lake import UNSEALED, Lake, fingerprint

_SEAL = ".{}.import.json"
_AGAIN = "import the file again, or restore it from a copy"


class Import(pydantic.BaseModel):
    """Where an imported file comes from.

    Attributes:
        file: The name under which it was given.
        original: The SHA-256 of its bytes then.
        stored: That of the file in the workspace, which may have another form.
        imported: When.
        seal: The hash of all this.
    """

    file: str
    original: str
    stored: str
    imported: datetime
    seal: str = ""

    def sealed(self) -> "Import":
        """The same with its seal."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})


def store_import(original: Path, target: Path, write: Callable[[Path], object], before: Collection[Path] = ()) -> bool:
    """Keeps what is given in a file, with its seal, and deletes what it replaces.

    Args:
        original: The user's file, already checked.
        target: Where to keep it.
        write: Writes it to a path.
        before: Other files under which the same may have been imported earlier.

    Returns:
        Whether something was replaced.
    """
    older = [file for file in {target, *before} if file.exists() or file.is_symlink()]
    with replacing(target) as temporary:
        write(temporary)
    given = Import(file=original.name, original=checksum(original), stored=checksum(target), imported=datetime.now(UTC))
    with replacing(seal_of(target)) as temporary:
        temporary.write_text(given.sealed().model_dump_json(indent=1), encoding="utf-8")
    for file in older:
        if file != target:
            drop_import(file)
    return bool(older)


def drop_import(file: Path) -> None:
    """Deletes an imported file with its seal."""
    file.unlink()
    seal_of(file).unlink(missing_ok=True)


def imported_file(file: Path | None, workspace: Path, *, by_hand: bool = False) -> File | None:
    """An imported file and the hash of its bytes.

    Args:
        file: Where it is kept; None if nothing was imported.
        workspace: The workspace.
        by_hand: Whether somebody may have put it there without importing it, so that it has no seal.

    Raises:
        FairnessError: it is not what was imported, is a link, or has no seal.
    """
    if file is None:
        return None
    if problem := _problem(file, workspace):
        raise FairnessError(f"{file}: {problem}; {_AGAIN}")
    if not (by_hand or seal_of(file).exists() or Lake(workspace).format == UNSEALED):
        raise FairnessError(f"{file}: its seal {seal_of(file).name} is missing; {_AGAIN}")
    return File.of(file)


def import_of(file: Path) -> Import | None:
    """Where an imported file comes from; None if it has no seal.

    Raises:
        FairnessError: the seal is damaged.
    """
    seal = seal_of(file)
    if not seal.exists():
        return None
    try:
        found = Import.model_validate_json(seal.read_bytes())
    except (OSError, ValueError):
        found = None
    if found is None or found.seal != found.sealed().seal:
        raise FairnessError(f"{seal}: damaged; {_AGAIN}")
    return found


def wrong_imports(workspace: Path) -> Iterator[str]:
    """The imported files that are not what was imported, a line each."""
    for seal in sorted(workspace.rglob(_SEAL.format("*"))):
        file = seal.with_name(seal.name.removeprefix(".").removesuffix(".import.json"))
        try:
            if problem := _problem(file, workspace):
                yield f"{file}: {problem}"
        except FairnessError as error:
            yield str(error)


def seal_of(file: Path) -> Path:
    """Where the seal of an imported file lies."""
    return file.with_name(_SEAL.format(file.name))


def _problem(file: Path, workspace: Path) -> str:
    """Why a file is not what was imported; empty if it is, or has no seal."""
    if file.resolve() != workspace.resolve() / file.relative_to(workspace):
        return "a link; an import is a file of the workspace"
    known = import_of(file)
    if known is None or (file.is_file() and checksum(file) == known.stored):
        return ""
    when = f"{known.imported:%Y-%m-%d %H:%M} UTC"
    return f"not what was imported on {when} from {known.file} (SHA-256 {known.stored[:16]}...)"
