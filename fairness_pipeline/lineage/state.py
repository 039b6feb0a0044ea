"""Which partitions of a lake are stale, and why."""

import json
from collections.abc import Iterator
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.recipe import Place, Recipe
from fairness_pipeline.workspace.lake import Key, Lake, fingerprint, partition_name


class State:
    """What a lake holds of a lineage, and what of it is out of date; both are taken to stay as they are.

    What a partition was made from counts, and what came of it: its inputs name the contents of the upstream partitions,
    so that a table whose upstream was made again is stale if that came out another, and only then.

    Args:
        lineage: Of a profile.
        lake: Its lake.
    """

    def __init__(self, lineage: Lineage, lake: Lake) -> None:
        self.lineage = lineage
        self.lake = lake
        self._stale: dict[Place, bool] = {}

    def inputs(self, name: str, key: Key) -> dict[str, Any]:
        """Everything that a partition would be made from now; its hash is the partition's fingerprint.

        Raises:
            FairnessError: a file that it is made from cannot be read.
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
        """Why a partition must be made, apart from what upstream is yet to become; none where it need not."""
        card = self.lake.card(name, key)
        if card is None and self.lineage.sources(name, key):
            return ["not made yet"]
        try:
            now = self.inputs(name, key)
        except FairnessError as error:  # of this partition alone: making it says so, and the others are made
            return [str(error)]
        if card is None:
            return ["not made yet"]
        # What is missing upstream says nothing yet: it may come out as it was.
        now["upstream"] = {k: content or card.inputs["upstream"].get(k) for k, content in now["upstream"].items()}
        if fingerprint(now) == card.fingerprint:
            return []
        return list(_changes(card.inputs, json.loads(json.dumps(now)))) or ["made from something else"]

    def stale(self, name: str, key: Key) -> bool:
        """Whether a partition, or anything that it is made from, is not what the profile asks for now."""
        place = name, partition_name(key)
        if place not in self._stale:
            self._stale[place] = bool(self.changes(name, key)) or any(
                self.stale(source, k) for source, k in self.lineage.sources(name, key)
            )
        return self._stale[place]

    def _upstream(self, recipe: Recipe, source: str, key: Key) -> str | None:
        card = self.lake.card(source, key)
        if card is None or not recipe.tolerant:
            return card.content if card else None
        # A report also shows what its tables were made from.
        return f"{card.content} of {card.fingerprint}" + (", stale" if self.stale(source, key) else "")


def _changes(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """What differs between two inputs, one phrase each."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from _changes(before.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif before != now:
        if path.startswith("upstream."):
            yield f"{path.removeprefix('upstream.').replace('/', ' ')} changed"
        else:
            short = [text if len(text) <= 40 else text[:37] + "..." for text in map(str, (before, now))]
            yield f"{path}: {short[0]} -> {short[1]}"
