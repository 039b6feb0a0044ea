"""The inputs of an asset, as objects that can be hashed: the object that is hashed is the one that is used.

Inputs are frozen dataclasses and `Specification`s of plain values. A file is listed with the hash of its bytes; files
of the data folders that are not listed cannot be opened (`foundation/guard.py`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import Specification

Json = None | bool | int | float | str | list[Any] | dict[str, Any]


@runtime_checkable
class Identified(Protocol):
    """A model's file: `identity` holds everything in it that decides the model's answers."""

    def identity(self) -> dict[str, object]:
        """What decides the answers, as JSON can hold it."""


_UNHASHED, _OPTIONAL = "unhashed", "optional"


def unhashed(default: Any = MISSING) -> Any:
    """A dataclass field that is passed on but not hashed: it says where something is or how fast it runs, and never
    affects the result."""
    return field(default=default, metadata={_UNHASHED: True})


def optional() -> Any:
    """A dataclass field that is not hashed while it is None, so that adding it makes nothing stale."""
    return field(default=None, metadata={_OPTIONAL: True})


@dataclass(frozen=True)
class File:
    """A file or folder, and the hash of its content. Its path is not hashed."""

    path: Path
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "File":
        """The file as it is now.

        Raises:
            FairnessError: it cannot be read.
        """
        return cls(path, checksum(path))


@dataclass(frozen=True)
class DataFile:
    """A file of a data folder, by its name there, and the hash of its bytes."""

    name: str
    sha256: str

    @classmethod
    def of(cls, name: str) -> "DataFile":
        """The file as it is now.

        Raises:
            FairnessError: no data folder has it.
        """
        path = data_file(name)
        status = path.stat()
        return cls(name, _checksum(path, (status.st_mtime_ns, status.st_ctime_ns, status.st_size)))

    @property
    def path(self) -> Path:
        """Its path on this machine."""
        return data_file(self.name)


_checksum = lru_cache(256)(lambda path, state: checksum(path))
"""Partitions share data files; each is hashed once per process while it is unchanged."""


Known = dict[int, tuple[object, Json]]
"""Objects that were already turned into JSON, by `id`, with the results. It must not outlive one pass over the
inputs."""


def canonical(value: object, known: Known | None = None) -> Json:
    """Returns the inputs as JSON can hold them, by the type of each value at run time.

    A dataclass with a `section` is part of a YAML file of that kind: each of its keys is hashed separately, so that a
    reader sees which of them changed. A `Specification` leaves out fields that are None, so that a new optional key
    makes nothing stale, and those that its class lists in `unhashed`. A model's file supplies its own identity
    (`Identified`).

    Args:
        value: Inputs, or a part of them.
        known: Keeps the results of objects that several inputs share.

    Raises:
        TypeError: a value cannot be an input: a function, a path, a set, or an object that is not frozen.

    Examples:
        >>> canonical({"level": 0.05, "files": (DataFile("lexicon/common_words.txt", "2c26"),)})
        {'level': 0.05, 'files': {'lexicon/common_words.txt': '2c26'}}
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | list):
        if value and all(isinstance(file, DataFile) for file in value):
            return {file.name: file.sha256 for file in value}
        return [canonical(item, known) for item in value]
    if isinstance(value, File):
        return value.sha256
    if known is None:
        return _fields(value, None)
    if id(value) not in known:
        known[id(value)] = value, _fields(value, known)
    return known[id(value)][1]


def _fields(value: object, known: Known | None) -> Json:
    if isinstance(value, Identified):
        return canonical(value.identity(), known)
    if isinstance(value, Specification):
        keys = {name: getattr(value, name) for name in type(value).model_fields if name not in type(value).unhashed}
        return _canonical_items({name: item for name, item in keys.items() if item is not None}, known)
    if isinstance(value, Mapping):
        return {str(name): canonical(entry, known) for name, entry in value.items()}
    if not (is_dataclass(value) and getattr(type(value), "__dataclass_params__").frozen):  # noqa: B009
        kind = type(value).__name__
        raise TypeError(f"{value!r:.80} ({kind}) is no input: expected plain values or frozen dataclasses")
    hashed = {field.name: getattr(value, field.name) for field in fields(value) if _UNHASHED not in field.metadata}
    optional_names = {field.name for field in fields(value) if _OPTIONAL in field.metadata}
    present = {name: item for name, item in hashed.items() if item is not None or name not in optional_names}
    inputs = _canonical_items(present, known)
    section = getattr(value, "section", None)
    if section is None:
        return inputs
    files = {name: inputs.pop(name) for name, item in present.items() if any(True for _ in files_of(item))}
    return {section: {name: _digest(item) for name, item in inputs.items()}, **files}


def _canonical_items(items: Mapping[str, object], known: Known | None) -> dict[str, Json]:
    """The fields as JSON can hold them, and the key order of mappings that are not in alphabetical order: classes are
    numbered and lists are counted in that order, but JSON's keys have none."""
    mappings = {name: list(map(str, item)) for name, item in items.items() if isinstance(item, Mapping)}
    orders = {f"{name} in order": names for name, names in mappings.items() if names != sorted(names)}
    return {**{name: canonical(item, known) for name, item in items.items()}, **orders}


def _digest(value: Json) -> str:
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def files_of(value: object) -> Iterator[File | DataFile]:
    """The files among the inputs."""
    if isinstance(value, File | DataFile):
        yield value
    elif isinstance(value, Specification):
        for name in type(value).model_fields:
            yield from files_of(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from files_of(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from files_of(item)
    elif is_dataclass(value):
        for declared in fields(value):
            yield from files_of(getattr(value, declared.name))


class FieldsOnly:
    """Pickles a frozen dataclass without its cached values."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
