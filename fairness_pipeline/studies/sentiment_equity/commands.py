"""Exports sentences and imports their scores."""

import argparse
import sys
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.cli.arguments import check_output
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.imports import Import, check_name, import_file
from fairness_pipeline.project.project import part_of
from fairness_pipeline.studies.sentiment_equity.profile import NAME, EquityPart


def add_commands(command: Command) -> None:
    """Adds the export commands to the command line."""
    sentences = command(
        "export sentences",
        _export_sentences,
        "The sentences that a sentiment system elsewhere is to score.",
        example="--output sentences.csv",
    )
    sentences.add_argument("--output", metavar="FILE", required=True, help=".csv or .tsv")
    sentences.add_argument("--force", action="store_true", help="replace FILE if it is there")


def _export_sentences(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.corpora.sentiment.equity_sentences import make_equity_sentences
    from fairness_pipeline.models.sentiment.score_files import write_sentences
    from fairness_pipeline.models.sentiment.specification import SCORE_FORMS

    path = Path(arguments.output)
    check_output(path, SCORE_FORMS, force=arguments.force)
    part_of(arguments.profile, NAME, EquityPart)  # checks the profile, which the printed command names
    sentences = make_equity_sentences()
    write_sentences(sentences, path)
    print(
        f"{path}: {sentences.num_rows:,} sentences, the second half reworded (score all of it or none); fill in "
        "'score' in a copy, then:"
    )
    print(f"fairness-pipeline import FILE --name NAME --profile {arguments.profile}")
    return 0


def _import_scores(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.models.sentiment.score_files import unread_columns

    part, path = part_of(arguments.profile, NAME, EquityPart), Path(arguments.file)
    target, scores = import_scores(part, path, arguments.name)
    affects, unread = ", ".join(scores["affect"].unique().to_pylist()), ", ".join(unread_columns(path))
    print(f"{scores.num_rows:,} scores of '{arguments.name}' ({affects}) in {target}; now:")
    if unread:
        print(f"(columns that were not read: {unread})", file=sys.stderr)
    others = [study.name for study in part.project.studies_of(arguments.name) if study.name != NAME]
    study = f" --study {NAME}" if others else ""
    print(f"fairness-pipeline run --profile {part.project.name}{study} --model {arguments.name}")
    return 0


IMPORTS = (
    Import(
        "scores",
        "sentence_id or sentence, score, and affect if not valence",
        lambda columns: "score" in columns and not {"sentence_id", "sentence"}.isdisjoint(columns),
        _import_scores,
    ),
)


def import_scores(part: EquityPart, path: Path, system: str) -> tuple[Path, pa.Table]:
    """Imports a system's scores from a file into the workspace.

    Returns:
        The path of the scores in the workspace, and the scores.

    Raises:
        FairnessError: the profile declares a system of this name, or the file is not as expected; names the line.
    """
    from fairness_pipeline.corpora.sentiment.equity_sentences import make_equity_sentences
    from fairness_pipeline.models.sentiment.score_files import read_scores

    taken = system in part.systems and system not in part.score_files
    check_name(system, part.project.name, taken=taken)
    scores = read_scores(path, make_equity_sentences())
    earlier = part.score_files.get(system)
    target = (earlier or part.project.workspace / "scores" / system).with_name(system + path.suffix)
    import_file(path, target, part.project.workspace, f"the scores of '{system}'", [earlier] if earlier else [])
    return target, scores
