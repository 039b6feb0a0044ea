"""The study's own commands: pairs out, responses in."""

import argparse
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.commands import Command
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.project import Project
from fairness_pipeline.studies.dialogue_fairness.profile import NAME, DialoguePart


def add_commands(command: Command) -> None:
    """Adds them to the command line."""
    pairs = command("export-pairs", _export_pairs, "Write the contexts that a model elsewhere is to answer.")
    pairs.add_argument("--dimension", required=True)
    pairs.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")
    pairs.add_argument("--output", metavar="FILE", required=True, help=".csv or .jsonl")
    imported = command("import-responses", _import_responses, "Take a model's answers to exported pairs from a file.")
    imported.add_argument("file", help=".csv or .jsonl with pair_id, side and response")
    imported.add_argument("--model", required=True, help="a name for what answered")
    imported.add_argument("--dimension", required=True)
    imported.add_argument("--keep-empty", action="store_true", help="take empty responses as responses without words")
    imported.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")


def _export_pairs(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.files import replacing
    from fairness_pipeline.models.dialogue.imported import FORMS, write_pairs

    path = Path(arguments.output)
    if path.suffix not in FORMS:
        raise FairnessError(f"--output: expected a file that ends in {' or '.join(FORMS)}, found {path.name}")
    _, corpus, pairs = _pairs(arguments)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        write_pairs(pairs, path.suffix, stream)
    print(f"{path}: {pairs.num_rows:,} pairs, {2 * pairs.num_rows:,} contexts; fill in 'response', then:")
    where = f"--profile {arguments.profile} --corpus {corpus} --dimension {arguments.dimension}"
    print(f"fairness-pipeline import-responses FILE --model NAME {where}")
    return 0


def _import_responses(arguments: argparse.Namespace) -> int:
    import pyarrow.parquet as pq
    import yaml

    from fairness_pipeline.files import replacing
    from fairness_pipeline.models.dialogue.imported import read_responses
    from fairness_pipeline.paths import check_key

    part, corpus, pairs = _pairs(arguments)
    check_key(arguments.model, "--model")
    known = part.models.get(arguments.model)
    if known and (known.architecture != "imported" or known.corpus != corpus):
        raise FairnessError(
            f"--model: profile '{part.project.name}' has a model '{arguments.model}' already ({known.architecture}, "
            f"corpus {known.corpus}); choose another name"
        )
    responses = read_responses(Path(arguments.file), pairs, keep_empty=arguments.keep_empty)
    path = part.imported_responses(arguments.model, arguments.dimension)
    with replacing(path) as temporary:
        pq.write_table(responses, temporary)
    if not known:
        specification = {"architecture": "imported", "studies": [NAME], "corpus": corpus}
        with replacing(path.with_name("model.yaml")) as temporary:
            temporary.write_text(yaml.safe_dump(specification, sort_keys=False), encoding="utf-8")
    print(f"{responses.num_rows:,} responses of '{arguments.model}' in dimension '{arguments.dimension}'; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --model {arguments.model}")
    return 0


def _pairs(arguments: argparse.Namespace) -> tuple[DialoguePart, str, pa.Table]:
    """The profile's part, the corpus asked for, and its pairs."""
    from fairness_pipeline.lake import Lake

    part = _part(arguments.profile)
    corpora = list(part.corpora)
    corpus = arguments.corpus or (corpora[0] if len(corpora) == 1 else None)
    for kind, value, choices in (("dimension", arguments.dimension, part.dimensions), ("corpus", corpus, corpora)):
        if value not in choices:
            wrong = f"unknown {kind} '{value}'" if value else f"--{kind} is needed"
            raise FairnessError(f"{wrong} in profile '{part.project.name}'; known: {', '.join(choices)}")
    assert corpus is not None
    key = {"corpus": corpus, "dimension": arguments.dimension}
    return part, corpus, Lake(part.project.workspace).read("context_pairs", key)


def _part(profile: str) -> DialoguePart:
    """What a profile says of this study.

    Raises:
        FairnessError: nothing.
    """
    part = Project(profile).parts.get(NAME)
    if not isinstance(part, DialoguePart):
        raise FairnessError(f"profile '{profile}' takes no part in {NAME}: give it a section of this name")
    return part
