"""How an asset is declared, which partitions it has and what each is made from; nothing here needs Dagster.

Assets write to the lake themselves instead of through an IO manager: computing, checking and writing must happen under
one lock, checkpoints are folders that outlive a killed run, and a table that fails a check must not take effect.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from fairness_pipeline.foundation.checks import Check
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.project import Project
from fairness_pipeline.study import Study
from fairness_pipeline.workspace.lake import Key, Lake, fingerprint, partition_name

Axes = tuple[str, ...]
Kind = Literal["table", "checkpoint", "document"]
Place = tuple[str, str]
"""An asset and the name of one of its partitions."""


@dataclass(frozen=True)
class Result:
    """What an asset gives back: a table or a document (a checkpoint is in its folder already), figures and pictures.

    `figures` are kept beside the data and must be the same in every run; what it `says` (Markdown), `pictures` (PNG)
    and `tables` are shown in Dagster's UI. `before_it_counts` is called just before the content takes effect.
    """

    content: pa.Table | str | None
    figures: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    says: str = ""
    before_it_counts: Callable[[], None] = lambda: None


class Settings(Protocol):
    """What a partition reads of the profile, the data files and the libraries' versions, as JSON can hold it.

    `part` is that of the asset's study.
    """

    def __call__(self, part: Any, key: Key, /) -> dict[str, Any]:
        """The settings of one partition."""


class Covers(Protocol):
    """Whether a partition of an asset's axes exists; `part` is that of the asset's study."""

    def __call__(self, part: Any, key: Key, /) -> bool:
        """Whether one partition exists."""


@dataclass(frozen=True)
class Recipe:
    """How one asset is made, and everything its content depends on."""

    name: str
    description: str
    kind: Kind
    axes: Axes
    upstream: tuple[str, ...]
    upstream_of_base: tuple[str, ...]
    upstream_of_seeds: tuple[str, ...]
    upstream_of_rivals: tuple[str, ...]
    code_version: str
    settings: Settings
    make: "Callable[[Partition], Result]"
    schema: pa.Schema | None = None
    checks: tuple[Check, ...] = ()
    covers: Covers = lambda part, key: True
    arrows: tuple[str, ...] | None = None
    stage: str = ""

    @property
    def tolerant(self) -> bool:
        """Whether it is made even where upstream partitions are missing: a report lists those as not measured."""
        return self.kind == "document"


def asset(
    *,
    name: str | None = None,
    description: str | None = None,
    kind: Kind = "table",
    axes: Axes = (),
    upstream: tuple[str, ...] = (),
    upstream_of_base: tuple[str, ...] = (),
    upstream_of_seeds: tuple[str, ...] = (),
    upstream_of_rivals: tuple[str, ...] = (),
    code_version: str,
    settings: Settings,
    schema: pa.Schema | None = None,
    checks: tuple[Check, ...] = (),
    covers: Covers = lambda part, key: True,
    arrows: tuple[str, ...] | None = None,
    stage: str = "",
) -> "Callable[[Callable[[Partition], Result]], Recipe]":
    """Turns a function from `Partition` to `Result` into a recipe; a study's lineage is those of its module, in order.

    Args:
        name: Of the asset; the function's where it is left out.
        description: What the UI says of it; the function's docstring where it is left out.
        kind: A Parquet table, a checkpoint folder, or an HTML document.
        axes: What it is partitioned by.
        upstream: The assets it reads, which stand before it.
        upstream_of_base: The assets of which it reads the partition that belongs to the subject's base.
        upstream_of_seeds: The assets of which it reads the partitions of every seed that the subject is trained with.
        upstream_of_rivals: The assets of which it reads all seeds of what the subject is held against.
        code_version: Raised whenever the code changes what comes out.
        settings: Everything it reads besides upstream tables and checkpoints.
        schema: Of a table.
        checks: Look at a table before it takes effect; one that fails keeps it out.
        covers: Which partitions of its axes exist; the others are holes in Dagster's grid.
        arrows: From which of the assets it reads the UI draws an arrow; from all where it is left out.
        stage: The part of the study that it belongs to, one word: a group in the UI.
    """

    def declare(make: Callable[[Partition], Result]) -> Recipe:
        return Recipe(
            name or make.__name__, description or make.__doc__ or "", kind, axes, upstream, upstream_of_base,
            upstream_of_seeds, upstream_of_rivals, code_version, settings, make, schema, checks, covers, arrows, stage,
        )  # fmt: skip

    return declare


class Lineage:
    """Every asset of the studies that a profile takes part in, upstream before downstream.

    Args:
        project: The profile.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.recipes: dict[str, Recipe] = {}
        self.study_of: dict[str, str] = {}
        for study in project.studies:
            module = study.load("lineage")
            for value in vars(module).values():
                for recipe in value if isinstance(value, list) else [value]:
                    if isinstance(recipe, Recipe):
                        if self.study_of.get(recipe.name, study.name) != study.name:
                            raise ValueError(f"{study.name} and {self.study_of[recipe.name]} both make {recipe.name}")
                        self.recipes[recipe.name] = recipe
                        self.study_of[recipe.name] = study.name

    def study(self, name: str) -> Study:
        """The study that the asset `name` belongs to."""
        return next(study for study in self.project.studies if study.name == self.study_of[name])

    def group(self, name: str) -> str:
        """The asset's group in the UI: its study, or the study's stage with its number."""
        study, stage = self.study_of[name], self.recipes[name].stage
        stages = list(dict.fromkeys(r.stage for r in self.recipes.values() if self.study_of[r.name] == study))
        return f"{study}_{stages.index(stage) + 1}_{stage}" if stage else study

    def values(self, name: str) -> dict[str, list[str]]:
        """The keys along each axis of the asset `name` that one of its partitions has: no other can ever be filled."""
        part, keys = self.part(name), self.keys(name)
        found = {axis: {key[axis] for key in keys} for axis in self.recipes[name].axes}
        return {axis: [value for value in part.axes[axis] if value in own] for axis, own in found.items()}

    def part(self, name: str) -> Any:
        """The profile's part of the study that the asset `name` belongs to."""
        return self.project.parts[self.study_of[name]]

    def keys(self, name: str) -> list[Key]:
        """Every partition that the asset `name` can have; its grid may have holes."""
        recipe, part = self.recipes[name], self.part(name)
        combinations = product(*(part.axes[axis] for axis in recipe.axes))
        keys = (dict(zip(recipe.axes, values, strict=True)) for values in combinations)
        return [key for key in keys if recipe.covers(part, key)]

    def upstream_keys(self, key: Key, source: str) -> list[Key]:
        """The partitions of the upstream asset `source` that the partition `key` is made from.

        What follows from a key comes along (a model's corpus); an axis that it says nothing about is taken whole.
        """
        recipe, part = self.recipes[source], self.part(source)
        known = part.implied(key)
        choices = ([known[axis]] if axis in known else part.axes[axis] for axis in recipe.axes)
        found = [dict(zip(recipe.axes, combination, strict=True)) for combination in product(*choices)]
        return [k for k in found if recipe.covers(part, k)]

    def sources(self, name: str, key: Key) -> list[tuple[str, Key]]:
        """The upstream partitions that a partition is made from: its own, its subject's base's, seeds' and rivals'."""
        recipe, base = self.recipes[name], self.part(name).base_of(key)
        found = [(source, k) for source in recipe.upstream for k in self.upstream_keys(key, source)]
        if base:
            found += [(source, k) for source in recipe.upstream_of_base for k in self.upstream_keys(base, source)]
        for seed in self.part(name).seeds_of(key) if recipe.upstream_of_seeds else ():
            found += [(source, k) for source in recipe.upstream_of_seeds for k in self.upstream_keys(seed, source)]
        for rival in self.part(name).rivals_of(key) if recipe.upstream_of_rivals else ():
            found += [(source, k) for source in recipe.upstream_of_rivals for k in self.upstream_keys(rival, source)]
        return found


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


