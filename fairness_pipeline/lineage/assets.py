"""Declares assets: what each is made from, by which function, and what the function returns.

Assets write to the lake themselves and not through an IO manager, for three reasons: computing, checking and writing
must happen under one lock, checkpoints are folders that outlive a killed run, and a table that fails a check must
not take effect.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Concatenate, Generic, Literal, TypeVar

import pyarrow as pa

from fairness_pipeline.foundation.checks import Check
from fairness_pipeline.project.study import AnyPart, P
from fairness_pipeline.workspace.lake import Key, Lake, Row, partition_name

Axes = tuple[str, ...]
Kind = Literal["table", "checkpoint", "document"]
PartitionId = tuple[str, str]
"""An asset, and the name of one of its partitions."""

I = TypeVar("I")  # noqa: E741
"""The type of an asset's inputs."""


def partition_id(name: str, key: Key) -> PartitionId:
    """Returns a hashable name of a partition."""
    return name, partition_name(key)


@dataclass(frozen=True)
class Result:
    """The result of an asset: a table, the folder of a checkpoint or a document; and figures.

    `figures` are stored with the data and must be the same in every run. `tables` are shown in Dagster's UI.
    `before_it_counts` is called just before the content takes effect.
    """

    content: pa.Table | Path | str
    figures: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    before_it_counts: Callable[[], None] = lambda: None

    @property
    def rows(self) -> list[Row]:
        """The rows of a table."""
        assert isinstance(self.content, pa.Table)
        return list(self.content.to_pylist())


@dataclass(frozen=True)
class Glance:
    """What Dagster's UI shows beside a result: a text in Markdown, and pictures (PNG) by name."""

    text: str = ""
    pictures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Read:
    """A read of other assets, which is one argument of the asset's function.

    Args:
        assets: The assets; a partition may have only some of them.
        each: Whether all of them are read, as a dictionary by name; otherwise the first that the partition has.
        of: The subject whose partition is read: the asset's own, its base, each of its seeds, each training of its
            baselines, or the subject that makes what several share. Seeds and baselines give a dictionary by
            subject.
        figures: Whether the figures are read instead of the content.
    """

    assets: tuple["Asset", ...]
    each: bool = False
    of: Literal["own", "base", "seeds", "baselines", "shared"] = "own"
    figures: bool = False

    def subjects(self, part: AnyPart, key: Key) -> list[Key]:
        """The partitions of the subjects that are read."""
        if self.of == "base":
            base = part.base_of(key)
            return [base] if base else []
        if self.of == "seeds":
            return part.seeds_of(key)
        if self.of == "baselines":
            return part.baselines_of(key)
        if self.of == "shared":
            shared = part.shared_with(key)
            return [shared] if shared else []
        return [key]


def one_of(*assets: "Asset") -> Read:
    """The first of the assets that the partition has."""
    return Read(assets)


def each_of(*assets: "Asset") -> Read:
    """All of the assets that the partition has, as a dictionary by name."""
    return Read(assets, each=True)


def of_base(read: "Read | Asset") -> Read:
    """The same read in the partition of the subject's base; None for a subject without one."""
    return replace(_read(read), of="base")


def of_seeds(read: "Read | Asset") -> Read:
    """The same read for every training of the subject, as a dictionary by subject."""
    return replace(_read(read), of="seeds")


def of_baselines(read: "Read | Asset") -> Read:
    """The same read for every training of the subject's baselines, as a dictionary by subject."""
    return replace(_read(read), of="baselines")


def of_shared(read: "Read | Asset") -> Read:
    """The same read in the partition of the subject that makes what several share; None if nothing is shared."""
    return replace(_read(read), of="shared")


def figures_of(read: "Read | Asset") -> Read:
    """The same read of the figures instead of the content."""
    return replace(_read(read), figures=True)


def _read(read: "Read | Asset") -> Read:
    return Read((read,)) if isinstance(read, Asset) else read


