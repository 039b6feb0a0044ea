"""`check`: reads everything in a workspace again, and names what is not as it was written."""

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of, visible
from fairness_pipeline.workspace.lake import Key, Lake

if TYPE_CHECKING:
    from fairness_pipeline.lineage.plan import Plan
    from fairness_pipeline.project.project import Project


def add(command: Command) -> None:
    """Adds the command."""
    command("check", _check, "Read all tables, models and reports again; name what is not as it was written.")


def _check(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.project.project import Project

    project = Project(arguments.profile)
    lineage, lake = Lineage(project), Lake(project.workspace)
    made = [(name, key) for name in lineage.recipes for key in lineage.keys(name) if lake.has(name, key)]
    begun = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as display:
        found = problems(lake, display.track(made, description="partitions"))
    for told in found:
        print(visible(told))
    size = sum(path.stat().st_size for path in _files(project.workspace))
    print(
        f"{number_of(len(made), 'partition')} read in {time.monotonic() - begun:.1f} s "
        f"({size / 1e6:,.0f} MB in the workspace), {len(found)} not as written"
    )
    if found:
        print(
            "What is named cannot be trusted. Delete it (or restore it from a copy), then: fairness-pipeline run "
            f"--profile {project.name}"
        )
    return 1 if found else 0


def check_as_written(project: "Project", plan: "Plan") -> None:
    """Reads all partitions of a plan again before a verdict on them is given.

    Raises:
        FairnessError: some are not as they were written; they are named on standard error.
    """
    found = problems(plan.lake, [(step.name, step.key) for step in plan.steps])
    for told in found:
        print(visible(told), file=sys.stderr)
    if found:
        raise FairnessError(
            f"{number_of(len(found), 'partition')} not as written (above), so that no verdict is given; delete what is "
            "named, or restore it from a copy, and run again. All of the workspace: fairness-pipeline check --profile "
            f"{project.name}"
        )


def problems(lake: Lake, partitions: Iterable[tuple[str, Key]]) -> list[str]:
    """What is wrong with partitions that were made, a line each; see `Lake.verify`."""
    found = []
    for name, key in partitions:
        if lake.has(name, key) and (problem := lake.verify(name, key)):
            found.append(f"{' '.join([name, *key.values()])}: {problem}")
    return found


def _files(workspace: Path) -> list[Path]:
    folders = [workspace / part for part in ("tables", "checkpoints", "reports")]
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]
