"""Lets a study declare its assets; the type checker checks the settings that they read."""

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
        part: The study's part of a profile. Mypy checks which settings an asset reads from it: a misspelt setting is an
            error of the type checker and not of a run.

    Example:
        asset = Assets(DialoguePart)

        @asset(axes=("dimension",), code_version="1", settings=lambda part, key: {"level": part.level})
        def pairs(partition: Partition[DialoguePart]) -> Result: ...
    """

    def __init__(self, part: type[P]) -> None:
        del part  # only the type checker needs it

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
        upstream_shared: tuple[str, ...] = (),
        code_version: str,
        settings: Callable[[P, Key], dict[str, Any]],
        schema: pa.Schema | None = None,
        checks: tuple[Check, ...] = (),
        covers: Callable[[P, Key], bool] = lambda part, key: True,
        arrows: tuple[str, ...] | None = None,
        stage: str = "",
        trains: bool = False,
    ) -> Callable[[Callable[[Partition[P]], Result]], Recipe]:
        """Turns a function from `Partition` to `Result` into a recipe. A module's recipes, in order, are its lineage.

        Args:
            name: The name of the asset; by default that of the function.
            description: The description in the UI; by default the function's docstring.
            kind: A Parquet table, a checkpoint folder, or an HTML document.
            axes: The axes of its partitions.
            upstream: The assets that it reads; they are declared before it.
            upstream_of_base: The assets that it reads in the partition of the subject's base.
            upstream_of_seeds: The assets that it reads for every training of the subject, one for each seed.
            upstream_of_baselines: The assets that it reads for every training of the subject's baselines.
            upstream_shared: The assets that it reads in the partition of the subject that makes them for several.
            code_version: Increased whenever a change of the code changes the result.
            settings: Everything that it reads besides upstream tables and checkpoints.
            schema: The schema of a table.
            checks: The checks of a table before it takes effect; if one fails, the table does not take effect.
            covers: Says which combinations of the axes exist as partitions; Dagster's grid has holes for the others.
            arrows: The upstream assets that the UI draws an arrow from; by default all of them.
            stage: The stage of the study that it belongs to, one word; it is a group in the UI.
            trains: Whether making it trains a network, though it is a table: it then takes as long as a checkpoint.
        """

        def declare(make: Callable[[Partition[P]], Result]) -> Recipe:
            return Recipe(
                name or make.__name__, description or make.__doc__ or "", kind, axes, upstream, upstream_of_base,
                upstream_of_seeds, upstream_of_baselines, upstream_shared, code_version, settings, make, schema, checks,
                covers, arrows, stage, trains or kind == "checkpoint",
            )  # fmt: skip

        return declare