@dataclass(frozen=True, kw_only=True, eq=False)
class Asset:
    """How an asset is made, and everything that its content depends on. A call runs its function.

    `inputs` returns the object that the function gets and that is hashed; `reads` are its further arguments, by name. A
    function with an argument `run` gets a folder to work in, progress and seeds. `show` may read all of the profile,
    and cannot change the result.
    """

    name: str
    description: str
    kind: Kind
    axes: Axes
    inputs: Callable[[Any, Key], object]
    reads: Mapping[str, Read]
    function: Callable[..., Result]
    code_version: str
    libraries: tuple[str, ...]
    schema: pa.Schema | None
    checks: tuple[Check, ...]
    covers: Callable[[Any, Key], bool]
    show: Callable[[Any, Key, Result], Glance]
    arrows: tuple[str, ...] | None
    stage: str
    trains: bool
    asks: bool

    def __call__(self, *arguments: Any, **named: Any) -> Result:
        """Runs the function on its inputs and tables, without a profile and without a lake."""
        return self.function(*arguments, **named)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all assets that it reads, without duplicates."""
        return tuple(dict.fromkeys(source.name for read in self.reads.values() for source in read.assets))

    @property
    def runs(self) -> bool:
        """Whether its function needs a `Run`."""
        return "run" in inspect.signature(self.function).parameters

    def path(self, lake: Lake, key: Key) -> Path:
        """The file of a partition, or the folder of a checkpoint.

        Raises:
            FairnessError: the checkpoint is not made yet.
        """
        if self.kind == "table":
            return lake.table_path(self.name, key)
        return lake.document_path(self.name) if self.kind == "document" else lake.current_folder(self.name, key)

    @property
    def tolerant(self) -> bool:
        """Whether it is made even if upstream partitions are missing: a report lists those as not measured."""
        return self.kind == "document"


class Assets(Generic[P]):
    """Declares the assets of one study. A module's assets, in order, are its lineage.

    Args:
        part: The study's part of a profile. Mypy checks which settings an asset's inputs are made from: a misspelt
            setting is an error of the type checker and not of a run.
        stage: The stage of the assets that name none, one word; it is a group in the UI.
        axes: The axes of the partitions of assets that name none.
        covers: Which combinations of the axes exist as partitions, for assets that do not define it.

    Example:
        asset = Assets(DialoguePart)

        @asset(axes=("dimension",), inputs=lambda part, key: part.settings.pairs, reads={"texts": texts}, ...)
        def pairs(inputs: PairSettings, texts: pa.Table, run: Run) -> Result: ...
    """

    def __init__(
        self,
        part: type[P],
        *,
        stage: str = "",
        axes: Axes = (),
        covers: Callable[[P, Key], bool] = lambda part, key: True,
    ) -> None:
        del part  # only the type checker needs it
        self._stage, self._axes, self._covers = stage, axes, covers

    def __call__(
        self,
        *,
        inputs: Callable[[P, Key], I],
        code_version: str,
        name: str | None = None,
        description: str | None = None,
        kind: Kind = "table",
        axes: Axes | None = None,
        reads: Mapping[str, Read | Asset] | tuple[Asset, ...] = (),
        libraries: tuple[str, ...] = (),
        schema: pa.Schema | None = None,
        checks: tuple[Check, ...] = (),
        covers: Callable[[P, Key], bool] | None = None,
        show: Callable[[P, Key, Result], Glance] = lambda part, key, result: Glance(),
        arrows: tuple[Asset, ...] | None = None,
        stage: str | None = None,
        trains: bool = False,
        asks: bool = False,
    ) -> Callable[[Callable[Concatenate[I, ...], Result]], Asset]:
        """Turns a function into an asset.

        Args:
            inputs: Everything that it reads besides other assets, as one frozen object: the function's first argument.
            code_version: Raised whenever a change of the code changes the result.
            name: The name of the asset; by default that of the function.
            description: The description in the UI; by default the function's docstring.
            kind: A Parquet table, a checkpoint folder, or an HTML document.
            axes: The axes of its partitions, if not those of the other assets.
            reads: The assets that it reads, by the name of the function's argument: an asset, or `one_of`, `each_of`,
                `of_base` and so on. What a partition lacks is None. A report only names the assets.
            libraries: The libraries whose versions decide the result.
            schema: The schema of a table.
            checks: The checks of a table before it takes effect; if one fails, the table does not take effect.
            covers: Which partitions it has, if not those of the other assets.
            show: What the UI shows beside the result.
            arrows: The upstream assets that the UI draws an arrow from; by default all of them.
            stage: Its stage, if not that of the other assets.
            trains: Whether making it trains a network, though it is a table: it then takes as long as a checkpoint.
            asks: Whether it asks the subject, whose answers may differ tomorrow; its inputs then have a `round`.

        Raises:
            TypeError: the function's arguments are not its inputs and what it reads.
        """
        named = reads if isinstance(reads, Mapping) else {source.name: source for source in reads}
        arguments = {argument: _read(read) for argument, read in named.items()}

        def declare(function: Callable[Concatenate[I, ...], Result]) -> Asset:
            asset = Asset(
                name=name or function.__name__,
                description=description or function.__doc__ or "",
                kind=kind,
                axes=self._axes if axes is None else axes,
                inputs=inputs,
                reads=arguments,
                function=function,
                code_version=code_version,
                libraries=libraries,
                schema=schema,
                checks=checks,
                covers=covers or self._covers,
                show=show,
                arrows=tuple(upstream.name for upstream in arrows) if arrows else None,
                stage=self._stage if stage is None else stage,
                trains=trains or kind == "checkpoint",
                asks=asks,
            )
            if kind != "document":
                _check_arguments(asset)
            return asset

        return declare


def declared_in(*modules: ModuleType) -> list[Asset]:
    """The assets among the names of modules and in their lists, each once and in order; imported ones count too."""
    values = [value for module in modules for value in vars(module).values()]
    listed = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
    return list({entry.name: entry for entry in listed if isinstance(entry, Asset)}.values())


def _check_arguments(asset: Asset) -> None:
    _, *arguments = inspect.signature(asset.function).parameters
    if {*arguments} - {"run"} != asset.reads.keys():
        raise TypeError(f"{asset.name}: takes {', '.join(arguments)}, and reads {', '.join(asset.reads)}")
