"""`publish`: writes the tables and reports of a workspace to object storage."""

import argparse

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError


def add(command: Command) -> None:
    """Adds the command."""
    publish = command(
        "publish", _publish, "Write tables and reports to object storage or a folder.", example="s3://bucket/audits"
    )
    publish.add_argument("address", help="s3://bucket/prefix, gs://..., abfs://..., or a folder")
    publish.add_argument("--reports-only", action="store_true", help="without tables, which hold texts of corpora")


def _publish(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from fairness_pipeline.foundation.plain_text import number_of
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.index import write_index
    from fairness_pipeline.workspace.lake import Lake
    from fairness_pipeline.workspace.publishing import MANIFEST, publish

    project = Project(arguments.profile)
    lake, lineage = Lake(project.workspace), Lineage(project)
    state = State(lineage, lake)
    partitions = [
        (name, key)
        for name, asset in lineage.assets.items()
        if asset.kind == "document" or (asset.kind == "table" and not arguments.reports_only)
        for key in lineage.keys(name)
        if lake.card(name, key)
    ]
    files = {lineage.assets[name].path(lake, key) for name, key in partitions}
    if not files:
        raise FairnessError(f"nothing was made yet; run: fairness-pipeline run --profile {project.name}")
    stale = sum(bool(state.stale(name, key)) for name, key in partitions)
    if index := write_index(project, lake):
        files.add(index)
    files |= set(lake.document_path("index").parent.glob("*.csv"))  # the verdicts, which the reports link to
    with Progress(console=Console(stderr=True), transient=True) as display:
        bar = display.add_task("files", total=len(files))
        result = publish(lake, files, arguments.address, lambda done, total, note: display.update(bar, completed=done))
    if stale:
        print(
            f"{number_of(stale, 'partition')} of {len(partitions)} out of date: 'fairness-pipeline run' makes them anew"
        )
    print(
        f"{number_of(result.written, 'file')} written, {result.unchanged} unchanged, {result.deleted} deleted; "
        f"the list of all files is '{project.name}/{MANIFEST}' at that address"
    )
    return 0
