"""How a study declares its assets, with the settings that they read checked by the type checker."""

from collections.abc import Callable
from typing import Any, Generic

import pyarrow as pa

from fairness_pipeline.foundation.checks import Check
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Axes, Kind, Recipe, Result
from fairness_pipeline.project.study import P
from fairness_pipeline.workspace.lake import Key


class Assets(Generic[P]):
    """Declares the assets of one study.

    Args:
        part: The study's part of a profile. What an asset reads of it is checked by mypy: a misspelt setting is an
            error of the type checker, not of a run.

    Example:
        asset = Assets(DialoguePart)

        @asset(axes=("dimension",), code_version="1", settings=lambda part, key: {"level": part.level})
        def pairs(partition: Partition[DialoguePart]) -> Result: ...
    """

    def __init__(self, part: type[P]) -> None:
        self._part = part

    def __call__(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        kind: Kind = "table",
        axes: Axes = (),
        upstream: tuple[str, ...] = (),
        upstream_of_base: tuple[str, ...] = (),
        upstream_of_seeds: tuple[str, ...] = (),
        upstream_of_baselines: tuple[str, ...] = (),
        code_version: str,
        settings: Callable[[P, Key], dict[str, Any]],
        schema: pa.Schema | None = None,
        checks: tuple[Check, ...] = (),
        covers: Callable[[P, Key], bool] = lambda part, key: True,
        arrows: tuple[str, ...] | None = None,
        stage: str = "",
    ) -> Callable[[Callable[[Partition[P]], Result]], Recipe]:
        """Turns a function from `Partition` to `Result` into a recipe. Those of a module, in order, are its lineage.

        Args:
            name: Of the asset; the function's where it is left out.
            description: What the UI says of it; the function's docstring where it is left out.
            kind: A Parquet table, a checkpoint folder, or an HTML document.
            axes: What it is partitioned by.
            upstream: The assets it reads, which stand before it.
            upstream_of_base: The assets of which it reads the partition that belongs to the subject's base.
            upstream_of_seeds: The assets of which it reads every training of the subject, one a seed.
            upstream_of_baselines: The assets of which it reads every training of what the subject is compared with.
            code_version: Raised whenever the code changes what comes out.
            settings: Everything it reads besides upstream tables and checkpoints.
            schema: Of a table.
            checks: Look at a table before it takes effect; one that fails keeps it out.
            covers: Which partitions of its axes exist; the others are holes in Dagster's grid.
            arrows: From which of the assets it reads the UI draws an arrow; from all where it is left out.
            stage: The part of the study that it belongs to, one word: a group in the UI.
        """

        def declare(make: Callable[[Partition[P]], Result]) -> Recipe:
            return Recipe(
                name or make.__name__, description or make.__doc__ or "", kind, axes, upstream, upstream_of_base,
                upstream_of_seeds, upstream_of_baselines, code_version, settings, make, schema, checks, covers, arrows,
                stage,
            )  # fmt: skip

        return declare
