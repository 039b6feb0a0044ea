"""Partitions and partition mappings in Dagster's own types."""

import warnings

import dagster as dg

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.recipe import Axes, Recipe
from fairness_pipeline.project.study import AnyPart
from fairness_pipeline.workspace.lake import Key


def definition(lineage: Lineage, recipe: Recipe) -> dg.PartitionsDefinition | None:
    """Dagster's partitions for an asset: the keys that can be filled along each of its axes."""
    if not recipe.axes:
        return None
    statics = {axis: dg.StaticPartitionsDefinition(keys) for axis, keys in lineage.values(recipe.name).items()}
    return statics[recipe.axes[0]] if len(recipe.axes) == 1 else dg.MultiPartitionsDefinition(statics)


def to_dagster(key: Key) -> str | None:
    """A partition as Dagster writes it."""
    if not key:
        return None
    return next(iter(key.values())) if len(key) == 1 else dg.MultiPartitionKey(key)


def from_dagster(axes: Axes, partition_key: str | None) -> Key:
    """The inverse of `to_dagster` for an asset with these axes; Dagster sorts axes by name."""
    if not axes:
        return {}
    parts = str(partition_key).split("|") if len(axes) > 1 else [str(partition_key)]
    found = dict(zip(sorted(axes), parts, strict=True))
    return {axis: found[axis] for axis in axes}


def mapping(lineage: Lineage, downstream: Recipe, upstream: Recipe) -> dg.PartitionMapping | None:
    """`Lineage.sources` as Dagster's own mapping, for the UI's lineage.

    Dagster cannot express every mapping. Where it cannot, this one names all upstream partitions.
    """
    below, above = lineage.values(downstream.name), lineage.values(upstream.name)
    if not below or not above:
        return None
    if upstream.name in (*downstream.upstream_of_seeds, *downstream.upstream_of_baselines):
        return dg.AllPartitionMapping()
    part = lineage.part(downstream.name)
    along: dict[str, tuple[str, dict[str, set[str]]]] = {}
    for axis in above:
        source = axis if axis in below else next((b for b in below if _implies(part, b, axis)), None)
        if source is None:
            return dg.AllPartitionMapping()
        along[axis] = source, _sources(part, downstream, upstream, source, axis, below[source], above[axis])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # pinned in pyproject.toml
        if len(above) == 1 and len(below) == 1:
            (_, found), *_ = along.values()
            return dg.StaticPartitionMapping(found)
        if len(above) == 1:
            (axis,) = above
            # Dagster's own mapping asks for the same keys on both sides.
            everyone = below.get(axis) == above[axis] and upstream.name not in downstream.upstream_of_base
            return dg.MultiToSingleDimensionPartitionMapping(axis) if everyone else dg.AllPartitionMapping()
        if len(below) == 1:
            return dg.AllPartitionMapping()
        return dg.MultiPartitionMapping(
            {axis: dg.DimensionPartitionMapping(source, dg.StaticPartitionMapping(found))
             for axis, (source, found) in along.items()}
        )  # fmt: skip


def _sources(
    part: AnyPart, downstream: Recipe, upstream: Recipe, source: str, axis: str, below: list[str], above: list[str]
) -> dict[str, set[str]]:
    """For each upstream key along `axis` the downstream keys along `source` that are made from it."""
    found: dict[str, set[str]] = {key: set() for key in above}
    derived = any(part.base_of({source: value}) for value in below)

    def along(key: Key) -> str:
        return key[axis] if axis in key else part.implied(key)[axis]

    for value in below:
        keys = []
        base = part.base_of({source: value})
        if upstream.name in downstream.upstream:
            keys.append(along({source: value}))
        if upstream.name in downstream.upstream_of_base and (base or not derived):
            keys.append(along(base or {source: value}))  # along the dimension nothing has a base: it stays as it is
        for key in keys:
            if key in found:
                found[key].add(value)
    return found


def _implies(part: AnyPart, axis: str, other: str) -> bool:
    """Whether the key along one axis determines the key along another."""
    return any(other in part.implied({axis: value}) for value in part.axes[axis])
