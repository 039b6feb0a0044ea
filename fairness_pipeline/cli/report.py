"""`report`: prints where the reports are."""

import argparse
from pathlib import Path

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError


def add(command: Command) -> None:
    """Adds the command."""
    report = command("report", _report, "Print the paths of the HTML reports, the first page first.")
    report.add_argument(
        "--paper",
        metavar="FOLDER",
        help="also write what a paper needs: tables (LaTeX, Markdown), figures (SVG, PDF), methods, BibTeX",
    )


def _report(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.index import write_index
    from fairness_pipeline.reporting.paper import write_paper
    from fairness_pipeline.workspace.lake import Lake

    project = Project(arguments.profile)
    lake = Lake(project.workspace)
    made = [path for study in project.studies if (path := lake.document_path(study.report)).exists()]
    if not made:
        raise FairnessError(f"no report yet; run: fairness-pipeline run --profile {arguments.profile}")
    print("\n".join(map(str, [*filter(None, [write_index(project, lake)]), *made])))
    if arguments.paper:
        files = write_paper(project, lake, Path(arguments.paper))
        print("\n".join(map(str, files)))
    return 0
