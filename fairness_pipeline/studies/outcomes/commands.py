"""Describes a table's columns and what they can show; exports questions about groups."""

import argparse
from contextlib import suppress
from pathlib import Path

from fairness_pipeline.cli.arguments import add_group_options, add_table_options, check_output
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError

_FORMS = (".csv", ".jsonl")


def add_commands(command: Command) -> None:
    """Adds `doctor` and the export command to the command line."""
    doctor = command(
        "doctor",
        _doctor,
        "Say what a table's columns are, what is wrong, and what it can show.",
        example="decisions.csv",
    )
    doctor.add_argument("file", help=".csv, .tsv, .jsonl (also packed), .parquet, .arrow")
    add_table_options(doctor)
    questions = command(
        "export questions",
        _export_questions,
        "The questions about groups that a model elsewhere is to answer.",
        example="--groups religion --output questions.csv",
        default_profile="audit",
    )
    add_group_options(questions, required=True)
    questions.add_argument("--output", metavar="FILE", required=True, help=".csv or .jsonl")
    questions.add_argument("--force", action="store_true", help="replace FILE if it is there")


def _doctor(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.cli.audit import study_of
    from fairness_pipeline.cli.given import look_at
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.studies.outcomes.columns import diagnose
    from fairness_pipeline.studies.outcomes.profile import NAME

    diagnosis = diagnose(Path(arguments.file), arguments)
    for line in diagnosis.lines():
        print(line)
    if diagnosis.document["outcomes"] and "group" not in diagnosis.guess.unsure:
        print("\nWhat it can show:")
        for line in diagnosis.shows():
            print(line)
    if diagnosis.guess.unsure:
        print("\nNot sure:")
        for role, reason in diagnosis.guess.unsure.items():
            print(f"  {role}: {reason}")
    kind = "it"
    with suppress(FairnessError):  # a profile may lack the study of tables
        study = study_of(Project(arguments.profile), look_at(arguments.file), None)
        if study.name != NAME:
            kind = "it as a table of outcomes"
            title = study.title.lower()
            print(f"\nIt looks like a file for the study of {title}:\nfairness-pipeline audit {arguments.file}")
    instruction = "fill in each ?" if diagnosis.guess.unsure else "the columns spelled out"
    print(f"\nAudit {kind} ({instruction}):\n{diagnosis.command}")
    return 0


def _export_questions(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.foundation.csv_cells import say_escaped, write_table
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.studies.outcomes.asked_groups import describe_questions, message_document, questions_of

    path = Path(arguments.output)
    check_output(path, _FORMS, force=arguments.force)
    document = message_document(arguments.groups, arguments.messages, arguments.spans)
    questions = questions_of(document, Project(arguments.profile).profile.seed)
    names = ("id", "system", "text", "answer")
    rows = ((row["id"], row["system"], row["text"], "") for row in questions.table.to_pylist())
    escaped = write_table(path, names, rows)
    for line in describe_questions(questions):
        print(line)
    options = [f"--groups {arguments.groups}"]
    options += [f"--{name} {value}" for name in ("messages", "spans") if (value := getattr(arguments, name))]
    note = say_escaped(escaped)
    print(f"{path}: {questions.table.num_rows:,} questions; fill in 'answer' in a copy of it, then:{note}")
    print(f"fairness-pipeline audit FILE {' '.join(options)} --profile {arguments.profile}")
    return 0
