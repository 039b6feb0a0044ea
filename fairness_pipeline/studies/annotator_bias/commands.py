"""Exports inferred labels for the next training."""

import argparse
from pathlib import Path

from fairness_pipeline.annotation.label_choice import advice
from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.cli.arguments import check_output
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.imports import chosen
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import part_of
from fairness_pipeline.studies.annotator_bias.profile import NAME, AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Lake


def add_commands(command: Command) -> None:
    """Adds the export commands to the command line."""
    labels = command(
        "export labels",
        _export_labels,
        "Inferred and soft labels for a next training, and what each group says.",
        example="--output labels.csv",
    )
    labels.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")
    labels.add_argument(
        "--method", choices=METHODS, help="of truth inference (default: the one that the report advises)"
    )
    labels.add_argument("--output", metavar="FILE", required=True, help=".csv, .jsonl or .parquet")
    labels.add_argument("--force", action="store_true", help="replace FILE if it is there")


def _export_labels(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.annotation.label_files import FORMS, write_labels
    from fairness_pipeline.cli.run import make
    from fairness_pipeline.foundation.csv_cells import say_escaped

    path = Path(arguments.output)
    check_output(path, FORMS, force=arguments.force)
    part = part_of(arguments.profile, NAME, AnnotatorBiasPart)
    subject = chosen("--corpus", arguments.corpus, part.corpora, arguments.profile)
    methods = [method for method in part.settings.methods if part.infers({"corpus": subject, "method": method})]
    if arguments.method not in (None, *methods):
        raise FairnessError(
            f"--method: expected one of {', '.join(methods)} on '{subject}', found '{arguments.method}'"
        )
    make(part.project, NAME, "annotator_bias_estimates", subject=subject)
    lake, method = Lake(part.project.workspace), arguments.method or methods[0]
    if arguments.method is None and part.infer_truths(subject):
        make(part.project, NAME, "label_choice", subject=subject)
        rows = lake.read("label_choice", {"corpus": subject}).to_pylist()
        method = next(row["method"] for row in rows if row["chosen"])
        print(f"labels by {advice(rows, {name: METHODS[name].title for name in methods})}")
    key = {"corpus": subject, "method": method}
    truths, estimates = (lake.read(name, key) for name in ("truth_inference", "annotator_bias_estimates"))
    names = ("annotated_items", "annotations", "annotators")
    items, labels, annotators = (lake.read(name, {"corpus": subject}) for name in names)
    corpus = part.corpora[subject]
    written = write_labels(truths, estimates, items, labels, annotators, corpus, path)
    title = METHODS[method].title
    note = say_escaped(written.escaped)
    print(f"{path}: {written.items:,} items with the label and the probability that {title} infers{note}")
    if not corpus.several:
        negative, positive = corpus.labels.class_names
        print(f"label: 1 is {positive}, 0 is {negative}")
    if written.doubtful and METHODS[method].probabilistic:
        print(
            f"Do not take its probabilities at their word: {written.doubtful:,} items have a probability near 0 or 1 "
            "although at least a tenth of their annotators disagree. The method assumes that labels are independent "
            "given the truth. The columns 'share' are what annotators said (--method soft_labels smooths them)."
        )
    return 0
