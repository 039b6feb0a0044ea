"""What every asset of the pipeline has in common: fingerprint, lock, checks, a whole or absent write, metadata.

Assets write to the lake themselves instead of through an IO manager: computing, checking and writing must happen under
one lock, checkpoints are folders that outlive a killed run, and a table that fails a check must not take effect.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import pyarrow as pa

from fairness_pipeline.defs import partitions, presentation
from fairness_pipeline.defs.presentation import Made
from fairness_pipeline.defs.resources import current_project, listener
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import explained, replacing
from fairness_pipeline.lake import Card, Key, Lake, fingerprint, partition_name
from fairness_pipeline.progress import Progress
from fairness_pipeline.project import Project

ONLY_IF_STALE = "fairness_pipeline/only_if_stale"
"""A run with this tag leaves alone what is up to date by now: another run made it, or upstream came out as before."""
LEFT_ALONE = "left_alone"
"""The metadata of a partition that such a run left alone."""

Settings = Callable[[Project, Key], dict[str, Any]]
Covers = Callable[[Project, Key], bool]
Check = Callable[[pa.Table], str | None]
"""Looks at a table before it takes effect; says what is wrong with it, or nothing. Its docstring describes it."""


def _everything(project: Project, key: Key) -> bool:
    return True


@dataclass(frozen=True)
class Run:
    """What an asset is given: its project and partition, the way to its inputs, and where unfinished work survives."""

    project: Project
    key: Key
    lake: Lake
    progress: Progress
    name: str
    _folder: Path

    @property
    def seed(self) -> int:
        """Of this asset and partition."""
        return _seed(self.project.profile.seed, self.name, self.key)

    @property
    def seed_of_all_models(self) -> int:
        """The same for every model: the same responses then give the same table."""
        key = {axis: value for axis, value in self.key.items() if axis != "model"}
        return _seed(self.project.profile.seed, self.name, key)

    @property
    def folder(self) -> Path:
        """Of this fingerprint alone; what a killed run left in it is there again. Kept only for a checkpoint."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def of_base(self) -> "Run":
        """The same for the model that this partition's model was made from: the way to the base's inputs."""
        key = self.project.base_of(self.key)
        assert key is not None
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

    def _upstream(self, asset: str) -> Key:
        (key,) = upstream_keys(self.project, self.key, asset)
        return key


@dataclass(frozen=True)
class Recipe:
    """How one asset is made, and everything its content depends on."""

    name: str
    study: str
    kind: Literal["table", "checkpoint", "document"]
    axes: partitions.Axes
    upstream: tuple[str, ...]
    upstream_of_base: tuple[str, ...]
    code_version: str
    settings: Settings
    make: Callable[[Run], Made]
    schema: pa.Schema | None = None
    checks: tuple[Check, ...] = ()
    covers: Covers = _everything

    @property
    def tolerant(self) -> bool:
        """Whether it is made even where upstream partitions are missing: a report lists those as not measured."""
        return self.kind == "document"


RECIPES: dict[str, Recipe] = {}
"""Every asset of the pipeline by name, upstream before downstream."""


def recipe(name: str) -> Recipe:
    """The recipe of the asset `name`."""
    return RECIPES[name]


def keys(project: Project, name: str) -> list[Key]:
    """Every partition that the asset `name` can have; its grid may have holes."""
    own = recipe(name)
    return [key for key in partitions.keys(project, own.axes) if own.covers(project, key)]


def upstream_keys(project: Project, key: Key, source: str) -> list[Key]:
    """The partitions of the upstream asset `source` that the partition `key` is made from."""
    own = recipe(source)
    return [k for k in partitions.upstream_keys(project, key, own.axes) if own.covers(project, k)]


def sources(project: Project, name: str, key: Key) -> list[tuple[str, Key]]:
    """The upstream partitions that a partition is made from: its own, and those of its model's base."""
    own, base = recipe(name), project.base_of(key)
    found = [(source, k) for source in own.upstream for k in upstream_keys(project, key, source)]
    if base:
        found += [(source, k) for source in own.upstream_of_base for k in upstream_keys(project, base, source)]
    return found


class State:
    """What a lake holds of a profile, and what of it is out of date; both are taken to stay as they are.

    What a partition was made from counts, and what came of it: its inputs name the contents of the upstream partitions,
    so that a table whose upstream was made again is stale if that came out another, and only then.

    Args:
        project: The profile.
        lake: Its lake.
    """

    def __init__(self, project: Project, lake: Lake) -> None:
        self.project = project
        self.lake = lake
        self._stale: dict[tuple[str, str], bool] = {}

    def inputs(self, name: str, key: Key) -> dict[str, Any]:
        """Everything that a partition would be made from now; its hash is the partition's fingerprint.

        Raises:
            FairnessError: a file that it is made from cannot be read.
        """
        own = recipe(name)
        return {
            "asset": name,
            "code_version": own.code_version,
            "partition": key,
            "seed": self.project.profile.seed,
            "settings": own.settings(self.project, key),
            "upstream": {
                "/".join([source, *k.values()]): self._upstream(own, source, k)
                for source, k in sources(self.project, name, key)
            },
        }

    def changes(self, name: str, key: Key) -> list[str]:
        """Why a partition must be made, apart from what upstream is yet to become; none where it need not."""
        card = self.lake.card(name, key)
        if card is None:
            return ["not made yet"]
        try:
            now = self.inputs(name, key)
        except FairnessError as error:  # of this partition alone: making it says so, and the others are made
            return [str(error)]
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
                self.stale(source, k) for source, k in sources(self.project, name, key)
            )
        return self._stale[place]

    def _upstream(self, own: Recipe, source: str, key: Key) -> str | None:
        content = self.lake.content(source, key)
        return f"{content}, stale" if own.tolerant and content and self.stale(source, key) else content


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


