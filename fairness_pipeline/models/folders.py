"""Folders of models: the hash of all that is loaded from one, and the refusal of what would be loaded past it."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.text_files import parse_json


def model_folder(name: str) -> File | None:
    """The folder of a model with a hash of its files; None for a model that an id and a revision name.

    Raises:
        FairnessError: as `check_folder`, or a file cannot be read.
    """
    folder = Path(name)
    if not folder.is_absolute() or not folder.is_dir():
        return None
    check_folder(folder)
    listed = "".join(
        f"{path.relative_to(folder)} {checksum(path)}\n" for path in sorted(folder.rglob("*")) if path.is_file()
    )
    return File(folder, sha256(listed.encode()).hexdigest()) if listed else None


def check_folder(folder: Path) -> None:
    """Refuses a folder of which more would be loaded than its files.

    A link to a file is hashed as the file (the hub's cache is made of them); no link to a folder is followed.

    Raises:
        FairnessError: an index or a tokenizer names a file outside of the folder, or none; or a part of the folder is a
            link to another folder.
    """
    if linked := next((path for path in folder.rglob("*") if path.is_symlink() and path.is_dir()), None):
        raise FairnessError(
            f"{linked}: a link to another folder, whose files are in no hash; copy them here, or remove the link"
        )
    for file, named in _named_files(folder):
        if Path(named).is_absolute() or ".." in Path(named).parts:
            raise FairnessError(
                f"{file}: names '{named}', outside of the model's folder, where it is in no hash; copy it into the "
                "folder, and name it as it is called there"
            )
        if not (folder / named).is_file():
            raise FairnessError(f"{file}: names '{named}', which is not there; was the model saved whole?")


def _named_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files that indices of weights, and tokenizers, name, with the file that names them.

    A tokenizer may still say where its files lay where it was made: that is only followed where there is such a file.
    """
    for index in sorted(folder.glob("*.index.json")):
        weights = _json(index).get("weight_map")
        names = weights.values() if isinstance(weights, dict) else ()
        yield from ((index, name) for name in dict.fromkeys(map(str, names)))
    tokenizer = folder / "tokenizer_config.json"
    if tokenizer.is_file():
        named = (value for key, value in _json(tokenizer).items() if key.endswith("_file") and isinstance(value, str))
        yield from ((tokenizer, name) for name in named if Path(name).is_file())


def _json(file: Path) -> dict[str, object]:
    try:
        content = parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise FairnessError(f"{file}: cannot be read as JSON: {error}; fetch the model again") from None
    if not isinstance(content, dict):
        raise FairnessError(f"{file}: expected a JSON object, found {type(content).__name__}")
    return content
