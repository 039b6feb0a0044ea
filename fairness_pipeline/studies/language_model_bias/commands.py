"""Exports phrases and texts, and imports their labels and log-probabilities."""

import argparse
from pathlib import Path

from fairness_pipeline.cli.arguments import check_output
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.imports import Import, check_name, chosen, import_file
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import part_of
from fairness_pipeline.studies.language_model_bias.profile import NAME, LanguageModelPart


def add_commands(command: Command) -> None:
    """Adds the export commands to the command line."""
    phrases = command(
        "export phrases",
        _export_phrases,
        "The phrases that annotators are to label.",
        example="--dimension religion1 --output phrases.csv",
    )
    phrases.add_argument("--dimension", help="which dimension (may be left out where the profile has one)")
    phrases.add_argument("--output", metavar="FILE", required=True, help=".csv; the guidelines are written beside it")
    phrases.add_argument("--count", type=int, help="so many, drawn at random (default: all)")
    phrases.add_argument("--force", action="store_true", help="replace FILE if it is there")
    texts = command(
        "export phrase-texts",
        _export_texts,
        "The texts that a language model elsewhere is to score.",
        example="--output texts.csv",
    )
    texts.add_argument("--output", metavar="FILE", required=True, help=".csv or .jsonl")
    texts.add_argument("--dimension", help="only this dimension (default: all that have phrases)")
    texts.add_argument("--force", action="store_true", help="replace FILE if it is there")


def _export_phrases(arguments: argparse.Namespace) -> int:
    import random

    from fairness_pipeline.cli.run import make
    from fairness_pipeline.corpora.language.phrase_annotations import GUIDELINES, write_template
    from fairness_pipeline.foundation.files import replacing
    from fairness_pipeline.workspace.lake import Lake

    path = Path(arguments.output)
    check_output(path, (".csv",), force=arguments.force)
    part = part_of(arguments.profile, NAME, LanguageModelPart)
    dimension = _dimension(part, arguments.dimension)
    if not part.has_comments:
        raise FairnessError(
            f"corpus '{part.settings.corpus}' has no comments to seek phrases in: name some under 'comments' in its "
            "YAML file"
        )
    make(part.project, NAME, "bias_phrases", dimension)
    phrases = Lake(part.project.workspace).read("bias_phrases", {"dimension": dimension})
    if arguments.count is not None:
        if arguments.count < 1:
            raise FairnessError(f"--count: expected 1 or more, found {arguments.count}")
        indices = list(range(phrases.num_rows))
        random.Random(part.project.profile.seed).shuffle(indices)
        phrases = phrases.take(sorted(indices[: arguments.count]))
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        write_template(phrases, stream)
    guidelines = path.with_name(f"{path.stem}-guidelines.txt")
    with replacing(guidelines) as temporary:
        temporary.write_text(GUIDELINES, encoding="utf-8")
    print(f"{path}: {phrases.num_rows:,} phrases, and how to label them in {guidelines}; fill in a copy, then:")
    print(f"fairness-pipeline import FILE --name NAME --dimension {dimension} --profile {arguments.profile}")
    return 0


def _import_annotations(arguments: argparse.Namespace) -> int:
    import pyarrow.compute as pc

    from fairness_pipeline.corpora.language.phrase_annotations import read_annotations
    from fairness_pipeline.foundation.paths import check_key
    from fairness_pipeline.workspace.lake import Lake

    check_key(arguments.name, "--name")
    part, path = part_of(arguments.profile, NAME, LanguageModelPart), Path(arguments.file)
    dimension = _dimension(part, arguments.dimension)
    phrase_texts = None
    if part.has_comments:
        phrases = Lake(part.project.workspace).read("bias_phrases", {"dimension": dimension})
        phrase_texts = dict(zip(phrases["phrase_id"].to_pylist(), phrases["phrase"].to_pylist(), strict=True))
    annotations = read_annotations(path, arguments.name, ignored=part.corpus.ignored_labels, known=phrase_texts)
    labelled = annotations.table.num_rows - annotations.table["bias_phrase"].null_count
    if not labelled:
        raise FairnessError(f"{path}: no phrase has a label in 'bias_phrase'; fill in 1 or 0")
    target = part.annotations_folder(dimension) / f"{arguments.name}.csv"
    import_file(path, target, part.project.workspace, f"the labels of '{arguments.name}'")
    biased = int(pc.sum(annotations.table["bias_phrase"].cast("int64")).as_py() or 0)
    print(f"{labelled:,} labels of '{arguments.name}', {biased:,} of them biased phrases, in {target}; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --study {NAME} --dimension {dimension}")
    return 0


def _export_texts(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.foundation.csv_cells import say_escaped, write_table

    path = Path(arguments.output)
    check_output(path, (".csv", ".jsonl"), force=arguments.force)
    part = part_of(arguments.profile, NAME, LanguageModelPart)
    texts = _texts_to_score(part, _dimension(part, arguments.dimension) if arguments.dimension else None)
    escaped = write_table(path, ["text", "logprob", "tokens"], ((text, "", "") for text in texts))
    print(
        f"{path}: {len(texts):,} texts; in a copy fill in 'logprob' (the sum of the natural logarithms of the tokens' "
        "probabilities, each given the tokens before it) and 'tokens' (how many they are). A first token that nothing "
        f"stands before counts in neither. Then:{say_escaped(escaped)}"
    )
    print(f"fairness-pipeline import FILE --name NAME --profile {arguments.profile}")
    return 0


def _texts_to_score(part: LanguageModelPart, dimension: str | None) -> list[str]:
    """The distinct texts of the scored splits, of one dimension or of all that have phrases."""
    from fairness_pipeline.cli.run import make
    from fairness_pipeline.measures.language.phrase_bias import scored_versions
    from fairness_pipeline.workspace.lake import Lake

    lake, texts = Lake(part.project.workspace), dict[str, None]()
    for key in [dimension] if dimension else [name for name in part.dimensions if part.has_phrases(name)]:
        make(part.project, NAME, "counterfactual_phrases", key)
        versions = scored_versions(lake.read("counterfactual_phrases", {"dimension": key}))
        texts |= dict.fromkeys(versions["text"].to_pylist())
    return list(texts)


def _import_logprobs(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.models.language.log_probability_files import FORMS, read_log_probabilities

    part, path = part_of(arguments.profile, NAME, LanguageModelPart), Path(arguments.file)
    existing = part.models.get(arguments.name)
    taken = existing is not None and existing.architecture != "logprobs"
    check_name(arguments.name, part.project.name, taken=taken)
    count = len(read_log_probabilities(path))
    earlier_files = [part.log_probability_file(arguments.name, form) for form in FORMS]
    target = part.log_probability_file(arguments.name, path.suffix)
    description = f"the log-probabilities of '{arguments.name}'"
    import_file(path, target, part.project.workspace, description, earlier_files)
    print(f"{count:,} texts scored by '{arguments.name}' in {target}; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --study {NAME} --model {arguments.name}")
    return 0


IMPORTS = (
    Import(
        "labels of phrases", "phrase_id, phrase, bias_sent and bias_phrase", {"phrase", "bias_phrase"}.issubset,
        _import_annotations, ("dimension",),
    ),
    Import(
        "log-probabilities", "text, logprob (nats, summed) and tokens", {"text", "logprob"}.issubset, _import_logprobs
    ),
)  # fmt: skip


def _dimension(part: LanguageModelPart, requested: str | None) -> str:
    """The requested dimension, of those with stereotypes."""
    return chosen("--dimension", requested, part.dimensions, part.project.name)