@dataclass(frozen=True)
class Partition:
    """What an asset is given: its part of the profile, its key, the way to its inputs, a folder for unfinished work."""

    name: str
    key: Key
    lineage: Lineage
    lake: Lake
    progress: Progress
    _folder: Path

    @property
    def project(self) -> Project:
        """The profile."""
        return self.lineage.project

    @property
    def part(self) -> Any:
        """The profile's part of the asset's study."""
        return self.lineage.part(self.name)

    @property
    def seed(self) -> int:
        """The seed of this asset and partition."""
        return _seed(self.project.profile.seed, self.name, self.key)

    def seed_without(self, axis: str) -> int:
        """The same along an axis: the same responses of two models then give the same table."""
        key = {own: value for own, value in self.key.items() if own != axis}
        return _seed(self.project.profile.seed, self.name, key)

    @property
    def folder(self) -> Path:
        """A folder for this fingerprint alone, with what a killed run left in it. Kept only for a checkpoint."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def of_base(self) -> "Partition":
        """The same for what this partition's subject was made from: the way to the base's inputs."""
        key = self.part.base_of(self.key)
        assert key is not None
        return replace(self, key=key)

    @property
    def of_seeds(self) -> "list[Partition]":
        """The same for every seed that this partition's subject is trained with."""
        return [replace(self, key=key) for key in self.part.seeds_of(self.key)]

    def of(self, key: Key) -> "Partition":
        """The same for another subject, one of the rivals: the way to its inputs."""
        return replace(self, key=key)

    def read(self, table: str) -> pa.Table:
        """The upstream table's partition that belongs to this one."""
        return self.lake.read(table, self._upstream(table))

    def checkpoint(self, asset: str) -> Path:
        """The upstream checkpoint's folder that belongs to this partition."""
        return self.lake.current_folder(asset, self._upstream(asset))

    def figures(self, asset: str) -> dict[str, Any]:
        """What was found while the upstream partition that belongs to this one was made."""
        card = self.lake.card(asset, self._upstream(asset))
        return card.figures if card else {}

    def stale(self, table: str) -> list[Key]:
        """The partitions of an upstream table that are not what the profile asks for now."""
        state = State(self.lineage, self.lake)
        return [key for key in self.lineage.keys(table) if state.stale(table, key)]

    def _upstream(self, asset: str) -> Key:
        (key,) = self.lineage.upstream_keys(self.key, asset)
        return key


def _seed(seed: int, name: str, key: Key) -> int:
    """A seed fixed by the profile's seed, the asset and the partition."""
    text = "\x1f".join([str(seed), name, *(f"{axis}={key[axis]}" for axis in sorted(key))])
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
