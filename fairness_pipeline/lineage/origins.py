"""What partitions were made from, all the way up; and why two runs found different things."""

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
    """What some partitions of an asset were made from, as their cards say; what was not made is left out.

    Args:
        lineage: The lineage of the profile.
        lake: What has been made.
        name: The asset.
        keys: Its partitions.
    """
    found: dict[str, dict[str, Any]] = {}
    waiting = [(name, key) for key in keys]
    while waiting:
        own, key = waiting.pop()
        place = label(own, key)
        if place in found or (card := lake.card(own, key)) is None:
            continue
        sources = lineage.sources(own, key)
        inputs = {what: card.inputs.get(what) for what in ("code_version", "seed", "settings")}
        found[place] = {"content": card.content, "inputs": inputs, "from": [label(*source) for source in sources]}
        waiting += sources
    return found


def why(then: Origins, now: Origins, place: str) -> list[str]:
    """The reasons why a partition came out otherwise, the furthest upstream first; empty if nothing is known of it.

    Args:
        then: What it was made from before.
        now: What it was made from this time.
        place: As `label` names it.
    """
    found: list[str] = []
    _explain(then, now, place, found, {})
    return found


def _explain(then: Origins, now: Origins, place: str, found: list[str], explained: dict[str, bool]) -> bool:
    """Adds the reasons for one partition; whether there are any."""
    if place in explained:
        return explained[place]
    before, after = then.get(place), now.get(place)
    if after is None or before is None or before == after:
        return False
    above = [
        _explain(then, now, source, found, explained)
        for source in after["from"]
        if (then.get(source) or {}).get("content") != (now.get(source) or {}).get("content")
    ]
    shown = place.replace("/", " ")
    changes = [_said(change) for change in changes_between(before["inputs"], after["inputs"], _key(place))]
    own = [f"{_plain(shown)}: {change}" for change in dict.fromkeys(changes)]
    if not own and not any(above) and before["content"] != after["content"]:
        own = [f"{_plain(shown)} came out otherwise"]
    found += own
    explained[place] = bool(own) or any(above)
    return explained[place]


_ROUND = re.compile(r"settings\.round: .*")


def _said(change: str) -> str:
    """A change for a reader: of a new round of questions not its time, but what happened."""
    return "the model was asked again" if _ROUND.fullmatch(change) else change


def _key(place: str) -> Key:
    return dict(part.split("=", 1) for part in place.partition(" ")[2].split("/") if "=" in part)


def _plain(place: str) -> str:
    return " ".join(part.partition("=")[2] or part for part in place.split())
