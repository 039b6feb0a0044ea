"""Axes, partitions, and which upstream partition belongs to which."""

import warnings
from itertools import product

import dagster as dg

from fairness_pipeline.lake import Key
from fairness_pipeline.project import Project

Axes = tuple[str, ...]


def axis_values(project: Project, axes: Axes) -> dict[str, list[str]]:
    """The partition keys along each of an asset's axes, in the profile's order."""
    named: dict[str, list[str]] = {
        "corpus": list(project.corpora),
        "dimension": project.systems_dimensions if "system" in axes else list(project.dimensions),
        "model": list(project.models),
        "system": list(project.systems),
    }
    return {axis: named[axis] for axis in axes}


def definition(project: Project, axes: Axes) -> dg.PartitionsDefinition | None:
    """Dagster's partitions for an asset with these axes."""
    if not axes:
        return None
    statics = {axis: dg.StaticPartitionsDefinition(values) for axis, values in axis_values(project, axes).items()}
    return statics[axes[0]] if len(axes) == 1 else dg.MultiPartitionsDefinition(statics)


def keys(project: Project, axes: Axes) -> list[Key]:
    """Every partition of an asset with these axes."""
    values = product(*axis_values(project, axes).values())
    return [dict(zip(axes, combination, strict=True)) for combination in values]


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
    return dict(zip(sorted(axes), parts, strict=True))


def upstream_keys(project: Project, key: Key, axes: Axes) -> list[Key]:
    """The partitions of an upstream asset with these axes that `key` is made from.

    A model brings its corpus along; an axis that `key` says nothing about is taken whole.
    """
    known = dict(key)
    if "model" in key:
        known["corpus"] = project.models[key["model"]].corpus
    choices = ([known[axis]] if axis in known else values for axis, values in axis_values(project, axes).items())
    return [dict(zip(axes, combination, strict=True)) for combination in product(*choices)]


def mapping(
    project: Project, downstream: Axes, upstream: Axes, *, own: bool = True, base: bool = False
) -> dg.PartitionMapping | None:
    """`upstream_keys` as Dagster's own mapping, for the UI's lineage; None where Dagster's default says the same.

    Args:
        project: The profile.
        downstream: Axes of the asset that reads.
        upstream: Axes of the asset that is read.
        own: Whether a partition reads its own model's.
        base: Whether it reads that of its model's base.
    """
    if not upstream or not downstream:
        return None
    if base and "model" in upstream and len(upstream) == 1:
        return dg.AllPartitionMapping()  # Dagster cannot say which model is made from which on a single axis
    if set(upstream) == set(downstream) and not base:
        return None
    by_corpus = {
        corpus: {key for key, model in project.models.items() if model.corpus == corpus}
        for corpus in dict.fromkeys(model.corpus for model in project.models.values())
    }
    if (upstream, downstream) == (("corpus",), ("model",)):
        return dg.StaticPartitionMapping(by_corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # pinned in pyproject.toml
        if len(upstream) == 1 and upstream[0] in downstream:
            return dg.MultiToSingleDimensionPartitionMapping(upstream[0])
        if len(upstream) == 1:
            return dg.AllPartitionMapping()  # nor which corpus a model of two axes belongs to
        along = {axis: dg.DimensionPartitionMapping(axis, dg.IdentityPartitionMapping()) for axis in upstream}
        if "corpus" in upstream and "corpus" not in downstream:
            along["corpus"] = dg.DimensionPartitionMapping("model", dg.StaticPartitionMapping(by_corpus))
        if base:
            made_from = {
                key: {k for k, model in project.models.items() if model.base == key} | ({key} if own else set())
                for key in project.models
            }
            along["model"] = dg.DimensionPartitionMapping("model", dg.StaticPartitionMapping(made_from))
        return dg.MultiPartitionMapping(along)
