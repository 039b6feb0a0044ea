"""Traces what partitions were made from, and explains why the results of two runs differ."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import changes_between
from fairness_pipeline.workspace.lake import Key, Lake, partition_name

Origins = Mapping[str, Mapping[str, Any]]
"""By partition (`responses dimension=gender/model=seq2seq`): its `content`, its `inputs` (settings, code version, seed)
and the partitions that it was made `from`."""


def label(name: str, key: Key) -> str:
    """The name of a partition."""
    return f"{name} {partition_name(key)}".strip()


def origins_of(lineage: Lineage, lake: Lake, name: str, keys: Iterable[Key]) -> dict[str, dict[str, Any]]:
    """Returns what some partitions of an asset were made from, by their cards; unmade partitions are left out."""
    origins: dict[str, dict[str, Any]] = {}
    queue = [(name, key) for key in keys]
    while queue:
        asset, key = queue.pop()
        partition = label(asset, key)
        if partition in origins or (card := lake.card(asset, key)) is None:
            continue
        sources = lineage.sources(asset, key)
        inputs = {field: card.inputs.get(field) for field in ("code_version", "seed", "settings")}
        origins[partition] = {"content": card.content, "inputs": inputs, "from": [label(*source) for source in sources]}
        queue += sources
    return origins


def why(then: Origins, now: Origins, partition: str) -> list[str]:
    """Returns the reasons why a partition's content differs, the furthest upstream first; empty if none is known.

    Args:
        then: What it was made from before.
        now: What it was made from this time.
        partition: The partition's name, as `label` writes it.
    """
    reasons: list[str] = []
    _explain(then, now, partition, reasons, {})
    return reasons


def _explain(then: Origins, now: Origins, partition: str, reasons: list[str], explained: dict[str, bool]) -> bool:
    """Adds the reasons for one partition; returns whether there are any."""
    if partition in explained:
        return explained[partition]
    before, after = then.get(partition), now.get(partition)
    if after is None or before is None or before == after:
        return False
    upstream = [
        _explain(then, now, source, reasons, explained)
        for source in after["from"]
        if (then.get(source) or {}).get("content") != (now.get(source) or {}).get("content")
    ]
    title = partition.replace("/", " ")
    changes = [_in_words(change) for change in changes_between(before["inputs"], after["inputs"], _key_of(partition))]
    direct_reasons = [f"{_plain(title)}: {change}" for change in dict.fromkeys(changes)]
    if not direct_reasons and not any(upstream) and before["content"] != after["content"]:
        direct_reasons = [f"{_plain(title)} has a different result"]
    reasons += direct_reasons
    explained[partition] = bool(direct_reasons) or any(upstream)
    return explained[partition]


_ROUND = re.compile(r"settings\.round: .*")


def _in_words(change: str) -> str:
    """Words a change for a reader: a new round of questions is named without its time."""
    return "the model was asked again" if _ROUND.fullmatch(change) else change


def _key_of(partition: str) -> Key:
    return dict(part.split("=", 1) for part in partition.partition(" ")[2].split("/") if "=" in part)


def _plain(partition: str) -> str:
    return " ".join(part.partition("=")[2] or part for part in partition.split())
