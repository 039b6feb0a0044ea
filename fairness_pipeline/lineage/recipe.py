"""The declaration of an asset: what it is made from, by which function, and what the function returns.

Assets write to the lake themselves and not through an IO manager, for three reasons: computing, checking and writing
must happen under one lock, checkpoints are folders that outlive a killed run, and a table that fails a check must
not take effect.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from fairness_pipeline.foundation.checks import Check
from fairness_pipeline.workspace.lake import Key, Lake, partition_name

Axes = tuple[str, ...]
Kind = Literal["table", "checkpoint", "document"]
Place = tuple[str, str]
"""An asset, and the name of one of its partitions."""


def place(name: str, key: Key) -> Place:
    """The place of a partition, which can be a key of a dictionary."""
    return name, partition_name(key)


@dataclass(frozen=True)
class Result:
    """The result of an asset: a table or a document (a checkpoint is already in its folder), figures and pictures.

    `figures` are stored with the data and must be the same in every run. `says` (Markdown), `pictures` (PNG) and
    `tables` are shown in Dagster's UI. `before_it_counts` is called just before the content takes effect.
    """

    content: pa.Table | str | None
    figures: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    says: str = ""
    before_it_counts: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Recipe:
    """How an asset is made, and everything that its content depends on."""

    name: str
    description: str
    kind: Kind
    axes: Axes
    upstream: tuple[str, ...]
    upstream_of_base: tuple[str, ...]
    upstream_of_seeds: tuple[str, ...]
    upstream_of_baselines: tuple[str, ...]
    upstream_shared: tuple[str, ...]
    code_version: str
    settings: Callable[[Any, Key], dict[str, Any]]
    make: Callable[[Any], Result]
    schema: pa.Schema | None = None
    checks: tuple[Check, ...] = ()
    covers: Callable[[Any, Key], bool] = lambda part, key: True
    arrows: tuple[str, ...] | None = None
    stage: str = ""
    trains: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """All assets that it reads, each once."""
        others = (*self.upstream_of_base, *self.upstream_of_seeds, *self.upstream_of_baselines, *self.upstream_shared)
        return tuple(dict.fromkeys((*self.upstream, *others)))

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
