"""`results`: prints the significance tables."""

import argparse
import sys

from fairness_pipeline.cli.arguments import add_format, add_selection, selection
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.project.project import Project


def add(command: Command) -> None:
    """Adds the command."""
    results = command("results", _results, "Print the significance tables.")
    add_selection(results)
    results.add_argument(
        "--against", metavar="TIME", help="compare with the results of a time such as 2026-11-20, or 'previous'"
    )
    add_format(results)


def _results(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.cli.console import print_rows
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.reporting.history import against, find_entry
    from fairness_pipeline.reporting.results import audits_of, flat
    from fairness_pipeline.workspace.lake import Lake

    project = Project(arguments.profile)
    chosen = selection(arguments).resolved(project)
    lake, lineage = Lake(project.workspace), Lineage(project)
    state = State(lineage, lake)
    # Two studies' tables have different columns: print one, the first with results unless another is requested.
    possible = [study for study in project.studies if chosen.study in (None, study.name)]
    study = next((study for study in possible if project.parts[study.name].subjects), possible[0])
    stale = [key for key in lineage.keys(study.table) if lake.card(study.table, key) and state.stale(study.table, key)]
    every = audits_of(study, project.parts[study.name], lake, stale)
    shown = [
        audit
        for audit in every
        if chosen.dimension in (None, audit.key.get("dimension")) and chosen.model in (None, audit.key[study.subject])
    ]
    rows = flat(study, shown)
    needed: tuple[str, ...] = (*study.identity, "difference", "verdict", "stale")
    if arguments.against:
        entry = find_entry(project.workspace, study, arguments.against, flat(study, every))
        rows = against(project.workspace, study, entry, rows)
        needed = (*study.identity, "verdict_then", "verdict_now", "verdict_changed")
    else:
        marks = [audit.stale for audit in shown for _ in range(max(1, len(audit.rows)))]
        rows = [{**row, "stale": mark} for row, mark in zip(rows, marks, strict=True)]
        if arguments.format == "table":
            names = (*study.shown, *(["stale"] if any(marks) else []))
            rows = [{name: row.get(name) for name in names} for row in rows]
    if not rows:
        print(f"profile '{project.name}' audits nothing in study {study.name}", file=sys.stderr)
    print_rows(list(dict.fromkeys(name for row in rows for name in row)), rows, arguments.format, needed)
    if stale:
        by_default = all(project.parts[study.name].by_default(key) for key in stale)
        _say_stale(project, [" ".join(key.values()) for key in stale], "" if by_default else " --all")
    return 0


def _say_stale(project: Project, names: list[str], options: str) -> None:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    print(
        f"stale (made with other settings, data or answers than now): {', '.join(names[:5])}{more}; "
        f"run: fairness-pipeline run --profile {project.name}{options}",
        file=sys.stderr,
    )
