"""Takes what `fairness-pipeline audit` is given for this study: a file of labels, and a file of their raters."""

import argparse
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.cli.given import Given, put, roles_of
from fairness_pipeline.cli.imports import check_name
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.corpora.annotators.label_columns import ROLES, find_columns, names_a_rater
from fairness_pipeline.corpora.annotators.label_files import read_label_rows, read_raters
from fairness_pipeline.corpora.annotators.label_values import CLASSES
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.results import choice, in_doubt
from fairness_pipeline.workspace.imports import store_import
from fairness_pipeline.workspace.lake import Lake

if TYPE_CHECKING:
    import pandas as pd

HINT = "a file of labels: name the column of its raters: --column rater=NAME"
FIRST = True
"""A file that names raters is a file of labels, whatever its other columns are."""
KIND, NOUN = "corpora", "labels"
PROFILE = """\
# Written by `fairness-pipeline init {name}`; yours to change. Every key with its meaning: docs/reference.md.
description: Who labels how
seed: 1                          # of every draw: the same seed gives the same tables
dimensions: [gender]             # of the other studies; this one's groups are those of its corpus

annotator_bias:
  corpora: [{key}]               # its file is corpora/{key}.yaml
  methods: {{mv: {{}}, dawid_skene: {{}}, group_anno: {{}}, group_beta: {{}}}}    # all of them if left out
  significance:
    margin: {{cohens_h: 0.1}}      # the largest difference of rates that does not matter
"""
MODEL_COMMENTS = {
    "task": "what is labelled, in words",
    "path": "a table; or form: label_studio, form: prodigy",
    "at_least": "of ratings; or positive: [..], negative: [..]; or classes: {name: [labels]}",
    "categories": "what divides annotators into groups: columns of the annotators' file, or of the annotations",
}
STARTER: dict[str, Any] = {
    "task": "rude or not",
    "annotations": [
        {"path": "labels.csv", "columns": {"item": "item", "annotator": "rater", "label": "label", "text": "text"}}
    ],
    "labels": {"at_least": 3},
    "categories": {
        "gender": {"column": "gender", "groups": {"women": ["f"], "men": ["m"]}, "ignored": ["*"]},
        "age": {"column": "age", "groups": {"under 30": {"between": [18, 29]}, "30 and over": {"between": [30, 99]}}},
    },
    "licence": "ours",
    "citation": "internal",
}  # fmt: skip
STARTER_COMMENT = (
    "A table of labels, beside this file, and what its columns mean. Without any file of this kind:\n"
    "#   fairness-pipeline audit labels.csv"
)


def takes(given: Given) -> bool:
    """Whether this study can audit the given file: it has to name raters."""
    return given.kind == "file" and names_a_rater(given.columns)


def takes_columns(roles: set[str], given: Given) -> bool:
    """Whether the user names columns of a file of labels: its raters, or others if the file itself names raters."""
    return given.kind == "file" and roles <= {*ROLES} and ("rater" in roles or names_a_rater(given.columns))


def give(part: AnnotatorBiasPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a given file of labels in the workspace; returns a line that says how it was understood.

    Raises:
        FairnessError: the profile already has a corpus of this name, or the columns are unclear.
    """
    check_name(name, part.project.name, taken=name in part.settings.corpora)
    path = Path(given.name)
    roles = roles_of(arguments.column, ROLES, repeatable=("trait",))
    raters = read_raters(Path(arguments.raters)) if arguments.raters else None
    left_out = Counter[str]()
    columns = find_columns(read_label_rows(path, left_out), raters, roles, _positive(arguments.label), path)
    lines = [*columns.lines, *(f"  left out   {count:,} {reason}" for reason, count in left_out.items())]
    print(f"{path}: {number_of(len(columns.table), 'label')}", *lines, sep="\n", file=sys.stderr)
    target = part.folder_of(name) / "labels.parquet"
    document = columns.document | {"annotations": [{"path": target.name, **columns.document["annotations"][0]}]}
    target.parent.mkdir(parents=True, exist_ok=True)
    put(part.about(name), document, AnnotatedCorpus, name, part.project.name)
    earlier = [target] if name in part.given else []
    if store_import(path, target, part.project.workspace, partial(_write, columns.table), earlier):
        print(f"replaced the labels of '{name}' that were imported before")
    return f"'{name}': {len(columns.table):,} labels in {target}; what its columns are: {part.about(name)}"


def describe_results(part: AnnotatorBiasPart, lake: Lake, name: str) -> list[str]:
    """Further results, one line each: agreement, and which labels to use."""
    rows = lake.read("label_agreement_by_group", {"corpus": name}).to_pylist()
    alphas = [f"{row['alpha']:.2f} ({row['scale']})" for row in rows if not row["group"] and row["alpha"] is not None]
    lines = [f"Agreement of all annotators, Krippendorff's alpha: {', '.join(alphas) or 'no item has two labels'}"]
    if advice := choice(part, lake, name):
        lines.append(f"Which labels to use: {advice['told']}\n  {advice['command']}")
    return lines + in_doubt(part, lake, name)


def _write(table: "pd.DataFrame", path: Path) -> None:
    table.to_parquet(path, index=False)


def _positive(options: list[str]) -> str | None:
    """The positive label that the user names, or `CLASSES` if numbers name classes."""
    if not options:
        return None
    name, equals, label = options[0].partition("=")
    if len(options) > 1 or (options[0] != CLASSES and (name != "positive" or not equals)):
        given = ", ".join(options)
        raise FairnessError(f"--label: of a file of labels expected positive=LABEL or {CLASSES}, found {given}")
    return label if equals else CLASSES
