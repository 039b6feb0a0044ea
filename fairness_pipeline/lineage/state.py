"""Finds out which partitions of a lake are stale, and why."""

import json
from collections.abc import Iterator
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.recipe import Place, Recipe
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint, partition_name


class State:
    """The content of a lake for a lineage, and what is out of date. Neither may change while this object is used.

    The inputs of a partition name the contents of its upstream partitions. If an upstream table is made again, the
    partition is thus stale only if the content of that table changed.

    Args:
        lineage: The lineage of a profile.
        lake: The profile's lake.
    """

    def __init__(self, lineage: Lineage, lake: Lake) -> None:
        self.lineage = lineage
        self.lake = lake
        self._stale: dict[Place, bool] = {}
        self._cards: dict[Place, Card | None] = {}

    def card(self, name: str, key: Key) -> Card | None:
        """The card of a partition, read once; None if it was not made, or is damaged."""
        place = name, partition_name(key)
        if place not in self._cards:
            self._cards[place] = self.lake.card(name, key)
        return self._cards[place]

    def inputs(self, name: str, key: Key) -> dict[str, Any]:
        """Everything that the partition would be made from now. Its hash is the partition's fingerprint.

        Raises:
            FairnessError: a file that the partition is made from cannot be read.
        """
        recipe = self.lineage.recipes[name]
        return {
            "asset": name,
            "code_version": recipe.code_version,
            "partition": key,
            "seed": self.lineage.project.profile.seed,
            "settings": recipe.settings(self.lineage.part(name), key),
            "upstream": {
                "/".join([source, *k.values()]): self._upstream(recipe, source, k)
                for source, k in self.lineage.sources(name, key)
            },
        }

    def changes(self, name: str, key: Key) -> list[str]:
        """The reasons why a partition must be made; empty if it is up to date.

        Changes that are still to come from upstream do not count.
        """
        card = self.card(name, key)
        if card is None and self.lineage.sources(name, key):
            return ["not made yet"]
        try:
            now = self.inputs(name, key)
        except FairnessError as error:  # making this partition reports it; others are made
            return [str(error)]
        if card is None:
            return ["not made yet"]
        # A missing upstream partition is no change yet: it may come out as before.
        now["upstream"] = {k: content or card.inputs["upstream"].get(k) for k, content in now["upstream"].items()}
        if fingerprint(now) == card.fingerprint:
            return []
        return list(changes_between(card.inputs, json.loads(json.dumps(now)))) or ["made from something else"]

    def stale(self, name: str, key: Key) -> bool:
        """Whether a partition, or anything that it is made from, is not up to date with the profile."""
        place = name, partition_name(key)
        if place not in self._stale:
            self._stale[place] = bool(self.changes(name, key)) or any(
                self.stale(source, k) for source, k in self.lineage.sources(name, key)
            )
        return self._stale[place]

    def _upstream(self, recipe: Recipe, source: str, key: Key) -> str | None:
        card = self.card(source, key)
        if card is None or not recipe.tolerant:
            return card.content if card else None
        # A report also depends on what its tables were made from.
        return f"{card.content} of {card.fingerprint}" + (", stale" if self.stale(source, key) else "")


def changes_between(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """The differences between two inputs, one phrase each."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from changes_between(before.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif before != now:
        if path.startswith("upstream."):
            yield f"{path.removeprefix('upstream.').replace('/', ' ')} changed"
        else:
            short = [text if len(text) <= 40 else text[:37] + "..." for text in map(str, (before, now))]
            yield f"{path}: {short[0]} -> {short[1]}"