def asset(
    *,
    study: str,
    kind: Literal["table", "checkpoint", "document"] = "table",
    axes: partitions.Axes = (),
    upstream: tuple[str, ...] = (),
    upstream_of_base: tuple[str, ...] = (),
    code_version: str,
    settings: Settings,
    schema: pa.Schema | None = None,
    checks: tuple[Check, ...] = (),
    covers: Covers = _everything,
) -> Callable[[Callable[[Run], Made]], dg.AssetsDefinition]:
    """Turns a function from `Run` to `Made` into a Dagster asset of the profile's lake.

    Args:
        study: The study it belongs to; the UI groups by it.
        kind: A Parquet table, a checkpoint folder, or an HTML document.
        axes: What it is partitioned by.
        upstream: The assets it reads.
        upstream_of_base: The assets of which it reads the partition that belongs to the model's base.
        code_version: Raised whenever the code changes what comes out.
        settings: What it reads of the profile and the data files, as JSON can hold it.
        schema: Of a table.
        checks: Look at a table before it takes effect; one that fails keeps it out.
        covers: Which partitions of its axes exist; the others are holes in Dagster's grid.
    """

    def decorate(make: Callable[[Run], Made]) -> dg.AssetsDefinition:
        project = current_project()
        own = Recipe(
            make.__name__, study, kind, axes, upstream, upstream_of_base, code_version, settings, make, schema, checks,
            covers,
        )  # fmt: skip
        RECIPES[own.name] = own

        @dg.asset(
            name=own.name,
            group_name=study,
            description=make.__doc__,
            code_version=code_version,
            partitions_def=partitions.definition(project, axes),
            deps=[
                dg.AssetDep(
                    name,
                    partition_mapping=partitions.mapping(
                        project, axes, recipe(name).axes, own=name in upstream, base=name in upstream_of_base
                    ),
                )
                for name in dict.fromkeys([*upstream, *upstream_of_base])
            ],
            check_specs=[
                dg.AssetCheckSpec(check.__name__, asset=own.name, description=check.__doc__, blocking=True)
                for check in checks
            ],
            kinds=presentation.KINDS[kind],
            metadata=presentation.definition_metadata(schema),
        )
        def body(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
            yield from _materialise(context, own)

        return body

    return decorate


def _materialise(
    context: dg.AssetExecutionContext, own: Recipe
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    project = current_project()
    lake = Lake(project.workspace)
    key = partitions.from_dagster(own.axes, context.partition_key if context.has_partition_key else None)
    try:
        if not own.covers(project, key):
            what = f"partition {partition_name(key)}" if key else "place in this profile"
            raise FairnessError(f"{own.name} has no {what}: nothing that the profile names would be in it")
        with lake.lock(own.name, key, lambda holder: listener().waiting(own.name, key, holder)):
            yield from _make(context, own, lake, key)
    except FairnessError as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    except OSError as error:
        raise dg.Failure(str(explained(error, Path(error.filename or lake.root))), allow_retries=False) from error


def _make(
    context: dg.AssetExecutionContext, own: Recipe, lake: Lake, key: Key
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    project = current_project()
    described = State(project, lake).inputs(own.name, key)
    stamp = fingerprint(described)
    card = lake.card(own.name, key)
    made_before = card is not None and card.fingerprint == stamp
    if card and made_before and context.run.tags.get(ONLY_IF_STALE):
        yield from (dg.AssetCheckResult(passed=True, check_name=check.__name__) for check in own.checks)
        yield dg.MaterializeResult(data_version=dg.DataVersion(card.content), metadata={LEFT_ALONE: "it is up to date"})
        return
    folder = lake.folder(own.name, key, stamp)
    if made_before or lake.was_finished(own.name, key, stamp):
        # Asked for again, or damaged: start afresh, with no card that vouches for what a kill may leave half made.
        lake.remove_card(own.name, key)
        _clear(folder)
    progress = listener().progress(own.name, key)
    started = time.monotonic()
    made = own.make(Run(project, key, lake, progress, own.name, folder))
    yield from _save(lake, own, key, made, Card(stamp, described, made.figures))
    if own.kind != "checkpoint":
        _clear(folder)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(lake.content(own.name, key) or ""),
        metadata=presentation.run_metadata(made, _path(lake, own, key), time.monotonic() - started),
    )


def _save(lake: Lake, own: Recipe, key: Key, made: Made, card: Card) -> Iterator[dg.AssetCheckResult]:
    if isinstance(made.content, pa.Table):
        assert own.schema is not None
        with lake.writing(own.name, key, made.content, own.schema, card) as table:
            for check in own.checks:
                wrong = check(table)
                yield dg.AssetCheckResult(
                    passed=wrong is None, check_name=check.__name__, metadata={"found": wrong or "nothing wrong"}
                )
                if wrong:
                    raise FairnessError(f"{own.name}: {wrong}; the table was not written")
        return
    if isinstance(made.content, str):
        with replacing(lake.document_path(own.name)) as temporary:
            temporary.write_text(made.content, encoding="utf-8")
    lake.write_card(own.name, key, card)


def _path(lake: Lake, own: Recipe, key: Key) -> Path:
    if own.kind == "table":
        return lake.table_path(own.name, key)
    return lake.document_path(own.name) if own.kind == "document" else lake.current_folder(own.name, key)


def _seed(seed: int, name: str, key: Key) -> int:
    """A seed fixed by the profile's seed, the asset and the partition."""
    text = "\x1f".join([str(seed), name, *(f"{axis}={key[axis]}" for axis in sorted(key))])
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def _clear(folder: Path) -> None:
    """Removes a folder with all in it."""
    if folder.exists():
        shutil.rmtree(folder)
