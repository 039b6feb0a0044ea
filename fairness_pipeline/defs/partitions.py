"""Partitions as Dagster has them, and which upstream partition belongs to which in its words."""

import warnings
from collections.abc import Callable

import dagster as dg

from fairness_pipeline.defs.lineage import Axes, Lineage, Recipe
from fairness_pipeline.lake import Key
from fairness_pipeline.study import Part


def definition(part: Part, axes: Axes) -> dg.PartitionsDefinition | None:
    """Dagster's partitions for an asset with these axes."""
    if not axes:
        return None
    statics = {axis: dg.StaticPartitionsDefinition(list(part.axes[axis])) for axis in axes}
    return statics[axes[0]] if len(axes) == 1 else dg.MultiPartitionsDefinition(statics)


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
    """`Lineage.sources` as Dagster's own mapping, for the UI's lineage; None where Dagster's default says the same.

    Where Dagster has no mapping that says so (a subject's base, or what it implies, from two axes) it names all.
    """
    below, above = downstream.axes, upstream.axes
    own, base = upstream.name in downstream.upstream, upstream.name in downstream.upstream_of_base
    if not below or not above or (set(above) == set(below) and not base):
        return None
    part = lineage.part(downstream.name)
    shared = [axis for axis in above if axis in below]
    implied = [axis for axis in above if axis not in below]
    # Which axis of the downstream partition an implied one follows from: the one whose keys alone imply it.
    follows = {axis: next((b for b in below if _implies(part, b, axis)), None) for axis in implied}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # pinned in pyproject.toml
        if len(above) == 1 and len(below) == 1 and implied and follows[above[0]] and not base:
            return dg.StaticPartitionMapping(_by_implied(part, below[0], above[0]))
        if len(above) == 1 and shared and len(below) > 1 and not base:
            return dg.MultiToSingleDimensionPartitionMapping(above[0])
        if len(above) == 1 or len(below) == 1 or None in follows.values():
            return dg.AllPartitionMapping()
        along = {axis: dg.DimensionPartitionMapping(axis, dg.IdentityPartitionMapping()) for axis in shared}
        for axis, source in follows.items():
            assert source is not None
            mapped = dg.StaticPartitionMapping(_by_implied(part, source, axis))
            along[axis] = dg.DimensionPartitionMapping(source, mapped)
        if base:
            for axis in shared:
                if any(part.base_of({axis: value}) for value in part.axes[axis]):
                    made_from = _by_base(part, axis, own)
                    along[axis] = dg.DimensionPartitionMapping(axis, dg.StaticPartitionMapping(made_from))
        return dg.MultiPartitionMapping(along)


def _implies(part: Part, axis: str, other: str) -> bool:
    """Whether a key along one axis alone says where it stands along another."""
    return any(other in part.implied({axis: value}) for value in part.axes[axis])


def _by_implied(part: Part, axis: str, other: str) -> dict[str, set[str]]:
    """For each key of the implied axis the keys that imply it."""
    return _grouped(part, axis, lambda value: [part.implied({axis: value})[other]])


def _by_base(part: Part, axis: str, own: bool) -> dict[str, set[str]]:
    """For each key the keys that are made from it, and itself where a partition reads its own too."""

    def sources(value: str) -> list[str]:
        base = part.base_of({axis: value})
        return ([value] if own else []) + ([base[axis]] if base else [])

    return {value: set() for value in part.axes[axis]} | _grouped(part, axis, sources)


def _grouped(part: Part, axis: str, sources: Callable[[str], list[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for value in part.axes[axis]:
        for source in sources(value):
            found.setdefault(source, set()).add(value)
    return found
