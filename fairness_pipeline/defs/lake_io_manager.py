"""Loads the tables of a lake as arguments of your own assets. It writes nothing: only the lake's assets write."""

from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from fairness_pipeline.defs.partitions import from_dagster
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.assets import Asset
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Key, Lake

RESOURCE = "fairness_lake"
"""The name of the resource, after the key prefix."""
_MAY_MISS = "allow_missing_partitions"


class LakeIOManager(dg.ConfigurableIOManager):
    """Loads what a profile has made as the argument of a downstream asset.

    The argument's type decides the form: `pyarrow.Table` (also without a type), `pandas.DataFrame`,
    `duckdb.DuckDBPyRelation`, or `pathlib.Path` for the file or folder. A checkpoint or a report is always a path. Each
    table has a column for each axis of its partitions; several partitions come as one table. All of them must be made,
    unless the input's metadata say `allow_missing_partitions`, as for Dagster's own IO managers.

    Examples:
        >>> import dagster as dg, pandas as pd
        >>> from fairness_pipeline import LakeIOManager, build_definitions
        >>> @dg.asset(ins={"verdicts": dg.AssetIn(key=["fairness", "equity_significance"])})
        ... def biased_systems(verdicts: pd.DataFrame) -> None:
        ...     print(verdicts[verdicts["verdict"] == "biased"])
        >>> audits = build_definitions("sample", key_prefix="fairness")  # brings the IO manager
        >>> defs = dg.Definitions.merge(audits, dg.Definitions(assets=[biased_systems]))
    """

    profile: str

    def load_input(self, context: dg.InputContext) -> Any:
        """The table, or the path, of the upstream partitions.

        Raises:
            FairnessError: a partition is not made yet, its file is damaged, or the argument has another type.
        """
        lineage = Lineage(Project(self.profile))
        asset, lake = lineage.assets[context.asset_key.path[-1]], Lake(lineage.project.workspace)
        names = context.asset_partition_keys if context.has_asset_partitions else [None]
        keys = [from_dagster(asset.axes, name) for name in names]
        if (context.definition_metadata or {}).get(_MAY_MISS):
            keys = [key for key in keys if lake.has(asset.name, key)]
        argument_type = context.dagster_type.typing_type
        if asset.kind != "table" or argument_type is Path:
            if len(keys) != 1:
                raise FairnessError(f"{asset.name}: expected one partition for a path, found {len(keys)}")
            return asset.path(lake, keys[0])
        return _convert(argument_type, _read_table(lake, asset, keys), asset.name)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Does nothing: the pipeline's assets have written by then.

        Raises:
            FairnessError: your own asset returned a value to store.
        """
        if obj is not None:
            raise FairnessError(f"the lake is written by its own assets; choose another IO manager for {context.name}")


def _read_table(lake: Lake, asset: Asset, keys: list[Key]) -> pa.Table:
    if not keys:
        if asset.schema is None:
            raise FairnessError(f"{asset.name}: no partition is made yet, and its columns are not known before")
        axes = [pa.field(axis, pa.string()) for axis in sorted(asset.axes) if axis not in asset.schema.names]
        return pa.schema([*axes, *asset.schema]).empty_table()
    tables = []
    for key in keys:
        table = lake.read(asset.name, key)
        for index, axis in enumerate(axis for axis in sorted(key) if axis not in table.column_names):
            table = table.add_column(index, axis, pa.repeat(key[axis], len(table)))
        tables.append(table)
    return pa.concat_tables(tables)


def _convert(argument_type: Any, table: pa.Table, name: str) -> Any:
    if argument_type in (Any, pa.Table):
        return table
    type_name = f"{argument_type.__module__.split('.')[0]}.{argument_type.__qualname__}"
    if type_name == "pandas.DataFrame":
        return table.to_pandas()
    if type_name.endswith(".DuckDBPyRelation"):
        import duckdb

        return duckdb.connect().from_arrow(table)
    raise FairnessError(
        f"{name}: expected an argument of type pyarrow.Table, pandas.DataFrame, duckdb.DuckDBPyRelation or "
        f"pathlib.Path, found {type_name}"
    )
