"""`report`: prints where the reports are."""

import argparse
from pathlib import Path

from fairness_pipeline.cli.arguments import add_selection, selection
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError


def add(command: Command) -> None:
    """Adds the command."""
    report = command(
        "report",
        _report,
        "Print the paths of the HTML reports, the first page first.",
        example="--paper paper --dimension gender",
    )
    add_selection(report)
    report.add_argument(
        "--paper",
        metavar="FOLDER",
        help="instead: write what a paper needs of the selection: tables, figures, methods, BibTeX",
    )


def _report(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lineage.plan import Selection
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.index import write_index
    from fairness_pipeline.reporting.paper import write_paper
    from fairness_pipeline.workspace.lake import Lake

    project, chosen = Project(arguments.profile), selection(arguments)
    lake = Lake(project.workspace)
    if arguments.paper:
        print("\n".join(map(str, write_paper(project, lake, Path(arguments.paper), chosen.resolved(project)))))
        return 0
    if chosen != Selection():
        raise FairnessError("a report is about a whole study; what selects a part of it is for --paper FOLDER")
    reports = [path for study in project.studies if (path := lake.document_path(study.report)).exists()]
    if not reports:
        raise FairnessError(f"no report yet; run: fairness-pipeline run --profile {arguments.profile}")
    print("\n".join(map(str, [*filter(None, [write_index(project, lake)]), *reports])))
    return 0
