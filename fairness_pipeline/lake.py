"""The lake: what a workspace holds, each partition with the fingerprint of everything it was made from."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import locked, replacing

AXES = ("corpus", "dimension", "model", "system")
"""The order in which a partition's folders nest."""

Key = dict[str, str]
"""A partition: axis to value; empty for what is not partitioned."""

_METADATA = b"fairness_pipeline"


@dataclass(frozen=True)
class Card:
    """What stands beside the data of one partition.

    `inputs` are the settings, versions and upstream fingerprints that were read, and `fingerprint` is their hash:
    two partitions with one fingerprint hold the same. `figures` were found while it was made.
    """

    fingerprint: str
    inputs: dict[str, Any]
    figures: dict[str, Any] = field(default_factory=dict)


def fingerprint(inputs: dict[str, Any]) -> str:
    """The hash of everything a partition is made from (anything JSON can hold)."""
    return sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def partition_name(key: Key) -> str:
    """`dimension=gender/model=seq2seq`; empty for what is not partitioned."""
    return "/".join(f"{axis}={key[axis]}" for axis in AXES if axis in key)


class Lake:
    """Everything one workspace holds.

    Args:
        root: The workspace's folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    # Tables

    def table_path(self, table: str, key: Key) -> Path:
        """Where a partition of a table lies."""
        return self.root / "tables" / table / partition_name(key) / "part-0.parquet"

    def read(self, table: str, key: Key) -> pa.Table:
        """One partition of a table.

        Raises:
            FairnessError: it has not been made yet, or its file is damaged.
        """
        path = self.table_path(table, key)
        try:
            return pq.ParquetFile(path, memory_map=True).read()
        except FileNotFoundError:
            what = " ".join([table, partition_name(key)]).strip()
            raise FairnessError(f"{what} has not been made yet; run: fairness-pipeline run --select {table}") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise FairnessError(f"{path}: damaged ({error}); delete it and run again") from None

    @contextmanager
    def writing(self, table: str, key: Key, data: pa.Table, schema: pa.Schema, card: Card) -> Iterator[pa.Table]:
        """Writes one partition of a table under a temporary name; takes effect when the block (its checks) ends well.

        Raises:
            FairnessError: `data` has not the schema's columns, or the disk is full. Nothing is changed then.
        """
        if data.schema.names != schema.names:
            raise FairnessError(f"{table}: expected columns {schema.names}, found {data.schema.names}")
        described = schema.with_metadata({_METADATA: json.dumps(asdict(card), sort_keys=True).encode()})
        with replacing(self.table_path(table, key)) as temporary:
            pq.write_table(data.cast(schema).replace_schema_metadata(described.metadata), temporary, compression="zstd")
            yield data

    # Folders (checkpoints) and documents (reports): a card in JSON points to what is current.

    def folder(self, asset: str, key: Key, fingerprint: str) -> Path:
        """The folder in which a checkpoint with this fingerprint is made; kept, so that a killed run goes on in it."""
        return self.root / "checkpoints" / asset / partition_name(key) / fingerprint[:16]

    def current_folder(self, asset: str, key: Key) -> Path:
        """The finished checkpoint of a partition.

        Raises:
            FairnessError: there is none yet.
        """
        card = self.card(asset, key)
        if card is None:
            what = " ".join([asset, partition_name(key)]).strip()
            raise FairnessError(f"{what} has not been made yet; run: fairness-pipeline run --select {asset}")
        return self.folder(asset, key, card.fingerprint)

    def document_path(self, name: str) -> Path:
        """Where a report lies."""
        return self.root / "reports" / f"{name}.html"

    def write_card(self, asset: str, key: Key, card: Card) -> None:
        """Makes a finished checkpoint or document the current one."""
        with replacing(self._card_path(asset, key)) as temporary:
            temporary.write_text(json.dumps(asdict(card), indent=1, sort_keys=True), encoding="utf-8")

    def remove_card(self, asset: str, key: Key) -> None:
        """Makes a checkpoint or document count as not made."""
        self._card_path(asset, key).unlink(missing_ok=True)

    # Both

    def card(self, asset: str, key: Key) -> Card | None:
        """What stands beside a partition; None where it, or what it vouches for, is missing or damaged."""
        try:
            path = self.table_path(asset, key)
            if path.exists():
                content = pq.read_metadata(path).metadata[_METADATA]
                return Card(**json.loads(content))
            card = Card(**json.loads(self._card_path(asset, key).read_bytes()))
            folder = self.folder(asset, key, card.fingerprint)
            content = (path for pattern in ("*.safetensors", "source.json") for path in folder.glob(pattern))
            return card if self.document_path(asset).is_file() or any(content) else None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            return None

    def fingerprint(self, asset: str, key: Key) -> str | None:
        """What a partition was made from; None where it is missing or damaged."""
        card = self.card(asset, key)
        return card.fingerprint if card else None

    @contextmanager
    def lock(self, asset: str, key: Key, waiting: Callable[[str], None]) -> Iterator[None]:
        """Holds the only lock of a partition, so that one run at a time makes it; ends with the process at the latest.

        Args:
            asset: The asset's name.
            key: The partition.
            waiting: Told who holds the lock, before waiting for it.
        """
        path = self.root / "locks" / asset / f"{partition_name(key).replace('/', ',') or 'all'}.lock"
        with locked(path, waiting):
            yield

    def _card_path(self, asset: str, key: Key) -> Path:
        return self.root / "cards" / asset / f"{partition_name(key).replace('/', ',') or 'all'}.json"
