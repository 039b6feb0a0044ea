"""The lake holds the data of a workspace: each partition with the fingerprint of everything it was made from."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from fairness_pipeline.foundation.checksums import sha256_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing, write_text
from fairness_pipeline.foundation.schemas import without_texts
from fairness_pipeline.foundation.text_files import parse_json
from fairness_pipeline.workspace.locks import Held, lock

Key = dict[str, str]
"""A partition: the value on each axis; empty for an asset without partitions."""

Row = dict[str, Any]
"""A row of a table, by column."""

_METADATA = b"fairness_pipeline"
_FORMAT_FILE = "format.json"
FORMAT, UNSEALED_IMPORTS, UNSEALED = 3, 2, 1
"""The format of this version; versions of 26 November 2026 did not seal imported files, and those before sealed
nothing."""


_BLOCK = 1 << 22
_NO_SEAL = "0" * 64
_LIST_ITEM = re.compile("(list<|child 0, )element: ")
"""The item of a list is called `element` in a file, and `item` in the schema that was written."""


IMPORTS = ("annotations", "imports", "labels", "log_probabilities", "predictions", "scores", "trials")
"""The folders of imported files (`workspace/imports.py`)."""


class Format(NamedTuple):
    """The formats of a workspace's imported files and of its oldest partition."""

    imports: int
    partitions: int


_FileState = tuple[Path, int, int, int]
"""A file's path, its times of change and its size."""
_as_written: dict[tuple[_FileState, ...], bool] = {}
"""Whether files of the format before seals are as they were written. They are read whole for it, once per process."""
R = TypeVar("R")


def _state(path: Path) -> _FileState:
    status = path.stat()
    return path, status.st_mtime_ns, status.st_ctime_ns, status.st_size


