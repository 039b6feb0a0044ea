"""Exports texts and imports a classifier's predictions."""

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.cli.arguments import check_output
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.imports import Import, check_name, chosen, import_file
from fairness_pipeline.project.project import part_of
from fairness_pipeline.studies.implicit_bias.profile import NAME, ImplicitBiasPart
from fairness_pipeline.workspace.lake import Lake


def add_commands(command: Command) -> None:
    """Adds the export commands to the command line."""
    texts = command(
        "export texts",
        _export_texts,
        "The texts that a text classifier elsewhere is to classify.",
        example="--output texts.csv",
    )
    texts.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")
    texts.add_argument("--output", metavar="FILE", required=True, help=".csv, .tsv or .jsonl")
    texts.add_argument("--force", action="store_true", help="replace FILE if it is there")


def _export_texts(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.foundation.csv_cells import say_escaped
    from fairness_pipeline.models.classifiers.prediction_files import FORMS, write_texts

    path = Path(arguments.output)
    check_output(path, FORMS, force=arguments.force)
    part = part_of(arguments.profile, NAME, ImplicitBiasPart)
    corpus = _corpus(part, arguments.corpus)
    views = _views(part, corpus)
    tables = [_texts_to_classify(part, view).select(["text_id", "text"]) for view in views]
    tests = pa.concat_tables(tables).group_by(["text_id", "text"], use_threads=False).aggregate([])
    classes = part.classes[views[0]] if len(views) > 1 else ()
    escaped = write_texts(tests, path, "prediction" if classes else "probability")
    fill = f"'prediction' ({', '.join(classes)})" if classes else "'probability' (of the positive class)"
    print(f"{path}: {tests.num_rows:,} texts; fill in {fill} in a copy, then:{say_escaped(escaped)}")
    print(f"fairness-pipeline import FILE --name NAME --corpus {corpus} --profile {arguments.profile}")
    return 0


def _import_predictions(arguments: argparse.Namespace) -> int:
    part = part_of(arguments.profile, NAME, ImplicitBiasPart)
    corpus = _corpus(part, arguments.corpus)
    target, count = import_predictions(part, Path(arguments.file), corpus, arguments.name)
    print(f"{count:,} predictions of '{arguments.name}' in {target}; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --study {NAME} --model {arguments.name}")
    return 0


IMPORTS = (
    Import(
        "predictions",
        "text_id, and probability or prediction",
        lambda columns: "text_id" in columns and not {"probability", "prediction"}.isdisjoint(columns),
        _import_predictions,
        ("corpus",),
    ),
)


def import_predictions(part: ImplicitBiasPart, path: Path, corpus: str, classifier: str) -> tuple[Path, int]:
    """Imports a classifier's predictions from a file into the workspace.

    Returns:
        The path of the predictions in the workspace, and their number.

    Raises:
        FairnessError: the profile declares a classifier of this name, or the file is not as expected; names the line.
    """
    from fairness_pipeline.models.classifiers.prediction_files import FORMS, read_predictions

    existing = part.classifiers.get(classifier)
    taken = existing is not None and existing.architecture != "predictions"
    check_name(classifier, part.project.name, taken=taken)
    views = _views(part, _corpus(part, corpus))
    tests = {view: _texts_to_classify(part, view) for view in views}
    tables = [read_predictions(path, texts, part.of_class(view)) for view, texts in tests.items()]
    for view in views:
        target = part.prediction_file(view, classifier, path.suffix)
        earlier_files = [part.prediction_file(view, classifier, form) for form in FORMS]
        import_file(path, target, part.project.workspace, f"the predictions of '{classifier}'", earlier_files)
    return target, max(table.num_rows for table in tables)


def _views(part: ImplicitBiasPart, corpus: str) -> list[str]:
    """The audited views of a corpus: the corpus itself, or each of its classes."""
    return [view for view in part.corpora if corpus in (view, view.partition(".")[0])]


def _corpus(part: ImplicitBiasPart, requested: str | None) -> str:
    """The requested corpus, or the requested one of its classes."""
    corpora = list(dict.fromkeys(view.partition(".")[0] for view in part.corpora))
    return requested if requested in part.corpora else chosen("--corpus", requested, corpora, part.project.name)


def _texts_to_classify(part: ImplicitBiasPart, corpus: str) -> pa.Table:
    """The texts of the split `test`, which are made first if they are missing."""
    from fairness_pipeline.cli.run import make

    make(part.project, NAME, "authored_texts", None)
    texts = Lake(part.project.workspace).read("authored_texts", {"corpus": corpus})
    return texts.filter(pc.equal(texts["split"], "test"))
