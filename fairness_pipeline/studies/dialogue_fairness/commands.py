"""Exports context pairs and imports the responses to them."""

import argparse
import os
from functools import partial
from pathlib import Path

from fairness_pipeline.cli.arguments import check_output, number_of_pairs
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.imports import Import, check_name, chosen
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import part_of
from fairness_pipeline.studies.dialogue_fairness.models import NAME
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart


def add_commands(command: Command) -> None:
    """Adds the export commands to the command line."""
    pairs = command(
        "export pairs",
        _export_pairs,
        "The contexts that a dialogue model elsewhere is to answer.",
        example="--profile audit --output pairs.csv",
    )
    pairs.add_argument("--dimension", help="only this dimension (default: all of the profile)")
    pairs.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")
    pairs.add_argument("--output", metavar="FILE", required=True, help=".csv or .jsonl")
    pairs.add_argument(
        "--pairs", metavar="N", type=number_of_pairs, help="how many per dimension, or `all`; kept for what follows"
    )
    pairs.add_argument("--force", action="store_true", help="replace FILE if it is there")


def _export_pairs(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.cli.run import make
    from fairness_pipeline.foundation.csv_cells import say_escaped
    from fairness_pipeline.foundation.files import replacing
    from fairness_pipeline.models.dialogue.imported import FORMS, write_pairs
    from fairness_pipeline.workspace.lake import Lake

    path = Path(arguments.output)
    check_output(path, FORMS, force=arguments.force)
    part = part_of(arguments.profile, NAME, DialoguePart)
    if arguments.pairs is not None:
        part.ask_pairs(arguments.pairs)
        part = part_of(arguments.profile, NAME, DialoguePart)
    corpus = chosen("--corpus", arguments.corpus, part.corpora, arguments.profile)
    dimensions = _dimensions(part, arguments.dimension)
    make(part.project, NAME, "context_pairs", arguments.dimension)
    lake = Lake(part.project.workspace)
    pairs = {d: lake.read("context_pairs", {"corpus": corpus, "dimension": d}) for d in dimensions}
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        escaped = write_pairs(pairs, path.suffix, stream)
    count = sum(table.num_rows for table in pairs.values())
    note = say_escaped(escaped)
    print(f"{path}: {count:,} pairs, {2 * count:,} contexts; fill in 'response' in a copy of it, then:{note}")
    options = "".join(f" --{name} {value}" for name in ("profile", "dimension") if (value := getattr(arguments, name)))
    if len(part.corpora) == 1:
        print(f"fairness-pipeline audit FILE{options}")
    else:
        print(f"fairness-pipeline import FILE --name NAME{options} --corpus {corpus}")
    return 0


def _import_responses(arguments: argparse.Namespace) -> int:
    part = part_of(arguments.profile, NAME, DialoguePart)
    imported = import_responses(
        part,
        Path(arguments.file),
        arguments.name,
        arguments.dimension,
        corpus=arguments.corpus,
        keep_empty=arguments.keep_empty,
    )
    print(f"{sum(imported.values()):,} responses of '{arguments.name}' to {', '.join(imported)}; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --model {arguments.name}")
    return 0


IMPORTS = (
    Import(
        "responses", "pair_id, side and response", {"pair_id", "side", "response"}.issubset, _import_responses,
        ("dimension", "corpus", "keep_empty"),
    ),
)  # fmt: skip


def import_responses(
    part: DialoguePart,
    path: Path,
    model: str,
    dimension: str | None = None,
    *,
    corpus: str | None = None,
    keep_empty: bool = False,
) -> dict[str, int]:
    """Imports a model's responses from a file into the workspace, all or none.

    Args:
        part: The profile's part of the study.
        path: The file.
        model: The name for the model.
        dimension: The dimension of the answered pairs if the file does not name it; or the only one to import.
        corpus: The corpus of the contexts; may be left out if the profile has only one.
        keep_empty: Whether an empty response counts as an answer without words.

    Returns:
        The number of responses, by dimension.

    Raises:
        FairnessError: the profile declares a model of this name, or the file does not answer the pairs; names the line.
    """
    import yaml

    from fairness_pipeline.foundation.files import replacing
    from fairness_pipeline.foundation.parquet import write_parquet
    from fairness_pipeline.models.dialogue.imported import dimensions_of, read_responses
    from fairness_pipeline.workspace.imports import store_import
    from fairness_pipeline.workspace.lake import Lake

    corpus = chosen("--corpus", corpus, part.corpora, part.project.name)
    existing = part.models.get(model)
    taken = existing is not None and (existing.architecture != "imported" or existing.corpus != corpus)
    usage = f"{existing.architecture}, corpus {existing.corpus}" if existing else ""
    check_name(model, part.project.name, taken=taken, usage=usage)
    if dimension:
        _dimensions(part, dimension)
    file_dimensions = dimensions_of(path)
    if file_dimensions is None and dimension is None:
        if len(part.dimensions) > 1:
            raise FairnessError(f"{path}: no column 'dimension': say with --dimension whose pairs were answered")
        (dimension,) = part.dimensions
    dimensions = [dimension] if dimension else file_dimensions or []
    if not dimensions:
        raise FairnessError(f"{path}: holds no response; fill in 'response' in a copy of what `export pairs` wrote")
    if dimension and file_dimensions is not None and dimension not in file_dimensions:
        raise FairnessError(f"{path}: no row of dimension '{dimension}'; its dimensions: {', '.join(file_dimensions)}")
    for name in dimensions:
        _dimensions(part, name)
    lake = Lake(part.project.workspace)
    pairs = {name: lake.read("context_pairs", {"corpus": corpus, "dimension": name}) for name in dimensions}
    tables = {name: read_responses(path, pairs[name], name, keep_empty=keep_empty) for name in dimensions}
    for name, table in tables.items():
        target = part.imported_responses(model, name)
        if store_import(path, target, part.project.workspace, partial(write_parquet, table)):
            print(f"replaced the responses of '{model}' to {name} that were imported before")
    if not existing:
        specification = {"architecture": "imported", "studies": [NAME], "corpus": corpus}
        with replacing(part.imported_responses(model, dimensions[0]).with_name("model.yaml")) as temporary:
            temporary.write_text(yaml.safe_dump(specification, sort_keys=False), encoding="utf-8")
    # The folder keeps the date of the file: reports derive the age of the answers from it.
    os.utime(part.imported_responses(model, dimensions[0]).parent, (path.stat().st_mtime,) * 2)
    return {name: table.num_rows for name, table in tables.items()}


def _dimensions(part: DialoguePart, requested: str | None) -> list[str]:
    """The requested dimension, or all of them."""
    return (
        list(part.dimensions)
        if requested is None
        else [chosen("--dimension", requested, part.dimensions, part.project.name)]
    )
