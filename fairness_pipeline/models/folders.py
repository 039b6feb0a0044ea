"""Hashes the files in the folder of a model, and refuses a folder from which unhashed files would be loaded."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.text_files import parse_json


def model_folder(name: str) -> File | None:
    """The folder of a model with a hash of its files; None for a model that is named by its id.

    Raises:
        FairnessError: as `check_folder`, or a file cannot be read.
    """
    folder = Path(name)
    if not folder.is_absolute() or not folder.is_dir():
        return None
    check_folder(folder)
    listing = "".join(
        f"{path.relative_to(folder)} {checksum(path)}\n" for path in sorted(folder.rglob("*")) if path.is_file()
    )
    return File(folder, sha256(listing.encode()).hexdigest()) if listing else None


def check_folder(folder: Path) -> None:
    """Refuses a folder if files outside of it would be loaded with it.

    A link to a file is hashed as the file (the hub's cache consists of them); links to folders are not followed.

    Raises:
        FairnessError: an index of weights names a file outside of the folder, it contains a link to another folder,
            or a file's name has a line end.
    """
    for path in folder.rglob("*"):
        if path.is_symlink() and path.is_dir():
            raise FairnessError(
                f"{path}: a link to another folder, whose files are not hashed; copy them here, or remove the link"
            )
        if "\n" in path.name:
            raise FairnessError(f"{str(path)!r}: a file's name with a line end; rename it")
    for index, shard in _shards(folder):
        if Path(shard).is_absolute() or ".." in Path(shard).parts:
            raise FairnessError(
                f"{index}: names '{shard}', outside of the model's folder, where it is in no hash; copy it into the "
                "folder, and name it as it is called there"
            )


def check_id(name: str, field: str) -> None:
    """Refuses an id that is also a folder in the working directory, which would be loaded instead of the hub's model.

    Args:
        name: An id, or an absolute path.
        field: The YAML key that names the model, for the message.

    Raises:
        FairnessError: there is such a folder.
    """
    if not Path(name).is_absolute() and Path(name).is_dir():
        raise FairnessError(
            f"{field}: '{name}' is an id, and also a folder in {Path.cwd()}, which would be loaded in its place; run "
            "the command in another folder, or name this one by its whole path"
        )


def _shards(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields each index of weights with each file that it names. The library handles files that are no such index."""
    for index in sorted(folder.rglob("*.index.json")):
        try:
            weights = parse_json(index.read_bytes())["weight_map"].values()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        yield from ((index, name) for name in dict.fromkeys(map(str, weights)))
