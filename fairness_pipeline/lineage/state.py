"""Finds out which partitions of a lake are stale, and why."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import Known, canonical
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.foundation.schemas import without_texts
from fairness_pipeline.lineage.answer_ages import age_in_words, asked_at, too_old
from fairness_pipeline.lineage.assets import Asset, PartitionId, partition_id
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint


class State:
    """The content of a lake for a lineage, and what is out of date. Neither may change while this object is used.

    The inputs of a partition name the contents of its upstream partitions. If an upstream table is made again, the
    partition is thus stale only if the content of that table changed.
    """

    def __init__(self, lineage: Lineage, lake: Lake) -> None:
        self.lineage = lineage
        self.lake = lake
        self._stale: dict[PartitionId, bool] = {}
        self._cards: dict[PartitionId, Card | None] = {}
        self._changes: dict[PartitionId, list[str]] = {}
        self._known: Known = {}

    def card(self, name: str, key: Key) -> Card | None:
        """The card of a partition, read once; None if it was not made, or is damaged."""
        partition = partition_id(name, key)
        if partition not in self._cards:
            self._cards[partition] = self.lake.card(name, key)
        return self._cards[partition]

    def given(self, name: str, key: Key) -> object:
        """The object that the asset's function would get now.

        Raises:
            FairnessError: a file that the partition is made from cannot be read.
        """
        return self.lineage.assets[name].inputs(self.lineage.part(name), key)

    def described(self, name: str, key: Key, given: object) -> dict[str, Any]:
        """Everything that a partition is made from, if its function is `given` this object. Its hash is the
        partition's fingerprint."""
        asset = self.lineage.assets[name]
        return {
            "asset": name,
            "code_version": asset.code_version,
            **({"schema": _columns(asset)} if asset.schema else {}),
            "partition": key,
            "seed": self.lineage.project.profile.seed,
            "settings": self.settings(name, given),
            "upstream": {
                "/".join([source, *k.values()]): self._upstream(asset, source, k)
                for source, k in self.lineage.sources(name, key)
            },
        }

    def settings(self, name: str, given: object) -> dict[str, Any]:
        """An asset's inputs and the versions of its libraries, in a form that JSON can hold."""
        inputs, libraries = canonical(given, self._known), self.lineage.assets[name].libraries
        settings: dict[str, Any] = inputs if isinstance(inputs, dict) else {"inputs": inputs}
        if libraries:
            settings = {**settings, "versions": {**settings.get("versions", {}), **library_versions(*libraries)}}
        return settings

    def made_from(self, name: str, key: Key, card: Card, described: dict[str, Any]) -> bool:
        """Whether a partition with this card was made from these inputs.

        Cards of earlier versions name no schema, and have keys that are None. They stay valid, so that nobody trains
        or pays again for what did not change.
        """
        if card.fingerprint == fingerprint(described):
            return True
        older = {name: value for name, value in described.items() if name != "schema"}
        if "schema" in card.inputs or _without_none(card.inputs) != _without_none(json.loads(json.dumps(older))):
            return False
        schema = self.lineage.assets[name].schema
        if schema is None:
            return True
        written = pq.read_schema(self.lake.table_path(name, key)).remove_metadata()
        return bool(written.equals(without_texts(schema)))

    def changes(self, name: str, key: Key) -> list[str]:
        """The reasons why a partition must be made; empty if it is up to date.

        Changes that are still to come from upstream do not count.
        """
        partition = partition_id(name, key)
        if partition not in self._changes:
            self._changes[partition] = self._find_changes(name, key)
        return self._changes[partition]

    def _find_changes(self, name: str, key: Key) -> list[str]:
        card = self.card(name, key)
        if card is None and self.lineage.sources(name, key):
            return ["not made yet"]
        try:
            now = self.described(name, key, self.given(name, key))
        except FairnessError as error:  # making this partition reports the error; others are still made
            return [str(error)]
        if card is None:
            return ["not made yet"]
        # A missing upstream partition is no change yet: it may come out as before.
        now["upstream"] = {k: content or card.inputs["upstream"].get(k) for k, content in now["upstream"].items()}
        if self.made_from(name, key, card, now):
            age = self.too_old(name, key, card)
            return [f"its answers are {age_in_words(age)}, more than max_answer_age allows"] if age else []
        changes = dict.fromkeys(changes_between(card.inputs, json.loads(json.dumps(now)), key))
        differing = sorted(card.inputs["upstream"].keys() ^ now["upstream"].keys())
        return list(changes) or [f"its upstream tables changed: {', '.join(differing).replace('/', ' ')}"]

    def too_old(self, name: str, key: Key, card: Card) -> timedelta | None:
        """How old the answers of a subject that may change are, if they are older than the profile allows."""
        asked = asked_at(self.lineage, self.lake, name, key, card)
        if asked is None or not self.lineage.subject(name, key).may_change:
            return None
        return too_old(self.lineage, asked)

    def stale_keys(self, name: str) -> list[Key]:
        """The partitions of an asset that were made and are not up to date with the profile."""
        return [key for key in self.lineage.keys(name) if self.lake.card(name, key) and self.stale(name, key)]

    def stale(self, name: str, key: Key) -> bool:
        """Whether a partition, or anything that it is made from, is not up to date with the profile."""
        partition = partition_id(name, key)
        if partition not in self._stale:
            self._stale[partition] = bool(self.changes(name, key)) or any(
                self.stale(source, k) for source, k in self.lineage.sources(name, key)
            )
        return self._stale[partition]

    def _upstream(self, asset: Asset, source: str, key: Key) -> str | None:
        card = self.card(source, key)
        if card is None or not asset.tolerant:
            return card.content if card else None
        # A report also depends on what its tables were made from.
        return f"{card.content} of {card.fingerprint}" + (", stale" if self.stale(source, key) else "")


def _columns(asset: Asset) -> dict[str, str]:
    """A table's columns and their types; their descriptions are no input."""
    assert asset.schema is not None
    return {column.name: str(column.type) for column in without_texts(asset.schema)}


def _without_none(value: Any) -> Any:
    """The value without keys that are None."""
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


_DIGEST = re.compile(r"[0-9a-f]{64}")


def changes_between(before: Any, now: Any, key: Mapping[str, str], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The differences between two inputs, one phrase each.

    Args:
        before: The inputs that a partition was made from.
        now: Those that it would be made from.
        key: The partition.
        path: The path of the two within the whole inputs.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from changes_between(before.get(name), now.get(name), key, (*path, name))
    elif before != now:
        if path[0] == "upstream":
            yield f"{path[1].replace('/', ' ')} changed"
        elif "dimension" in path[:-1]:
            yield f"{key.get('dimension', 'dimension')}.yaml: {path[-1]} changed"
        elif path[-3:-2] == ("dimensions",):
            yield f"{path[-2]}.yaml: {path[-1]} changed"
        elif any(isinstance(value, str) and _DIGEST.fullmatch(value) for value in (before, now)):
            yield f"{path[-1].rpartition('/')[2] if path[-1][:1] == '/' else path[-1]} changed"
        elif isinstance(before, list | dict) or isinstance(now, list | dict):
            yield f"{'.'.join(path)} changed"
        else:
            short = [text if len(text) <= 40 else text[:37] + "..." for text in map(str, (before, now))]
            yield f"{'.'.join(path)}: {short[0]} -> {short[1]}"