class _Unchanged(Generic[R]):
    """What was read of each file, until the file changes. A file that has just changed is read again: where times are
    coarse, its next change may have the same time."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[_FileState, R]] = {}

    def get(self, path: Path, read: Callable[[], R]) -> R:
        """The result of `read`, or what it returned for the file as it is.

        Raises:
            OSError: the file is missing.
        """
        state = _state(path)
        known = self._read.get(path)
        if known and known[0] == state:
            return known[1]
        result = read()
        if time.time_ns() - max(state[1:3]) > _COARSE:
            self._read[path] = state, result
        return result

    def forget(self, path: Path) -> None:
        """Reads the file again the next time."""
        self._read.pop(path, None)


_COARSE = 2_000_000_000
"""Nanoseconds within which two changes of a file may have the same time."""
_cards = _Unchanged[tuple[bytes, str]]()
_small_tables = _Unchanged[pa.Table]()


@dataclass(frozen=True)
class Card:
    """The metadata that is stored with the data of one partition.

    `inputs` are the settings, versions and contents of upstream partitions that the partition was made from.
    `fingerprint` is their hash. `content` is the hash of the result, including the figures; the lake fills it in. Two
    runs with the same fingerprint can have different contents (an endpoint may answer differently). `figures` were
    found while the partition was made. `files` are the sizes of a checkpoint's or document's files, in bytes. `seal` is
    the hash of all other fields (in a table, of the file's whole footer); a card without one counts only in a workspace
    of the format before seals, and only if its fingerprint and content are right.
    """

    fingerprint: str
    inputs: dict[str, Any]
    figures: dict[str, Any] = field(default_factory=dict)
    content: str = ""
    files: dict[str, int] = field(default_factory=dict)
    seal: str = ""

    def sealed(self) -> "Card":
        """The same card with its seal."""
        return replace(self, seal=fingerprint({name: value for name, value in vars(self).items() if name != "seal"}))

    def is_about(self, asset: str, key: Key) -> bool:
        """Whether the card is complete and belongs to this partition."""
        well_typed = isinstance(self.inputs, dict) and isinstance(self.figures, dict) and isinstance(self.files, dict)
        if not well_typed or not self.content:
            return False
        return self.inputs.get("asset", asset) == asset and self.inputs.get("partition", key) == key


def fingerprint(inputs: dict[str, Any]) -> str:
    """The hash of everything that a partition is made from (anything that JSON can hold)."""
    return sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def partition_name(key: Key) -> str:
    """`dimension=gender/model=seq2seq`, with axes in alphabetical order; empty for an asset without partitions."""
    return "/".join(f"{axis}={key[axis]}" for axis in sorted(key))


class Lake:
    """The data of one workspace.

    Raises:
        FairnessError: its format is of a later version.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._format = self._noted_format()
        self._held: dict[str, Held] = {}

    # The format

    @property
    def format(self) -> Format:
        """The noted format; if none is noted, the one that the seals imply."""
        return self._format or self._format_of_seals

    @cached_property
    def _format_of_seals(self) -> Format:
        seals = [*self._seals()]
        partitions = FORMAT if not seals else UNSEALED_IMPORTS if all(seals) else UNSEALED
        imported = any((self.root / name).exists() for name in IMPORTS)
        sealed = imported and next(self.root.rglob(".*.import.json"), None)
        return Format(FORMAT if sealed or not imported else UNSEALED_IMPORTS, partitions)

    def _seals(self) -> Iterator[str]:
        for path in [*(self.root / "tables").rglob("part-0.parquet"), *(self.root / "cards").rglob("*.json")]:
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
                card = pq.read_metadata(path).metadata[_METADATA] if path.suffix == ".parquet" else path.read_bytes()
                yield parse_json(card).get("seal", "")

    def _noted_format(self) -> Format | None:
        path = self.root / _FORMAT_FILE
        try:
            noted = parse_json(path.read_bytes())
            numbers = Format(noted["format"], noted.get("partitions", noted["format"]))
            if not all(type(number) is int for number in numbers):
                raise ValueError(numbers)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise FairnessError(f"{path}: damaged; restore it from a copy") from None
        if not all(UNSEALED <= number <= FORMAT for number in numbers):
            raise FairnessError(
                f"{path}: this workspace has format {max(numbers)}, and this version knows {UNSEALED} to {FORMAT}; use "
                "the version that has made it, or another FAIRNESS_HOME"
            )
        return numbers

    def note_format(self, noted: Format | None = None) -> None:
        """Notes the format if none is noted or another one is given. It is called before anything is written, so that a
        process that starts at the same time infers the same format."""
        if self._format is None or noted:
            imports, partitions = noted or self.format
            write_text(self.root / _FORMAT_FILE, json.dumps({"format": imports, "partitions": partitions}))
            self._format = self._noted_format()

    def unsealed(self, asset: str, key: Key) -> bool:
        """Whether a partition has the format before seals and is as it was written."""
        card = self.card(asset, key)
        return card is not None and not card.seal

    # Tables

    def table_path(self, table: str, key: Key) -> Path:
        """The path of a partition of a table."""
        return self.root / "tables" / table / partition_name(key) / "part-0.parquet"

    def tables(self) -> list[str]:
        """The tables that have a partition."""
        return sorted(path.name for path in (self.root / "tables").glob("*") if any(path.rglob("part-0.parquet")))

    def partitions(self, table: str) -> list[Path]:
        """The files of a table's partitions, including those that no profile names any more."""
        files = sorted((self.root / "tables" / table).rglob("part-0.parquet"))
        depth = max((len(path.parts) for path in files), default=0)  # an older layout had fewer levels
        return [path for path in files if len(path.parts) == depth]

    def read(self, table: str, key: Key) -> pa.Table:
        """One partition of a table.

        Raises:
            FairnessError: the partition is not made yet, or its file is damaged.
        """
        path = self.table_path(table, key)
        try:
            return pq.ParquetFile(path, memory_map=True, page_checksum_verification=True).read()
        except FileNotFoundError:
            partition = " ".join([table, partition_name(key)]).strip()
            raise FairnessError(f"{partition} has not been made yet; run: {self._command(table)}") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise FairnessError(f"{path}: damaged ({error}); delete it and run again") from None

    def read_small(self, table: str, key: Key) -> pa.Table:
        """`read`, from memory if this process has read the file as it is: for verdicts, which many pages show.

        Raises:
            FairnessError: as `read`.
        """
        with suppress(OSError):
            return _small_tables.get(self.table_path(table, key), lambda: self.read(table, key))
        return self.read(table, key)

    @contextmanager
    def writing(self, table: str, key: Key, data: pa.Table, schema: pa.Schema, card: Card) -> Iterator[pa.Table]:
        """Writes a partition of a table to a temporary file. It takes effect when the block (with its checks) succeeds.

        Raises:
            FairnessError: `data` does not have the columns of the schema, or the disk is full. Nothing changes then.
        """
        if data.schema.names != schema.names:
            raise FairnessError(f"{table}: expected columns {schema.names}, found {data.schema.names}")
        self.note_format()
        with replacing(self.table_path(table, key), self.still_ours(table, key)) as temporary:
            stored_schema = without_texts(schema)
            with temporary.open("wb") as stream:
                hashing = _HashingStream(stream)
                with pq.ParquetWriter(hashing, stored_schema, compression="zstd", write_page_checksum=True) as writer:
                    writer.write_table(data.cast(stored_schema))
                    complete = replace(card, content=_content(card, str(stored_schema), hashing.digest.hexdigest()))
                    metadata = json.dumps(asdict(replace(complete, seal=_NO_SEAL)), sort_keys=True)
                    writer.add_key_value_metadata({_METADATA: metadata})
            _seal(temporary)
            yield data

    # Folders (checkpoints) and documents (reports): a card in JSON points to the current one.

    def folder(self, asset: str, key: Key, fingerprint: str) -> Path:
        """The folder for a checkpoint with this fingerprint. It is kept, so that a killed run can continue."""
        return self.root / "checkpoints" / asset / partition_name(key) / fingerprint[:16]

    def current_folder(self, asset: str, key: Key) -> Path:
        """The finished checkpoint of a partition.

        Raises:
            FairnessError: there is none yet.
        """
        card = self.card(asset, key)
        if card is None:
            partition = " ".join([asset, partition_name(key)]).strip()
            raise FairnessError(f"{partition} has not been made yet; run: {self._command(asset)}")
        return self.folder(asset, key, card.fingerprint)

    def document_path(self, name: str) -> Path:
        """The path of a report."""
        return self.root / "reports" / f"{name}.html"

    def write_card(self, asset: str, key: Key, card: Card) -> None:
        """Makes a finished checkpoint or document the current one, and hashes its files."""
        folder, files = self._files(asset, key, card.fingerprint)
        sizes = {str(path.relative_to(self.root)): path.stat().st_size for path in files}
        complete = replace(card, content=_content_of_files(card, folder, files), files=sizes)
        self.note_format()
        text = json.dumps(asdict(complete.sealed()), indent=1, sort_keys=True)
        write_text(self._card_path(asset, key), text, self.still_ours(asset, key))

    def was_finished(self, asset: str, key: Key, fingerprint: str) -> bool:
        """Whether a checkpoint with this fingerprint was finished before; its folder is then complete or damaged."""
        try:
            return bool(parse_json(self._card_path(asset, key).read_bytes())["fingerprint"] == fingerprint)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    # Tables, folders and documents

    def card(self, asset: str, key: Key) -> Card | None:
        """The card of a partition; None if the card, or a file that it lists, is missing or damaged."""
        try:
            path = self.table_path(asset, key)
            card = self._card_of_table(path) if path.exists() else self._card_of_files(asset, key)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
            return None
        return card if card and card.is_about(asset, key) else None  # an old card lacks its content

    def rows(self, table: str, key: Key) -> list[Row]:
        """The rows of a partition of a table; none if it is not made yet."""
        return self.read(table, key).to_pylist() if self.card(table, key) else []

    def figures(self, asset: str, key: Key) -> dict[str, Any]:
        """The figures of a partition; none if it is not made yet."""
        card = self.card(asset, key)
        return card.figures if card else {}

    def _card_of_table(self, path: Path) -> Card | None:
        text, seal = _cards.get(path, lambda: _card_and_seal(path))
        card = Card(**parse_json(text))
        if not card.seal:
            return card if self._is_as_written([path], card, lambda: _content_of_table(path, card)) else None
        return card if card.seal == seal else None

    def _is_as_written(self, files: list[Path], card: Card, content: Callable[[], str]) -> bool:
        """Whether a card without a seal has the format before seals, and its files have the content that it names."""
        if self.format.partitions != UNSEALED or card.fingerprint != fingerprint(card.inputs):
            return False
        key = tuple(map(_state, files))
        if key not in _as_written:
            _as_written[key] = content() == card.content
        return _as_written[key]

    def _card_of_files(self, asset: str, key: Key) -> Card | None:
        path = self._card_path(asset, key)
        if not path.exists() or not self._is_inside(path):
            return None
        card = Card(**parse_json(path.read_bytes()))
        listed = [(self.root / name, size) for name, size in card.files.items()]
        if not listed or not all(self._is_inside(file) for file, _ in listed):
            return None
        if not card.seal:
            files = [path, *(file for file, _ in listed)]
            as_written = self._is_as_written(files, card, lambda: self._content_now(asset, key, card))
            return card if as_written and all(file.stat().st_size == size for file, size in listed) else None
        if card.seal != card.sealed().seal:
            return None
        states = [(file.stat(), size) for file, size in listed]
        if any(state.st_size != size for state, size in states):
            return None
        newest = max(state.st_mtime_ns for state, _ in states)
        if newest > path.stat().st_mtime_ns:  # changed after the card, or copied
            if self._content_now(asset, key, card) != card.content:
                return None
            with suppress(OSError):
                os.utime(path, ns=(newest, newest))  # so that the next call does not hash the files
        return card

    def verify(self, asset: str, key: Key) -> str | None:
        """Reads all data of a partition; returns why they are not as they were written, or None."""
        path = self.table_path(asset, key)
        _cards.forget(path)
        card = self.card(asset, key)
        if card is None or card.fingerprint != fingerprint(card.inputs):
            return "its card is damaged or another partition's, or a file that it lists is missing or was changed"
        if path.exists() and not self._is_inside(path):
            return "it is a link to a file outside of the workspace"
        try:
            content = _content_of_table(path, card) if path.exists() else self._content_now(asset, key, card)
        except (OSError, ValueError) as error:
            return str(error)
        return None if content == card.content else "its content is not what was written"

    def _content_now(self, asset: str, key: Key, card: Card) -> str:
        return _content_of_files(card, *self._files(asset, key, card.fingerprint))

    def _is_inside(self, file: Path) -> bool:
        return file.resolve().is_relative_to(self._resolved)

    @cached_property
    def _resolved(self) -> Path:
        return self.root.resolve()

    def sound_folder(self, asset: str, key: Key) -> Path:
        """The finished checkpoint of a partition, once its files are verified.

        Raises:
            FairnessError: there is none yet, or its files are not as they were written.
        """
        folder = self.current_folder(asset, key)
        if self.verify(asset, key):
            raise FairnessError(
                f"{folder}: not as written (its disk may be failing); delete it or restore it from a copy, and run "
                "again"
            )
        return folder

    def bytes_of(self, asset: str, key: Key) -> str | None:
        """The hash of all bytes of a partition's files, including its card; None if it is not made."""
        path, card = self.table_path(asset, key), self.card(asset, key)
        if card is None:
            return None
        if path.exists():
            return sha256_of(path)
        files = [self._card_path(asset, key), *self._files(asset, key, card.fingerprint)[1]]
        return sha256("\n".join(map(sha256_of, files)).encode()).hexdigest()

    def has(self, asset: str, key: Key) -> bool:
        """Whether a partition was ever made; it may be damaged."""
        return self.table_path(asset, key).exists() or self._card_path(asset, key).exists()

    def written(self, table: str, key: Key) -> datetime | None:
        """When a partition of a table was written, by its file's time; None if it is missing.

        A copy that does not keep times looks newly written.
        """
        path = self.table_path(table, key)
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.exists() else None

    @contextmanager
    def lock(self, asset: str, key: Key, waiting: Callable[[str], None]) -> Iterator[None]:
        """Holds the lock of a partition, so that one run at a time makes it. It ends with the process at the latest.

        Args:
            asset: The asset's name.
            key: The partition.
            waiting: Called with the name of the holder, before waiting for the lock.
        """
        name = _lock_name(asset, key)
        with lock(self.root / "locks", name, waiting) as self._held[name]:
            try:
                yield
            finally:
                del self._held[name]

    def still_ours(self, asset: str, key: Key) -> Callable[[], None]:
        """Returns a check that raises FairnessError if another process has taken over this one's lock."""
        held = self._held.get(_lock_name(asset, key))
        return held.check if held else lambda: None

    def _command(self, asset: str) -> str:
        return f"fairness-pipeline run --profile {self.root.name} --select {asset}"

    def _card_path(self, asset: str, key: Key) -> Path:
        return self.root / "cards" / asset / f"{_file_name(key)}.json"

    def _files(self, asset: str, key: Key, fingerprint: str) -> tuple[Path, list[Path]]:
        """The folder and the files that a card lists: a document, or everything in a checkpoint's folder."""
        document = self.document_path(asset)
        if document.is_file():
            return document.parent, [document]
        folder = self.folder(asset, key, fingerprint)
        return folder, sorted(path for path in folder.rglob("*") if path.is_file())


def _card_and_seal(path: Path) -> tuple[bytes, str]:
    """The card in a table's footer, and the seal that the footer should have if the card has one."""
    text: bytes = pq.read_metadata(path).metadata[_METADATA]
    noted = parse_json(text).get("seal", "").encode()
    if not noted:
        return text, ""
    with path.open("rb") as stream:
        _, footer = _footer(stream)
    return text, sha256(footer.replace(noted, _NO_SEAL.encode())).hexdigest()


def _footer(stream: IO[bytes]) -> tuple[int, bytes]:
    """The start of a Parquet file's footer, and the footer: everything but the data pages."""
    end = stream.seek(-8, 2)
    length = int.from_bytes(stream.read(4), "little")
    begin = stream.seek(end - length)
    return begin, stream.read(length)


def _seal(path: Path) -> None:
    """Writes the hash of a table's footer into the card in the footer, in place of `_NO_SEAL`."""
    with path.open("r+b") as stream:
        begin, footer = _footer(stream)
        prefix = b'"seal": "'
        stream.seek(begin + footer.index(prefix + _NO_SEAL.encode()) + len(prefix))
        stream.write(sha256(footer).hexdigest().encode())


def _content_of_table(path: Path, card: Card) -> str:
    """The content that the table's card should name, computed from all bytes before the footer."""
    digest = sha256()
    with path.open("rb") as stream:
        remaining, _ = _footer(stream)
        stream.seek(0)
        while remaining > 0 and (block := stream.read(min(remaining, _BLOCK))):
            digest.update(block)
            remaining -= len(block)
    schema = re.sub(_LIST_ITEM, r"\1item: ", str(pq.read_schema(path).remove_metadata()))
    return _content(card, schema, digest.hexdigest())


def _content_of_files(card: Card, folder: Path, files: list[Path]) -> str:
    return _content(card, *[f"{path.relative_to(folder)} {sha256_of(path)}" for path in files])


def _file_name(key: Key) -> str:
    return partition_name(key).replace("/", ",") or "all"


def _lock_name(asset: str, key: Key) -> str:
    return f"{asset}/{_file_name(key)}"


class _HashingStream:
    """A stream that hashes what is written to it. It hashes a table's columns on their way to the disk."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self.closed = True  # the opener closes the stream itself


def _content(card: Card, *hashes: str) -> str:
    return sha256("\n".join([*hashes, json.dumps(card.figures, sort_keys=True)]).encode()).hexdigest()
