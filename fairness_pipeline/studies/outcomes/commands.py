"""The study's own command: what a table's columns are, and what it can show."""

import argparse
from pathlib import Path

from fairness_pipeline.cli.arguments import add_table_options
from fairness_pipeline.cli.commands import Command


def add_commands(command: Command) -> None:
    """Adds it to the command line."""
    doctor = command("doctor", _doctor, "Say what the columns of a table are, what is wrong, and what it can show.")
    doctor.add_argument("file", help=".csv, .tsv, .jsonl (also packed), .parquet, .arrow")
    add_table_options(doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.studies.outcomes.columns import diagnose

    diagnosis = diagnose(Path(arguments.file), arguments)
    for line in diagnosis.lines():
        print(line)
    if diagnosis.document["outcomes"] and "group" not in diagnosis.guess.unsure:
        print("\nWhat it can show:")
        for line in diagnosis.shows():
            print(line)
    if diagnosis.guess.unsure:
        print("\nNot sure:")
        for role, why in diagnosis.guess.unsure.items():
            print(f"  {role}: {why}")
    told = "fill in each ?" if diagnosis.guess.unsure else "the columns spelled out"
    print(f"\nAudit it ({told}):\n{diagnosis.command}")
    return 0
